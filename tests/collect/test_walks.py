"""How long lineages are read on: until they agree, or for good, but seldom."""

from __future__ import annotations

import pytest

from tests.collect.fake_broker import FETCH, VERSIONS, Log
from tests.collect.lab import Lab, outcomes
from tidemark.collect import walks
from tidemark.core.events import Observation

Lineage = list[tuple[int, int]]
AGREED: Lineage = [(0, 5), (2, 9)]


def lineages(lab: Lab, *of: Lineage) -> None:
    """Broker 1 leads under epoch 2; each broker's log as given. Four passes go by."""
    lab.topic("t", 9, epoch=2)
    for broker, lineage in zip(lab.brokers, of, strict=True):
        broker.logs["t", 0] = Log(lineage, 9, 2, leads=broker.broker == 1)
    lab.run(4)


def read_of(lab: Lab) -> list[Lineage | None]:
    """What a pass read: the leader's whole lineage and each follower's; nothing where it showed none, or was thin."""
    observed = next((event for event in lab.run() if isinstance(event, Observation)), None)
    if observed is None:
        return [None, None, None]
    whole = observed.lineage if observed.lineage is not None and len(observed.lineage) > 1 else None
    return [whole, observed.samples[1].lineage, observed.samples[2].lineage]


@pytest.mark.parametrize(
    "part", [[(0, 6), (2, 9)], [(0, 8)], [(0, 6), (1, 4), (2, 9)], [(0, 5), (1, 7), (2, 9)]]
)
def test_a_log_that_parts_or_cannot_be_is_read_on_until_it_is_mended(
    lab: Lab, part: Lineage
) -> None:
    lineages(lab, AGREED, AGREED, part)
    for _ in range(4):
        assert read_of(lab) == [AGREED, None, part]
    lab.brokers[2].logs["t", 0].epochs = AGREED
    lab.run()
    assert read_of(lab) == [None, None, None]


def test_a_leaders_impossible_lineage_is_read_on(lab: Lab) -> None:
    impossible = [(0, 6), (1, 4), (2, 9)]
    lineages(lab, impossible, impossible, AGREED)
    assert read_of(lab)[0] == impossible
    assert read_of(lab)[0] == impossible


@pytest.mark.parametrize("part", [AGREED, [(0, 4)], [(0, 5)]])
def test_a_follower_that_agrees_or_is_behind_is_not_read_on(lab: Lab, part: Lineage) -> None:
    lineages(lab, AGREED, AGREED, part)
    assert read_of(lab) == [None, None, None]


def test_closed_epochs_of_a_compacted_topic_part_without_a_doubt(lab: Lab) -> None:
    lab.topic("t", 9)
    lab.run()
    lab.passes.inventory.partitions["t", 0].compacted = True
    lineages(lab, AGREED, AGREED, [(0, 6), (2, 9)])
    assert read_of(lab) == [None, None, None]


def test_what_ends_below_a_log_start_tells_nothing(lab: Lab) -> None:
    for broker in lab.brokers:
        broker.log_start = 6
    lineages(lab, AGREED, AGREED, [(0, 6), (2, 9)])
    assert read_of(lab) == [None, None, None]


def test_what_stays_in_doubt_is_read_seldom_in_the_end_but_shown_in_every_pass(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "READS_IN_DOUBT", 6)
    part = [(0, 6), (2, 9)]
    lineages(lab, AGREED, AGREED, part)
    assert [read_of(lab)[2] for _ in range(4)] == [part, part, None, None]
    assert isinstance(lab.one(), Observation)
    doubt = lab.passes.inventory.partitions["t", 0].doubt
    assert doubt is not None
    doubt.due_at = 0.0
    lab.run()
    assert [read_of(lab)[2] for _ in range(2)] == [part, None]


def test_a_broker_that_was_silent_at_a_change_is_read_when_it_is_back(lab: Lab) -> None:
    lab.topic("t", 9)
    lab.run(5)
    lab.brokers[2].hangs = lambda _: True
    lineages(lab, AGREED, AGREED, AGREED)
    assert read_of(lab) == [None, None, None]
    lab.brokers[2].hangs = lambda _: False
    for _ in range(100_000):
        events = lab.run()
        if outcomes(events)[3] == "ok":
            break
    observed = next(event for event in events if isinstance(event, Observation))
    assert observed.samples[2].lineage == AGREED
    assert [read_of(lab)[2] for _ in range(4)] == [AGREED, AGREED, AGREED, None]


def test_a_replica_that_is_taken_away_is_waited_for_no_longer(lab: Lab) -> None:
    lab.topic("t", 9)
    lab.brokers[2].hangs = lambda _: True
    lab.run(5)
    lab.topics["t"][0] = (1, 0, [1, 2], [1, 2], 0)
    lab.run(3)
    assert lab.passes.thinned == 1


def test_brokers_that_show_no_lineage_are_not_asked_for_ever() -> None:
    old = Lab({**VERSIONS, FETCH: (0, 11)})
    try:
        old.topic("t", 7)
        old.run(7)
        assert old.passes.thinned == 1
    finally:
        old.close()

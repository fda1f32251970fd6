"""Impossible lineages: which ones are anomalies, how long they last, and what refutes them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observations import answer, fold, observation, sparse_after, sparse_of
from tidemark.core.events import Observation
from tidemark.core.sparse_state import MAX_ANOMALIES, Anomaly

Lineage = list[tuple[int, int]]


def read(
    lineage: Lineage | None = None, leaders: Lineage | None = None, **fields: Any
) -> Observation:
    """A pass that reads the lineage of broker 2, or the leader's."""
    samples = [answer(1), answer(2, lineage=lineage)]
    return observation(**{"samples": samples, "lineage": leaders, **fields})


DISORDERED = [(3, 50), (4, 40)]
DISORDER = "epoch 4 ends at 40 after epoch 3 ended at 50"
ABOVE_LEADER_EPOCH = "epoch 5 is above the leader epoch 4"
ABOVE_KNOWN_EPOCH = "epoch 5 is above the leader epoch 4 that the broker knows"


@pytest.mark.parametrize(
    ("second", "seen_at"),
    [
        (read(DISORDERED), 11.0),
        # Not read again.
        (read(), 10.0),
        # The newest entry alone refutes nothing.
        (read([(4, 100)]), 10.0),
        (read([(3, 50), (4, 100)]), None),
    ],
)
def test_a_lineage_out_of_order_is_an_anomaly_from_its_first_read(
    second: Observation, seen_at: float | None
) -> None:
    first = Anomaly(2, DISORDER, 10.0, 10.0, of_newest=False)
    assert sparse_after(read(DISORDERED)).anomalies == [first]
    again = [] if seen_at is None else [Anomaly(2, DISORDER, 10.0, seen_at, of_newest=False)]
    assert sparse_after(read(DISORDERED), second).anomalies == again


@pytest.mark.parametrize(
    ("lineages", "what", "since"),
    [
        # The first impossible pair is named.
        ([[(1, 10), (3, 50), (3, 60)]], "epoch 3 ends at 60 after epoch 3 ended at 50", 10.0),
        ([[(1, 10), (3, 50), (2, 60)]], "epoch 2 ends at 60 after epoch 3 ended at 50", 10.0),
        ([[(1, 10), (2, 10), (3, 9)]], "epoch 3 ends at 9 after epoch 2 ended at 10", 10.0),
        # Another disorder is another anomaly.
        ([DISORDERED, [(3, 50), (4, 30)]], "epoch 4 ends at 30 after epoch 3 ended at 50", 11.0),
    ],
)
def test_the_first_impossible_pair_is_named(
    lineages: list[Lineage], what: str, since: float
) -> None:
    found = sparse_after(*map(read, lineages)).anomalies
    assert [(item.what, item.since) for item in found] == [(what, since)]


@pytest.mark.parametrize(
    ("event", "anomalies"),
    [
        (read(leaders=DISORDERED), [(1, DISORDER, False)]),
        (read(leaders=[(5, 2)]), [(1, ABOVE_LEADER_EPOCH, True)]),
        (read(leaders=[(5, 100)]), [(1, ABOVE_LEADER_EPOCH, True)]),
        (read(leaders=[(3, 9), (5, 100)]), [(1, ABOVE_LEADER_EPOCH, True)]),
        (read(leaders=[(4, 100)]), []),
        (read(leaders=[]), []),
        # The leader epoch, or the leader, is unknown.
        (
            read(leaders=[(5, 100)], leader_epoch=None, samples=[answer(1, leader_epoch=None)]),
            [],
        ),
        (read(leaders=[(5, 100)], leader_epoch=None), [(1, ABOVE_KNOWN_EPOCH, True)]),
        (read(leaders=[(5, 100)], leader=None), []),
        # The leader was never sampled.
        (read(leaders=[(3, 9), (4, 100)], samples=[answer(2)]), []),
        (
            read(leaders=[(3, 9), (5, 100)], samples=[answer(2)]),
            [(1, ABOVE_LEADER_EPOCH, True)],
        ),
        # A follower is compared with the epoch that its broker knows.
        (read([(5, 100)]), [(2, ABOVE_KNOWN_EPOCH, True)]),
        (read(samples=[answer(1), answer(2, leader_epoch=5, lineage=[(5, 100)])]), []),
        (read(samples=[answer(1), answer(2, leader_epoch=None, lineage=[(5, 100)])]), []),
    ],
)
def test_records_of_an_epoch_above_the_known_one_are_an_anomaly_of_the_newest_entry(
    event: Observation, anomalies: list[tuple[int, str, bool]]
) -> None:
    expected = [Anomaly(broker, what, 10.0, 10.0, newest) for broker, what, newest in anomalies]
    assert sparse_after(event).anomalies == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (read(leaders=[(5, 100)]), read(leaders=[(4, 100)])),
        (read(leaders=[(5, 100)]), read(leaders=[(3, 9), (4, 100)])),
        (read([(5, 100)]), read([(4, 100)])),
        # What the broker knew before it was silent proves nothing.
        (read(), read(samples=[answer(1), answer(2, lineage=[(5, 100)], error="timed_out")])),
        # The broker was unassigned.
        (read(DISORDERED), read(replicas=[1])),
    ],
)
def test_an_anomaly_ends_or_does_not_begin(first: Observation, second: Observation) -> None:
    assert sparse_after(first, second).anomalies == []


def test_a_former_leaders_lineage_is_compared_with_the_epoch_that_it_knows() -> None:
    state = fold(None, observation(leader=2, leader_epoch=5))
    found = sparse_of(
        fold(state, observation(observed_at=11.0, lineage=[(5, 100)], samples=[answer(1)]))
    ).anomalies
    assert [(item.broker, item.what) for item in found] == [(1, ABOVE_KNOWN_EPOCH)]


def test_anomalies_of_several_brokers_are_kept_apart() -> None:
    both = read(samples=[answer(1, lineage=DISORDERED), answer(2, lineage=DISORDERED)])
    for second, brokers in (
        (read(), [1, 2]),
        (read([(4, 100), (5, 100)]), [1, 2]),
        (read([(3, 50), (4, 100)]), [1]),
    ):
        assert [item.broker for item in sparse_after(both, second).anomalies] == brokers


def test_a_bounded_number_of_anomalies_is_kept() -> None:
    samples = [answer(broker, lineage=DISORDERED) for broker in range(1, MAX_ANOMALIES + 3)]
    brokers = [item.broker for item in sparse_after(observation(samples=samples)).anomalies]
    assert brokers == list(range(1, MAX_ANOMALIES + 1))

"""What shows that a log was cut, and what only looks like it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observed import answer, fold, observation
from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context
from tidemark.detect.detector import Condition
from tidemark.detect.log_truncation import evaluate
from tidemark.detect.thresholds import Thresholds

CONTEXT = Context("main", "orders", 0, 11.0, 1000.0, Thresholds(), ClusterState())
# The leader of epoch 5: epoch 4 ended at 90.
LEADER: dict[str, Any] = {
    "leader_epoch": 5,
    "lineage": [(4, 90), (5, 200)],
    "lineage_complete_from": 4,
    "observed_at": 11.0,
}


def before(**fields: Any) -> PartitionState:
    """Broker 2 had 100 records of epoch 4."""
    return fold(None, observation(samples=[answer(1), answer(2, **fields)]))


def told(known: PartitionState, sample: dict[str, Any], **fields: Any) -> list[Condition]:
    """What is said of broker 2 when it answers `sample` under epoch 5."""
    event = observation(
        **{**LEADER, "samples": [answer(2, **{"leader_epoch": 5, **sample})], **fields}
    )
    return list(evaluate(known, fold(known, event), CONTEXT))


def cuts(known: PartitionState, sample: dict[str, Any], **fields: Any) -> list[Any]:
    return [condition.evidence["cut_at"] for condition in told(known, sample, **fields)]


def test_a_log_end_that_fell_was_cut() -> None:
    assert cuts(before(), {"log_end_offset": 99}) == [90], (
        "an in-sync replica was cut where its leader's epoch ended"
    )
    assert cuts(before(), {"log_end_offset": 99}, in_sync_replicas=[1]) == [99]
    assert cuts(before(), {"log_end_offset": 80}) == [80]


def test_a_log_that_grew_past_its_cut_shows_it_by_a_lineage() -> None:
    assert cuts(before(), {"log_end_offset": 150}) == [90], (
        "the leader's, for a replica in sync with it"
    )
    assert cuts(
        before(), {"log_end_offset": 150, "lineage": [(4, 70), (5, 150)]}, in_sync_replicas=[1]
    ) == [70], "its own"
    assert cuts(before(), {"log_end_offset": 150}, in_sync_replicas=[1]) == [], (
        "it may hold its tail still"
    )
    assert cuts(before(), {"log_end_offset": 150}, in_sync_replicas=None) != [], (
        "what is not told stays as it was"
    )


def test_a_lineage_that_was_not_read_again_tells_of_an_earlier_log() -> None:
    """It was read at 90; the log grew to 100 after that."""
    known = fold(
        before(),
        observation(samples=[answer(2, lineage=[(4, 90)], log_end_offset=90)]),
        observation(),
    )
    assert known.replicas[1].lineage == [(4, 90)]
    assert cuts(known, {"log_end_offset": 100}, in_sync_replicas=[1]) == []


@pytest.mark.parametrize(("known_epoch", "epoch"), [(None, 5), (4, None), (5, 5), (None, None)])
def test_without_a_new_epoch_only_the_log_end_tells(
    known_epoch: int | None, epoch: int | None
) -> None:
    assert (
        cuts(before(leader_epoch=known_epoch), {"leader_epoch": epoch, "log_end_offset": 150}) == []
    )
    assert cuts(
        before(leader_epoch=known_epoch), {"leader_epoch": epoch, "log_end_offset": 95}
    ) == [95]


@pytest.mark.parametrize(
    ("log_start", "cut"), [(None, [90]), (0, [90]), (89, [90]), (90, []), (91, [])]
)
def test_an_epoch_that_ends_at_the_log_start_has_expired(
    log_start: int | None, cut: list[int]
) -> None:
    assert cuts(before(), {"log_end_offset": 150, "log_start_offset": log_start}) == cut


def test_a_log_that_was_cut_to_its_first_record() -> None:
    lineage = [(4, 1), (5, 150)]
    assert cuts(before(), {"log_end_offset": 150, "lineage": lineage}) == [1]
    assert cuts(
        before(), {"log_end_offset": 150, "lineage": lineage, "log_start_offset": None}
    ) == [1]


@pytest.mark.parametrize(
    ("known_start", "start", "end", "anew"),
    [
        (0, 0, 1, False),
        (None, None, 1, False),
        (0, 0, 0, True),
        (30, 0, 30, True),
        (30, None, 31, False),
        (0, 30, 30, True),
        (None, 30, 31, False),
    ],
)
def test_a_log_of_which_nothing_is_left_began_anew(
    known_start: int | None, start: int | None, end: int, anew: bool
) -> None:
    (condition,) = told(
        before(log_start_offset=known_start),
        {"log_end_offset": end, "log_start_offset": start},
        in_sync_replicas=[1],
    )
    assert condition.evidence["began_anew"] is anew
    assert ("anew" in condition.description) is anew


def test_samples_of_two_topics_or_two_collectors_have_no_order() -> None:
    assert cuts(before(), {"log_end_offset": 80}, topic_id="b") == []
    known = before()
    known.collector_epoch = 7
    assert cuts(known, {"log_end_offset": 80}) == []

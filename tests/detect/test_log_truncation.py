"""Which samples prove that a log was cut."""

from __future__ import annotations

from typing import Any

import pytest

from tests.detect.conditions import context, evidence_of
from tests.evolve.observations import answer, fold, observation, silent
from tidemark.core.events import Replica
from tidemark.core.partition import PartitionState
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.detector import Condition
from tidemark.detect.log_truncation import evaluate

# The leader of epoch 5: epoch 4 ended at 90.
LEADER: dict[str, Any] = {
    "leader_epoch": 5,
    "lineage": [(4, 90), (5, 200)],
    "lineage_complete_from": 4,
    "observed_at": 11.0,
}
NOT_IN_SYNC: dict[str, Any] = {"in_sync_replicas": [1]}


def before(**fields: Any) -> PartitionState:
    """Broker 2 had 100 records of epoch 4."""
    return fold(None, observation(samples=[answer(1), answer(2, **fields)]))


def found(
    known: PartitionState, sample: dict[str, Any], *alerts: TrackedAlert, **fields: Any
) -> list[Condition]:
    """The conditions when broker 2 answers `sample` under epoch 5."""
    samples = [answer(2, **{"leader_epoch": 5, **sample})]
    event = observation(**{**LEADER, "samples": samples, **fields})
    return list(evaluate(known, fold(known, event), context(*alerts)))


def cuts(known: PartitionState, sample: dict[str, Any], **fields: Any) -> list[Any]:
    return [evidence_of(condition)["cut_at"] for condition in found(known, sample, **fields)]


@pytest.mark.parametrize(
    ("sample", "fields", "cut"),
    [
        # The log end offset fell. A replica in sync was cut where the leader's epoch ended.
        ({"log_end_offset": 99}, {}, [90]),
        ({"log_end_offset": 99}, NOT_IN_SYNC, [99]),
        ({"log_end_offset": 80}, {}, [80]),
        # The log grew past its cut: a lineage shows it, the leader's or its own.
        ({"log_end_offset": 150}, {}, [90]),
        ({"log_end_offset": 150}, {"in_sync_replicas": None}, [90]),
        ({"log_end_offset": 150, "lineage": [(4, 70), (5, 150)]}, NOT_IN_SYNC, [70]),
        # The epoch may go on: the leader of a later one is not known yet.
        ({"log_end_offset": 150}, {"leader_epoch": 4, "lineage": [(4, 90)]}, []),
        # It may still hold its tail.
        ({"log_end_offset": 150}, NOT_IN_SYNC, []),
        # An epoch that ends at the log start has expired.
        ({"log_end_offset": 150, "log_start_offset": None}, {}, [90]),
        ({"log_end_offset": 150, "log_start_offset": 89}, {}, [90]),
        ({"log_end_offset": 150, "log_start_offset": 90}, {}, []),
        ({"log_end_offset": 150, "log_start_offset": 91}, {}, []),
        # All but the first record were cut.
        ({"log_end_offset": 150, "lineage": [(4, 1), (5, 150)]}, {}, [1]),
        (
            {"log_end_offset": 150, "lineage": [(4, 1), (5, 150)], "log_start_offset": None},
            {},
            [1],
        ),
        # Every epoch of its log is later.
        ({"log_end_offset": 150, "lineage": [(5, 150)]}, {}, []),
        # The sample does not show an end.
        ({"log_end_offset": None}, {}, []),
        ({"log_end_offset": 80, "error": "timed_out"}, {}, []),
        # Samples of two topics have no order.
        ({"log_end_offset": 80}, {"topic_id": "b"}, []),
    ],
)
def test_where_a_log_was_cut(
    sample: dict[str, Any], fields: dict[str, Any], cut: list[int]
) -> None:
    assert cuts(before(), sample, **fields) == cut


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (answer(1, log_end_offset=None), answer(1)),
        (answer(1), answer(1, log_end_offset=None)),
        (answer(1), silent(1)),
    ],
)
def test_a_replica_without_two_ends_does_not_hide_another(first: Replica, second: Replica) -> None:
    known = fold(None, observation(samples=[first, answer(2)]))
    samples = [second, answer(2, log_end_offset=80)]
    after = fold(known, observation(observed_at=11.0, samples=samples))
    assert [c.broker for c in evaluate(known, after, context())] == [2]


def test_samples_of_two_collectors_have_no_order() -> None:
    known = before()
    known.collector_epoch = 7
    assert cuts(known, {"log_end_offset": 80}) == []


def test_a_lineage_that_was_not_read_again_is_that_of_an_earlier_log() -> None:
    """It was read when the log ended at 90; the log grew to 100 after that."""
    read = observation(samples=[answer(2, lineage=[(4, 90)], log_end_offset=90)])
    known = fold(before(), read, observation())
    assert known.replicas[1].lineage == [(4, 90)]
    assert cuts(known, {"log_end_offset": 100}, **NOT_IN_SYNC) == []


@pytest.mark.parametrize(("known_epoch", "epoch"), [(None, 5), (4, None), (5, 5), (None, None)])
def test_without_a_new_epoch_only_the_log_end_offset_is_a_proof(
    known_epoch: int | None, epoch: int | None
) -> None:
    known = before(leader_epoch=known_epoch)
    for log_end, cut in ((150, []), (95, [95])):
        assert cuts(known, {"leader_epoch": epoch, "log_end_offset": log_end}) == cut


def test_the_end_of_an_older_epoch_is_not_that_of_the_log() -> None:
    assert cuts(before(leader_epoch=4), {"leader_epoch": 3, "log_end_offset": 95}) == []


@pytest.mark.parametrize(
    ("known_start", "start", "end", "from_scratch"),
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
def test_a_log_without_any_of_its_records_started_from_scratch(
    known_start: int | None, start: int | None, end: int, from_scratch: bool
) -> None:
    sample = {"log_end_offset": end, "log_start_offset": start}
    (condition,) = found(before(log_start_offset=known_start), sample, **NOT_IN_SYNC)
    assert evidence_of(condition)["began_anew"] is from_scratch
    assert ("from scratch" in condition.description) is from_scratch


def test_an_empty_log_had_no_record() -> None:
    known = before(log_start_offset=100)
    (condition,) = found(known, {"log_end_offset": 0, "log_start_offset": 0}, **NOT_IN_SYNC)
    assert condition.description.startswith("Broker 2 started its log of ")
    assert "; it had no record." in condition.description


def test_the_age_of_a_reading_has_whole_microseconds() -> None:
    """Broker 1 was read last at 10; its epoch was over 1.0000004 s later."""
    (condition,) = found(before(), {"log_end_offset": 80}, observed_at=11.0000004)
    assert evidence_of(condition)["high_watermark_age_ms"] == 1000.0


@pytest.mark.parametrize(
    ("holders", "severity"),
    [
        ([(2, "held", 81)], "critical"),
        # It cuts what lies above them, or is not the only one that has them.
        ([(2, "held", 80)], "info"),
        ([(2, "held", 81), (3, "unknown", None)], "critical"),
        ([(2, "held", 81), (3, "held", 81)], "info"),
        ([(3, "held", 81)], "info"),
    ],
)
def test_the_only_holder_of_lost_records_cuts_some(
    holders: list[tuple[int, str, int | None]], severity: str
) -> None:
    loss = TrackedAlert("COMMITTED_DATA_LOSS", None, "critical", 10.0)
    loss.evidence = {
        "proven": [60, 90],
        "records_held_by": [
            {"broker": broker, "state": state, "held_to": held_to}
            for broker, state, held_to in holders
        ],
    }
    (condition,) = found(before(), {"log_end_offset": 80}, loss, **NOT_IN_SYNC)
    assert condition.severity == severity

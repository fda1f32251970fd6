"""Leaderships, elections and losses where metadata has no leader epochs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observations import answer, fold, observation, silent, sparse_of
from tidemark.core.events import Observation
from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.core.partition import PartitionState
from tidemark.evolve.elections import RECENT_SECONDS, ElectionVerdict, judge_election

EPOCHLESS: dict[str, Any] = {"leader_epoch": None, "topic_id": None}


def led(broker: int, at: float, end: int = 100, **fields: Any) -> Observation:
    """An observation in which one broker leads alone and the other one is dead."""
    sample = answer(broker, leads=True, leader_epoch=None, log_end_offset=end, high_watermark=end)
    samples = sorted([sample, silent(3 - broker, "refused")], key=lambda sample: sample.broker)
    known: dict[str, Any] = {
        **EPOCHLESS,
        "observed_at": at,
        "leader": broker,
        "in_sync_replicas": [broker],
        "metadata_from": [3, broker],
        "samples": samples,
        "committed": end,
    }
    return observation(**{**known, **fields})


def vacant(at: float, **fields: Any) -> Observation:
    known: dict[str, Any] = {
        **EPOCHLESS,
        "observed_at": at,
        "leader": None,
        "in_sync_replicas": [],
        "metadata_from": [3],
        "samples": [silent(1, "refused"), silent(2, "refused")],
        "committed": None,
    }
    return observation(**{**known, **fields})


def verdict(before: PartitionState, event: Observation) -> ElectionVerdict | None:
    election = judge_election(before, fold(before, event))
    return None if election is None else election.verdict


ALONE = fold(None, led(1, 10.0, in_sync_replicas=[1, 2]), led(1, 11.0, end=120))
WITHOUT_LEADER = fold(ALONE, vacant(13.0))


def test_all_replicas_that_refuse_and_one_witness_make_a_partition_leaderless() -> None:
    assert WITHOUT_LEADER.leaderless


@pytest.mark.parametrize(
    "fields",
    [
        {"samples": [silent(1, "refused"), silent(2, "timed_out")]},
        {"metadata_from": []},
        {"replicas": []},
        {"leader_epoch": 1},
        {"leader": 1},
    ],
    ids=str,
)
def test_less_leaves_it_unknown(fields: dict[str, Any]) -> None:
    assert not fold(ALONE, vacant(13.0, **fields)).leaderless


TWO_ACT = [answer(1, leads=True, leader_epoch=None), answer(2, leads=True)]


@pytest.mark.parametrize(
    ("before", "event", "expected"),
    [
        # A leader from outside of the last set.
        (ALONE, led(2, 16.0), ElectionVerdict.SUSPECTED),
        (WITHOUT_LEADER, led(2, 16.0), ElectionVerdict.SUSPECTED),
        # It joined, came with a reassignment, was not named or not seen, or two act as leader.
        (WITHOUT_LEADER, led(2, 16.0, in_sync_replicas=[1, 2]), None),
        (WITHOUT_LEADER, led(2, 16.0, replicas=[2, 3]), None),
        (WITHOUT_LEADER, led(2, 16.0, leader=None), None),
        (
            WITHOUT_LEADER,
            led(2, 16.0, samples=[silent(1, "refused"), silent(2, "refused")]),
            None,
        ),
        (WITHOUT_LEADER, led(2, 16.0, samples=TWO_ACT), None),
        # The old leader may return to an empty set.
        (WITHOUT_LEADER, led(1, 16.0), None),
    ],
)
def test_a_leader_after_one_that_was_alone(
    before: PartitionState, event: Observation, expected: ElectionVerdict | None
) -> None:
    assert verdict(before, event) is expected


def test_a_leader_that_answered_a_moment_before_handed_over() -> None:
    follower = answer(2, leads=False, leader_epoch=None, log_end_offset=60)
    leader = answer(1, leads=True, leader_epoch=None)
    before = fold(None, led(1, 10.0, samples=[leader, follower]))
    assert verdict(before, led(2, 13.0)) is None
    assert verdict(before, led(2, 13.5, end=90)) is ElectionVerdict.SUSPECTED


@pytest.mark.parametrize(
    ("seconds", "suspected"),
    [(RECENT_SECONDS, None), (RECENT_SECONDS + 0.1, ElectionVerdict.SUSPECTED)],
)
def test_a_follower_that_had_all_a_moment_before_was_about_to_join(
    seconds: float, suspected: ElectionVerdict | None
) -> None:
    follower = answer(2, leads=False, leader_epoch=None, log_end_offset=100)
    before = fold(None, led(1, 10.0, samples=[answer(1, leader_epoch=None), follower]))
    assert verdict(before, led(2, 10.0 + seconds)) is suspected
    # What the last leader had committed counts, also while there is none.
    samples = [silent(1, "refused"), follower]
    unled = fold(before, vacant(11.0, samples=samples))
    assert verdict(unled, led(2, 10.0 + seconds)) is suspected


def test_what_was_committed_since_the_leader_was_in_sync_is_suspected() -> None:
    state = fold(ALONE, vacant(13.0), led(2, 16.0, end=150))
    found = sparse_of(state).suspicion
    assert found is not None
    assert (found.start, found.end, found.leader, found.outside) == (100, 120, 2, True)


SILENT = [silent(1, "refused"), silent(2, "timed_out")]


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        # The leader does not answer, or may be a deposed one.
        ({"samples": SILENT, "committed": None}, True),
        ({"end": 150, "metadata_from": [2], "in_sync_replicas": [1, 2]}, True),
        # It shows the records.
        ({"end": 150}, False),
    ],
)
def test_a_pass_without_a_verdict_keeps_the_first_read(fields: dict[str, Any], kept: bool) -> None:
    first = fold(ALONE, led(2, 16.0, end=60))
    assert first.loss_candidate is not None
    after = fold(first, led(2, 17.0, **fields))
    assert after.loss_candidate == (first.loss_candidate if kept else None)


def test_an_open_election_without_epochs_is_of_no_epoch() -> None:
    read: dict[str, Any] = {"lineage": [(3, 120)], "lineage_complete_from": 3}
    before = fold(ALONE, led(1, 12.0, end=120, **read))
    found = sparse_of(fold(before, led(2, 16.0))).open_election
    assert found is not None
    assert (found.epoch_before, found.epoch_after) == (NO_EPOCH, NO_EPOCH)


def claim(*events: Observation) -> tuple[int, int, int, int] | None:
    read = fold(ALONE, *events).loss_candidate
    if read is None or not read.confirmed:
        return None
    return read.epoch_before, read.epoch_after, read.start, read.end


SHORT = {"committed": None}


@pytest.mark.parametrize(
    ("fields", "claimed"),
    [
        ({"metadata_from": [2, 3]}, True),
        # None is left to ask, and the controller left it alone in the set.
        ({"metadata_from": [2]}, True),
        ({"metadata_from": [2], "in_sync_replicas": [1, 2]}, False),
        # The leader before it answers, and does not name it.
        (
            {
                "metadata_from": [2, 3],
                "samples": [
                    answer(1, leads=True, leader_epoch=None, log_end_offset=120),
                    answer(2, leads=True, leader_epoch=None, log_end_offset=70),
                ],
            },
            False,
        ),
    ],
    ids=["another names it", "alone", "old set", "rival"],
)
def test_a_deposed_leader_proves_no_loss(fields: dict[str, Any], claimed: bool) -> None:
    reads = [led(2, at, end=70, **{**SHORT, **fields}) for at in (16.0, 17.0)]
    assert claim(*reads) == ((NO_EPOCH, NO_EPOCH, 70, 120) if claimed else None)


def test_two_reads_are_of_one_leader() -> None:
    reads = [led(broker, at, end=70, **SHORT) for broker, at in ((2, 16.0), (1, 17.0), (2, 18.0))]
    assert claim(*reads) is None


def dated(broker: int, at: float, lineage: list[tuple[int, int]], **fields: Any) -> Observation:
    return led(
        broker,
        at,
        end=lineage[-1][1],
        lineage=lineage,
        lineage_complete_from=0,
        compacted=False,
        **fields,
    )


def test_a_lineage_proves_a_loss_after_the_leader_has_written_past_it() -> None:
    events = [dated(1, 12.0, [(0, 130)]), vacant(13.0)]
    after = [dated(2, 16.0, [(0, 100), (2, 180)]), dated(2, 17.0, [(0, 100), (2, 190)])]
    assert claim(*events, *after) == (0, 2, 100, 130)
    assert claim(*events, dated(2, 16.0, [(0, 130), (2, 180)])) is None


def test_a_high_watermark_is_dated_up_to_the_end_of_the_lineage() -> None:
    """The leader wrote its first record between the two reads."""
    state = fold(ALONE, dated(1, 12.0, [(0, 120)], committed=125))
    dates = {entry.epoch: entry.high_watermark for entry in state.committed}
    assert dates == {NO_EPOCH: 125, 0: 120}


def test_a_leader_elected_again_unseen_leaves_no_old_end_in_its_lineage() -> None:
    state = fold(ALONE, dated(1, 12.0, [(0, 120)]))
    event = led(1, 13.0, end=150, lineage=[(2, 150)], lineage_complete_from=2)
    assert fold(state, event).lineage == [(2, 150)]

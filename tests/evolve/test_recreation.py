"""A topic that was deleted and created again: by its id, by epochs that went back, by its logs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.evolve.observations import answer, fold, observation, silent
from tidemark.core.cluster import ClusterState, CollectorClock
from tidemark.core.events import Observation, Replica
from tidemark.core.leader_epochs import Committed, LineageEntries
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState
from tidemark.core.sparse_state import (
    FORMER_TOPIC_SECONDS,
    EpochStart,
    FormerTopic,
    LogReset,
    SparseState,
    Suspicion,
    copy_of,
)
from tidemark.evolve.observation import GAP_SECONDS, evolve
from tidemark.evolve.recreation import (
    BACK_SECONDS,
    MAX_HOLD_SECONDS,
    RESET_SECONDS,
    apply_resets,
    is_new_topic,
    is_renumbered,
    may_be_new_log,
    may_be_recreated,
    may_mix_topics,
)

# Broker 1 leads epoch 4; both logs end at 100, and 90 is committed.
SEEN = fold(None, observation())
WITHOUT_ID = fold(None, observation(topic_id=None))


def new(*samples: Replica, **fields: Any) -> Observation:
    """An observation after which the logs are those of the new topic."""
    both = samples or (answer(1, log_end_offset=3), answer(2, log_end_offset=3))
    return observation(**{"observed_at": 11.0, "samples": list(both), **fields})


@pytest.mark.parametrize(
    ("held", "event"),
    [
        (True, new()),
        # The leader is enough: it never cuts its log.
        (True, new(answer(1, log_end_offset=99), answer(2))),
        (False, new(answer(1), answer(2, log_end_offset=99))),
        # Another log became empty since the metadata was read.
        (True, new(answer(1), answer(2, log_end_offset=0), metadata_at=10.0)),
        (False, new(answer(1), answer(2, log_end_offset=0), metadata_at=10.1)),
        (False, new(answer(1), answer(2, log_end_offset=1), metadata_at=10.0)),
        # After an election a log may be shorter.
        (False, new(answer(1, log_end_offset=3, leader_epoch=5), leader_epoch=5)),
        (False, new(answer(1, log_end_offset=3, leader_epoch=5), answer(2))),
        (True, new(answer(1, log_end_offset=0, leader_epoch=5), answer(2))),
        (False, new(answer(1), answer(2))),
        (False, new(silent(1), silent(2))),
        # Of a topic with an id, all replicas must show that its epoch went back.
        (False, new(answer(1, leader_epoch=2), silent(2), leader_epoch=2)),
    ],
)
def test_an_observation_that_may_mix_two_topics_is_held(held: bool, event: Observation) -> None:
    assert may_mix_topics(SEEN, event) is held
    ends = [replica.log_end_offset for replica in fold(SEEN, event).replicas]
    if held:
        assert ends == [100, 100]


def test_metadata_that_was_read_again_ends_the_hold() -> None:
    held = fold(SEEN, new(metadata_at=11.0))
    assert copy_of(held.sparse).mixed_since == 11.0
    assert may_mix_topics(held, new(metadata_at=11.0, observed_at=12.0))
    released = fold(held, new(metadata_at=11.1, observed_at=12.0))
    assert [replica.log_end_offset for replica in released.replicas] == [3, 3]
    assert copy_of(released.sparse).mixed_since is None


@pytest.mark.parametrize(("late", "held"), [(0.0, True), (0.1, False)])
def test_a_hold_has_an_end(late: float, held: bool) -> None:
    state = fold(SEEN, new(metadata_at=11.0))
    again = new(metadata_at=11.0, observed_at=11.0 + MAX_HOLD_SECONDS + late)
    assert may_mix_topics(state, again) is held


BACK: dict[str, Any] = {"topic_id": None, "leader_epoch": 0}


def back(*samples: Replica, **fields: Any) -> Observation:
    older = samples or (
        answer(1, leader_epoch=0, log_end_offset=3),
        answer(2, leader_epoch=0, log_end_offset=3),
    )
    return new(*older, **{**BACK, **fields})


@pytest.mark.parametrize(
    ("is_back", "event"),
    [
        (True, back()),
        # One that forgot its epoch is enough where the others do not answer.
        (True, back(answer(1, leader_epoch=0), silent(2))),
        # A replica that still knows the epoch, or another: the metadata is old.
        (False, back(answer(1, leader_epoch=0), answer(2, leader_epoch=4))),
        (False, back(answer(1, leader_epoch=0), answer(2, leader_epoch=None))),
        (False, back(leader_epoch=4)),
        (False, back(leader_epoch=None)),
        (False, back(silent(1), silent(2))),
    ],
)
def test_without_ids_an_epoch_that_goes_back_twice_is_a_new_topic(
    is_back: bool, event: Observation
) -> None:
    assert not is_new_topic(WITHOUT_ID, event)
    assert may_mix_topics(WITHOUT_ID, event) is is_back
    held = fold(WITHOUT_ID, event)
    again = replace(event, observed_at=12.0)
    assert is_new_topic(held, again) is is_back
    if is_back:
        after = fold(held, again)
        assert (after.leader_epoch, [entry.epoch for entry in after.committed]) == (0, [0])


@pytest.mark.parametrize(
    ("known", "forgot"),
    [(4, True), (1, True), (0, False), (None, False)],
)
def test_a_replica_forgot_only_an_epoch_that_it_knew(known: int | None, forgot: bool) -> None:
    replicas = [replace(each, leader_epoch=known) for each in WITHOUT_ID.replicas]
    state = replace(WITHOUT_ID, replicas=replicas)
    assert may_mix_topics(state, back(answer(1, leader_epoch=0), silent(2))) is forgot
    assert not may_mix_topics(state, back(answer(3, leader_epoch=0), silent(2)))


@pytest.mark.parametrize(
    ("epoch", "known", "sample", "held"),
    [
        (4, 4, 4, True),
        (4, 3, 4, False),
        (4, None, None, True),
        (4, None, 1, False),
        (4, 1, None, True),
    ],
)
def test_a_log_may_fall_only_after_an_election_that_its_replica_knows(
    epoch: int, known: int | None, sample: int | None, held: bool
) -> None:
    state = replace(
        SEEN,
        leader_epoch=epoch,
        replicas=[replace(each, leader_epoch=known) for each in SEEN.replicas],
    )
    event = new(answer(1, log_end_offset=3, leader_epoch=sample), silent(2), leader_epoch=epoch)
    assert may_mix_topics(state, event) is held


def test_another_id_is_a_new_topic_at_once() -> None:
    assert [
        is_new_topic(SEEN, observation(topic_id=topic_id)) for topic_id in ("b", "a", None)
    ] == [True, False, False]


def first_epoch(**fields: Any) -> PartitionState:
    """Without ids, at epoch 0."""
    samples = [answer(1, leader_epoch=0), answer(2, leader_epoch=0)]
    return fold(None, observation(**{**BACK, "samples": samples, **fields}))


def led_again(*samples: Replica, epoch: int = 1, at: float = 11.0) -> Observation:
    both = samples or tuple(
        answer(broker, leads=broker == 2, leader_epoch=epoch, log_end_offset=3) for broker in (1, 2)
    )
    return observation(
        **BACK
        | {
            "leader": 2,
            "leader_epoch": epoch,
            "observed_at": at,
            "samples": list(both),
            "committed": 3,
            "lineage": [(0, 3), (epoch, 3)],
            "lineage_complete_from": 0,
        }
    )


@pytest.mark.parametrize(
    ("suspected", "event"),
    [
        (True, led_again()),
        # A new topic reaches a higher epoch in some time only.
        (False, led_again(epoch=2)),
        (True, led_again(epoch=2, at=12.0)),
        # The log of the leader was not reset, and another replica does not answer.
        (
            False,
            led_again(
                answer(2, leads=True, leader_epoch=1, log_end_offset=95, high_watermark=95),
                silent(1),
            ),
        ),
        # The leader's log was reset.
        (
            True,
            led_again(
                answer(2, leads=True, leader_epoch=1, log_end_offset=3, high_watermark=3),
                silent(1),
            ),
        ),
        # Another replica has the records.
        (
            False,
            led_again(
                answer(2, leads=True, leader_epoch=1, log_end_offset=3, high_watermark=3),
                answer(1, leads=False, leader_epoch=1),
            ),
        ),
    ],
)
def test_a_new_topic_explains_logs_that_end_below_what_was_committed(
    suspected: bool, event: Observation
) -> None:
    after = fold(first_epoch(), event)
    found = copy_of(after.sparse).suspicion
    assert (found is not None) is suspected
    if suspected:
        assert found == Suspicion(3, 90, 2, event.observed_at, recreated=True)
        assert (after.committed, after.loss_candidate) == ([], None)


DATED = Committed(0, 2, 1.0, 2, 1, lineage=[(0, 2), (1, 5)], lineage_complete_from=0)
ONE_RECORD = [ReplicaState(1, 1), ReplicaState(2, 1)]
READ_LATE = Committed(0, 101, 1.0, 101, 1, read_at=10.0)
# Epoch 3, two seconds after that.
SOON: dict[str, Any] = {"leader_epoch": 3, "committed": [READ_LATE], "observed_at": 12.0}


def two_of_three(*, leads: bool) -> dict[str, Any]:
    """Logs of two brokers that were reset at once; `leads`: whether the third one still does."""
    return {
        "replicas": [ReplicaState(1, 100), ReplicaState(2, 100), ReplicaState(3, 100, leads=leads)],
        "assigned": [1, 2, 3],
        "sparse": SparseState(resets=[LogReset(1, 10.0), LogReset(2, 10.0)]),
    }


@pytest.mark.parametrize(
    ("may", "committed", "fields"),
    [
        (True, 101, {}),
        # One log has every record.
        (False, 100, {}),
        # The log of the leader was not reset.
        (False, 101, {"sparse": None}),
        (False, 101, {"sparse": SparseState(resets=[LogReset(2, 10.0)])}),
        # It has an epoch that ended there before.
        (True, 101, {"lineage": [(0, 3), (1, 9)], "committed": [DATED]}),
        (False, 101, {"lineage": [(0, 2), (1, 9)], "committed": [DATED]}),
        # It was committed since the log was reset.
        (True, 90, {"replicas": ONE_RECORD}),
        (False, 90, {"replicas": ONE_RECORD, "sparse": SparseState(resets=[LogReset(1, 9.9)])}),
        # The epoch ended above the end of the log: it is one of the log before.
        (True, 101, {"lineage": [(0, 2), (1, 9)], "committed": [DATED], "replicas": ONE_RECORD}),
        (False, 101, {"topic_id": "a"}),
        # One record was committed, and a log is empty or its end unknown.
        (True, 1, {"replicas": [ReplicaState(1, 0), ReplicaState(2)]}),
        # Only the log of the new topic had it.
        (True, 101, {"lineage": [(0, 2), (1, 9)], "committed": [replace(DATED, at=11.0)]}),
        (True, 101, {"lineage": [(0, 2), (1, 9)], "committed": [replace(DATED, at=10.0)]}),
        # Any epoch that ended in both, above 0 and not above the end of the log.
        (
            False,
            101,
            {
                "lineage": [(0, 3), (1, 5), (2, 9)],
                "committed": [replace(DATED, lineage=[(0, 2), (1, 5), (2, 7)])],
            },
        ),
        (
            False,
            101,
            {"lineage": [(0, 1), (1, 9)], "committed": [replace(DATED, lineage=[(0, 1), (1, 5)])]},
        ),
        (
            True,
            101,
            {"lineage": [(0, 0), (1, 9)], "committed": [replace(DATED, lineage=[(0, 0), (1, 5)])]},
        ),
        (
            False,
            101,
            {
                "lineage": [(0, 100), (1, 109)],
                "committed": [replace(DATED, lineage=[(0, 100), (1, 105)])],
            },
        ),
        (
            True,
            101,
            {
                "lineage": [(0, 101), (1, 109)],
                "committed": [replace(DATED, lineage=[(0, 101), (1, 105)])],
            },
        ),
        # The epoch is too high for a new topic, by when the one before was read last.
        (False, 101, {"leader_epoch": 3, "committed": [READ_LATE], "observed_at": 12.0}),
        (True, 101, {"leader_epoch": 2, "committed": [READ_LATE], "observed_at": 12.0}),
        # Where all logs were reset at once, it may have had more elections.
        (True, 101, {**SOON, "sparse": SparseState(resets=[LogReset(1, 10.0), LogReset(2, 12.0)])}),
        (
            False,
            101,
            {**SOON, "sparse": SparseState(resets=[LogReset(1, 10.0), LogReset(2, 12.1)])},
        ),
        # A deposed leader may still have the log of the deleted topic, beside two others.
        (True, 101, {**SOON, **two_of_three(leads=True)}),
        (False, 101, {**SOON, **two_of_three(leads=False)}),
        (False, 101, {**SOON, "replicas": [ReplicaState(1, 100), ReplicaState(2, leads=True)]}),
        # Nothing is known to be committed: any reset counts.
        (True, 101, {"committed": [], "sparse": SparseState(resets=[LogReset(1, 0.5)])}),
        # Without epochs in metadata, that of the leader's newest record.
        (False, 101, {"leader_epoch": None, "lineage": [(0, 0), (9, 1)]}),
        (True, 101, {"leader_epoch": None, "lineage": [(0, 0), (1, 9)]}),
        (True, 101, {"lineage": [(9, 100)]}),
        # The log ends at 100: it has no record of this epoch any more, or has just that.
        (True, 102, {"leader_epoch": None, "lineage": [(0, 0), (9, 101)]}),
        (False, 102, {"leader_epoch": None, "lineage": [(0, 0), (9, 100)]}),
    ],
)
def test_logs_that_all_end_too_early_may_be_of_a_new_topic(
    may: bool, committed: int, fields: dict[str, Any]
) -> None:
    reset = {"sparse": SparseState(resets=[LogReset(1, 10.0)])}
    state = replace(first_epoch(), **{**reset, **fields})
    assert may_be_recreated(state, state.replicas[0], committed, None) is may


@pytest.mark.parametrize(
    ("may", "found", "resets", "leads"),
    [
        (True, True, [LogReset(1, 10.0, unwatched=True)], False),
        # It was reset before the records were committed.
        (False, True, [LogReset(1, 9.9, unwatched=True)], False),
        # The log ends at 100: it was filled again.
        (False, False, [LogReset(1, 10.0, unwatched=True)], False),
        # A broker without it before has a copy of one that may be new.
        (True, True, [LogReset(2, 10.0, unwatched=True)], False),
        (False, True, [LogReset(2, 10.0)], False),
        # The log of another broker that does not lead goes on, and has the records.
        (False, True, [LogReset(1, 10.0)], False),
        (True, True, [LogReset(1, 10.0)], True),
        (True, True, [LogReset(1, 10.0), LogReset(2, 11.0)], False),
        (False, True, [LogReset(1, 10.0), LogReset(2, 9.9)], False),
        (False, False, [LogReset(1, 10.0), LogReset(2, 11.0)], True),
    ],
)
def test_a_log_that_lacks_records_may_be_of_a_new_topic(
    may: bool, found: bool, resets: list[LogReset], leads: bool
) -> None:
    state = replace(first_epoch(), sparse=SparseState(resets=resets))
    state.replicas[1].leads = leads
    lost = LossCandidate(0, 1, 0, 90, 90, 7) if found else None
    assert may_be_recreated(state, state.replicas[0], 90, lost) is may


@pytest.mark.parametrize(
    ("known", "read", "log_start", "fields", "renumbered"),
    [
        # Epoch 1 begins at 9, and at 22. Where nothing was deleted, no epoch begins later.
        ([(0, 9), (1, 30)], [(0, 22), (1, 40)], 0, {}, True),
        ([(0, 9), (1, 30)], [(0, 22), (1, 40)], 0, {"topic_id": "a"}, False),
        ([(0, 9), (1, 30)], [(0, 22), (1, 40)], 0, {"compacted": True}, False),
        ([(0, 9), (1, 30)], [(0, 9), (1, 40)], 0, {}, False),
        ([(0, 9), (1, 9)], [(0, 22), (1, 40)], 0, {}, False),
        ([(0, 9), (1, 30)], None, 0, {}, False),
        # The first epoch of a cache may begin later in one log than in the other.
        ([(0, 9), (1, 30)], [(0, 22), (1, 40)], 1, {}, False),
        ([(0, 0), (1, 9), (2, 30)], [(0, 0), (1, 22), (2, 40)], 1, {}, True),
    ],
)
def test_an_epoch_that_begins_at_two_offsets_is_of_two_leaderships(
    known: LineageEntries,
    read: LineageEntries | None,
    log_start: int,
    fields: dict[str, Any],
    renumbered: bool,
) -> None:
    entry = Committed(1, 30, 1.0, 30, 1, log_start_offset=log_start, lineage=known)
    assert is_renumbered(PartitionState(committed=[entry], lineage=read, **fields)) is renumbered


def test_a_held_observation_leaves_the_other_rare_parts_as_they_are() -> None:
    before = replace(SEEN, sparse=SparseState(epoch_starts=[EpochStart(5.0, 4)]))
    after = copy_of(fold(before, new()).sparse)
    assert (after.mixed_since, after.epoch_starts) == (11.0, [EpochStart(5.0, 4)])


def log_resets(before: PartitionState, event: Observation) -> list[LogReset]:
    after = replace(before)
    apply_resets(after, before, replace(event, leader_epoch=1), unwatched=False)
    return after.resets


def test_resets_are_kept_for_a_while() -> None:
    resets = [LogReset(1, 11.0), LogReset(2, 11.0)]
    after = replace(WITHOUT_ID, sparse=SparseState(resets=resets))
    for late, kept in ((0.0, resets), (0.1, [])):
        assert (
            log_resets(
                after, sampled(answer(1), answer(2), observed_at=11.0 + RESET_SECONDS + late)
            )
            == kept
        )
    assert log_resets(after, observation(topic_id="a")) == [], "the id decides from now on"


def sampled(*samples: Replica, **fields: Any) -> Observation:
    return observation(topic_id=None, samples=list(samples), **fields)


def with_lineage(*lineage: tuple[int, int], **fields: Any) -> Observation:
    return sampled(
        answer(1), answer(2), **{"lineage": [*lineage], "lineage_complete_from": 0, **fields}
    )


def of_four(*ends: int) -> Observation:
    return sampled(
        *(answer(broker, log_end_offset=end) for broker, end in enumerate(ends, 1)),
        replicas=[1, 2, 3, 4][: len(ends)],
    )


# The leader's, by one record.
SHORTER = answer(1, log_end_offset=99)


@pytest.mark.parametrize(
    ("before", "event", "resets"),
    [
        (WITHOUT_ID, new(topic_id=None), [LogReset(1, 11.0), LogReset(2, 11.0)]),
        (SEEN, new(topic_id=None), []),
        # The leader's high watermark was not read, and is that of the partition.
        (
            fold(None, sampled(answer(1, high_watermark=None), answer(2))),
            new(topic_id=None),
            [LogReset(1, 11.0), LogReset(2, 11.0)],
        ),
        # A log below its own high watermark.
        (WITHOUT_ID, sampled(SHORTER, answer(2, log_end_offset=90)), []),
        (WITHOUT_ID, sampled(SHORTER, answer(2, log_end_offset=89)), [LogReset(2, 10.0)]),
        # An empty log goes on from nothing, also where no high watermark of its own is known.
        (
            fold(None, sampled(answer(1), answer(2, high_watermark=None))),
            sampled(SHORTER, answer(2, log_end_offset=0)),
            [LogReset(2, 10.0)],
        ),
        (
            fold(None, sampled(answer(1), answer(2, high_watermark=None))),
            sampled(SHORTER, answer(2, log_end_offset=1)),
            [],
        ),
        (
            fold(None, sampled(SHORTER, answer(2, high_watermark=0), committed=0)),
            sampled(silent(1), answer(2, log_end_offset=0)),
            [],
        ),
        # The first records of a log are of a later epoch than they were.
        (
            fold(None, with_lineage((4, 100))),
            with_lineage((4, 0), (5, 100)),
            [LogReset(1, 10.0)],
        ),
        (
            fold(None, with_lineage((4, 100))),
            sampled(SHORTER, answer(2, lineage=[(4, 0), (5, 100)])),
            [LogReset(2, 10.0)],
        ),
        (fold(None, with_lineage((4, 1))), with_lineage((4, 0), (5, 9)), [LogReset(1, 10.0)]),
        (fold(None, with_lineage((3, 0), (4, 100))), with_lineage((3, 0), (4, 100)), []),
        # Within one leadership the leader's log was cut: it may be of a new topic, and any other.
        (
            fold(None, with_lineage((0, 50), (1, 100), leader_epoch=1)),
            with_lineage((0, 40), (1, 100)),
            [LogReset(1, 10.0, unwatched=True), LogReset(2, 10.0, unwatched=True)],
        ),
        (
            fold(None, with_lineage((0, 50), (1, 100), leader_epoch=1)),
            with_lineage((0, 60), (1, 100)),
            [],
        ),
        # All replicas are others.
        (
            WITHOUT_ID,
            sampled(answer(3), answer(4), replicas=[3, 4], leader=3),
            [LogReset(3, 10.0, unwatched=True), LogReset(4, 10.0, unwatched=True)],
        ),
        # All logs but the leader's became empty: two or more.
        (
            fold(None, of_four(100, 100, 100)),
            of_four(100, 0, 0),
            [LogReset(2, 10.0), LogReset(3, 10.0)],
        ),
        (fold(None, of_four(100, 100, 100)), of_four(100, 1, 1), []),
        (fold(None, of_four(100, 100)), of_four(100, 0), []),
        (fold(None, of_four(100, 100, 100, 100)), of_four(100, 0, 0, 100), []),
        # After a reset, a log that goes on shows nothing of the topic before.
        (
            replace(WITHOUT_ID, sparse=SparseState(resets=[LogReset(2, 9.0)])),
            sampled(answer(1), answer(2, log_end_offset=89)),
            [LogReset(2, 10.0)],
        ),
        # A replica that no reassignment added may be of a new topic.
        (WITHOUT_ID, sampled(SHORTER, answer(3)), [LogReset(3, 10.0)]),
        (WITHOUT_ID, sampled(SHORTER, answer(3), adding=[3]), []),
        # The leader's log goes on, so the topic does.
        (WITHOUT_ID, sampled(answer(1), answer(2, log_end_offset=89)), []),
        # One that only itself names may be cut off.
        (
            WITHOUT_ID,
            sampled(answer(1), answer(2, log_end_offset=89), metadata_from=[1]),
            [LogReset(2, 10.0)],
        ),
        (WITHOUT_ID, sampled(answer(1), answer(3)), []),
        # A replica that knows an older epoch than it did is of a new topic.
        (
            WITHOUT_ID,
            sampled(answer(1, leader_epoch=3), answer(3)),
            [LogReset(1, 10.0), LogReset(3, 10.0)],
        ),
        (WITHOUT_ID, sampled(silent(1), answer(3)), [LogReset(3, 10.0)]),
        (PartitionState(), sampled(answer(1), answer(3)), []),
    ],
)
def test_which_logs_were_reset(
    before: PartitionState, event: Observation, resets: list[LogReset]
) -> None:
    assert log_resets(before, event) == resets
    after = replace(before, sparse=SparseState(resets=resets))
    watched = {reset.broker for reset in resets if not reset.unwatched}
    assert {broker for broker in range(1, 5) if may_be_new_log(after, broker)} == watched


def test_an_empty_partition_is_no_new_topic() -> None:
    """Nothing was committed that its logs could lack."""
    samples = [answer(broker, leader_epoch=0, log_end_offset=0) for broker in (1, 2)]
    event = observation(**{**BACK, "samples": samples, "committed": None})
    for state in (fold(None, event), fold(None, event, replace(event, observed_at=11.0))):
        assert copy_of(state.sparse).suspicion is None


def test_a_suspicion_leaves_the_other_rare_parts_as_they_are() -> None:
    empty = [answer(b, leads=b == 2, leader_epoch=1, log_end_offset=0) for b in (1, 2)]
    before = replace(first_epoch(), sparse=SparseState(epoch_starts=[EpochStart(5.0, 0)]))
    after = copy_of(fold(before, led_again(*empty)).sparse)
    assert after.suspicion == Suspicion(0, 90, 2, 11.0, recreated=True)
    assert [start.epoch for start in after.epoch_starts] == [0, 1]


@pytest.mark.parametrize(
    ("topic_id", "lineage", "former"),
    [
        ("a", None, FormerTopic("a", 4, 12.0, restored=True)),
        # Without an id the leader's log shows whether it is the same topic.
        (None, [(1, 30), (2, 40)], FormerTopic(None, 4, 12.0, restored=True)),
        (None, [(1, 31), (2, 40)], None),
        (None, None, None),
    ],
)
def test_epochs_that_go_back_at_all_replicas_of_a_topic_are_those_of_a_backup(
    topic_id: str | None, lineage: LineageEntries | None, former: FormerTopic | None
) -> None:
    known = {"topic_id": topic_id, "lineage": [(1, 30), (4, 100)], "lineage_complete_from": 0}
    seen = fold(None, observation(**known))
    back = known | {
        "lineage": lineage,
        "leader_epoch": 2,
        "committed": 40,
        "leader_log_end_offset_before": 40,
    }
    old = observation(samples=[answer(1, leader_epoch=2), answer(2, leader_epoch=2)], **back)
    held = fold(seen, replace(old, observed_at=11.0))
    assert held.leader_epoch == 4
    after = fold(held, replace(old, observed_at=12.0))
    assert (after.leader_epoch, after.former_topic) == (2, former)
    # A replica that has not forgotten the epoch shows that the others are late.
    one = observation(samples=[answer(1, leader_epoch=2), answer(2)], **back)
    late = fold(seen, replace(one, observed_at=11.0), replace(one, observed_at=12.0))
    assert (late.leader_epoch, late.former_topic) == (4, None)


def test_the_id_of_the_topic_before_counts_again_after_some_observations_in_a_row() -> None:
    first, second = observation(), observation(topic_id="b", leader_epoch=0)
    state = fold(SEEN, second)
    for _ in range(2):
        state = fold(state, first, first, second)
    assert state.topic_id == "b"
    assert state.former_topic is not None
    assert (state.former_topic.returned, state.former_topic.in_a_row) == (4, 0)
    assert fold(state, first, first, first).topic_id == "a"
    assert (
        fold(state, replace(second, observed_at=10.1 + FORMER_TOPIC_SECONDS)).former_topic is None
    )


def test_after_a_gap_any_log_may_be_of_a_new_topic() -> None:
    lineage = {"lineage": [(3, 40), (4, 100)], "lineage_complete_from": 0}
    before = fold(None, observation(topic_id=None, leader_epoch=1, **lineage))
    for seconds, number, more, marked, collector, clock in (
        (GAP_SECONDS + 0.1, 1, {}, [1, 2], ("c1", 1), None),
        (GAP_SECONDS, 1, {}, [], ("c1", 1), None),
        # A quiet partition was seen in the passes between, if these are known and saw a broker.
        (GAP_SECONDS + 0.1, 9, {}, [], ("c1", 1), None),
        (GAP_SECONDS + 0.1, 9, {}, [], ("c1", 1), CollectorClock(1, 9, 10.1, 0.0, 1e3)),
        (
            GAP_SECONDS + 0.1,
            9,
            {},
            [1, 2],
            ("c1", 1),
            CollectorClock(1, 9, 10.1, 0.0, 1e3, blind_passes=1),
        ),
        (GAP_SECONDS + 0.1, 9, {}, [1, 2], ("c1", 1), CollectorClock(1, 9, 9.9, 0.0, 1e3)),
        # So many elections take longer.
        (GAP_SECONDS + 0.1, 1, {"leader_epoch": 4}, [], ("c1", 1), None),
        (GAP_SECONDS + 0.1, 1, {**lineage, "lineage": [(3, 40), (4, 100)]}, [], ("c1", 1), None),
        # A process that is started again has the same clock.
        (0.0, 1, {}, [], ("c1", 2), None),
        (0.5, 1, {}, [], ("c1", 2), None),
        (GAP_SECONDS, 1, {}, [], ("c1", 2), None),
        (GAP_SECONDS + 0.1, 1, {}, [1, 2], ("c1", 2), None),
        # By the clock of another collector no one knows how long it was.
        (1.0, 1, {"leader_epoch": 4}, [1, 2], ("c2", 1), None),
        (1.0, 1, {**lineage, "lineage": [(3, 40), (4, 100)]}, [], ("c2", 1), None),
    ):
        fields = {"topic_id": None, "leader_epoch": 1, "observed_at": 10.0 + seconds, **more}
        after = evolve(
            before,
            observation(**fields),
            *collector,
            number,
            None if clock is None else ClusterState(collectors={"c1": clock}),
        )
        assert [reset.broker for reset in after.resets if reset.unwatched] == marked


def test_an_older_epoch_of_a_topic_id_that_lasts_is_that_of_a_backup() -> None:
    """Replicas are silent, so only two brokers show it, for BACK_SECONDS."""
    fields = {"leader_epoch": 2, "samples": [silent(1), silent(2)], "committed": None}
    first, last = (
        observation(observed_at=at, metadata_from=[3, 4], **fields)
        for at in (11.0, 11.0 + BACK_SECONDS)
    )
    assert fold(SEEN, first, last).former_topic == FormerTopic(
        "a", 4, 11.0 + BACK_SECONDS, restored=True
    )
    assert fold(SEEN, first).leader_epoch == 4
    one = replace(last, metadata_from=[3])
    assert fold(SEEN, first, one).leader_epoch == 4
    forgot = [answer(broker, leader_epoch=2) for broker in (1, 2)]
    for samples, keeps in ((forgot, False), (forgot[:1], True)):
        older = observation(observed_at=11.0, samples=samples, committed=None)
        after = fold(SEEN, older)
        assert (bool(after.committed), after.is_restored) == (keeps, not keeps)
    # An epoch has one leader.
    assert [
        fold(SEEN, observation(observed_at=11.0, leader=one)).is_restored for one in (2, None)
    ] == [True, False]

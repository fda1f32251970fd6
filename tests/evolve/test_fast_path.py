"""The fast path folds only observations that move offsets forward, with the result of `evolve`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from msgspec import Struct

from tests.evolve.observations import answer, fold, observation, second_ends, silent
from tidemark.core import activity
from tidemark.core.events import Observation
from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import (
    LossCandidate,
    PartitionState,
    ReplicaState,
    decode_state,
    encode_state,
)
from tidemark.core.sparse_state import (
    AuditFinding,
    CheckpointSeen,
    EpochStart,
    MetadataPosition,
    OpenElection,
    Regression,
    SparseState,
)
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.evolve.activity import activity_of
from tidemark.evolve.fast_path import comparison, fold_offsets

OPEN = OpenElection(1, 4, 2, 3, [2], None, None, 9.0, 9.5)


class Said(Struct):
    """A part of an event. The state holds `replicas` under another name, and no `news`."""

    replicas: list[int] = []
    leader: int | None = None
    moves: int | None = None
    news: int | None = None


class Held(Struct):
    """A part of a state."""

    leader: int | None = 1
    assigned: tuple[int, ...] = (1, 2)
    pass_number: int = 7


class HeldToo(Held):
    news: int | None = 9


@pytest.mark.parametrize(
    ("state", "values"), [(Held(), ((1, 2), 1, None)), (HeldToo(), ((1, 2), 1, 9))]
)
def test_each_field_that_does_not_move_is_compared(state: Held, values: tuple[Any, ...]) -> None:
    said, held = comparison(Said(), {"moves"}, state)
    assert said(Said([3], 2, 8, 5)) == ([3], 2, 5)
    assert held(state) == values


def known(**fields: Any) -> PartitionState:
    """A partition with a lineage and a last stable offset; `fields` are those of the state."""
    samples = [answer(1, last_stable_offset=90), answer(2)]
    lineage = {"lineage": [(3, 50), (4, 100)], "lineage_complete_from": 3}
    state = fold(None, observation(samples=samples, **lineage))
    for name, value in fields.items():
        setattr(state, name, copy.deepcopy(value))
    return state


def following(
    one: dict[str, Any] | None = None, other: dict[str, Any] | None = None, **fields: Any
) -> Observation:
    """The next second: about ten records more. `one` and `other` replace fields of the samples."""
    first = {"log_end_offset": 110, "high_watermark": 100, "log_start_offset": 7}
    second = {"log_end_offset": 108, "high_watermark": 99, "log_start_offset": 8}
    samples = [
        answer(1, **first | {"last_stable_offset": 105} | (one or {})),
        answer(2, **second | (other or {})),
    ]
    moved = {"leader_log_end_offset_before": 109, "leader_log_end_offset_after": 110}
    whole = {"observed_at": 11.0, "samples": samples, "committed": 100, **moved}
    return observation(**{**whole, **fields})


def is_folded(state: PartitionState, event: Observation) -> bool:
    """Whether the fast path folds it: with the result of `evolve`, or without any change."""
    before = encode_state(state)
    whole = fold(decode_state(before), event)
    flags = fold_offsets(state, event, whole.pass_number, activity_of(state))
    if flags is None:
        assert encode_state(state) == before
        return False
    assert encode_state(state) == encode_state(whole)
    assert flags == activity_of(whole)
    return True


@pytest.mark.parametrize(
    ("event", "folded"),
    [
        # Offsets that move forward.
        (following(), True),
        (following(one={"size_bytes": 4096}), True),
        (following(leader_before_at=10.8, leader_after_at=10.9), True),
        # Nothing moved, or only the log start; every bound is met exactly.
        (observation(observed_at=11.0, samples=[answer(1, log_start_offset=3), answer(2)]), True),
        (
            observation(
                observed_at=11.0,
                samples=[answer(1, log_end_offset=101, last_stable_offset=90), answer(2)],
            ),
            True,
        ),
        (following(lineage=[(4, 110)], lineage_complete_from=4), True),
        (following(lineage=[(4, 100)], lineage_complete_from=4), True),
        # The log end offset under the epoch is the highest of all that were reported.
        (following(committed=95, leader_log_end_offset_after=90), True),
        (following(committed=105, leader_log_end_offset_after=90), True),
        # An observation that reports anything else is left to the whole fold.
        (following(leader=2), False),
        (following(leader=None), False),
        (following(leader_epoch=5), False),
        (following(leader_epoch=None), False),
        (following(in_sync_replicas=[1]), False),
        (following(in_sync_replicas=None), False),
        (following(replicas=[1, 2, 3]), False),
        (following(replicas=[]), False),
        (following(topic_id="b"), False),
        (following(topic_id=None), False),
        (following(effective_min_in_sync_replicas=None), False),
        (following(leaderless=True), False),
        (following(adding=[2]), False),
        (following(removing=[2]), False),
        (following(effective_min_in_sync_replicas=2), False),
        (following(eligible_leader_replicas=[2]), False),
        (following(last_known_eligible_leader_replicas=[2]), False),
        (following(committed=None), False),
        # The leader reports less than before.
        (following(committed=89), False),
        (following(leader_log_end_offset_before=None), False),
        (following(leader_log_end_offset_after=None), False),
        (following(samples=[answer(1, log_end_offset=110)]), False),
        (following(samples=[answer(1), answer(2), answer(3)]), False),
        (following(samples=[answer(1, log_end_offset=110), answer(3, log_end_offset=110)]), False),
        (following(samples=[answer(1, log_end_offset=110), answer(1, log_end_offset=110)]), False),
        (following(samples=[answer(1, log_end_offset=110), silent(2)]), False),
        (following({"log_end_offset": None}), False),
        (following(None, {"log_end_offset": None}), False),
        # The log was cut, or is shorter than what was committed.
        (following(None, {"log_end_offset": 99}), False),
        (following(None, {"log_end_offset": 80}), False),
        (following(None, {"leader_epoch": 3}), False),
        (following(None, {"leads": True}), False),
        (following({"leads": False}), False),
        # A transaction is open.
        (following({"last_stable_offset": 99}), False),
        (following(None, {"lineage": [(4, 108)]}), False),
        (following(lineage=[(3, 50), (4, 110)], lineage_complete_from=3), False),
        (following(lineage=[(5, 110)], lineage_complete_from=5), False),
        (following(lineage=[(3, 110)], lineage_complete_from=3), False),
        (following(lineage=[(4, 110)], lineage_complete_from=3), False),
        (following(lineage=[(4, 110)], lineage_complete_from=None), False),
        (following(lineage=[(4, 99)], lineage_complete_from=4), False),
        (following(lineage=[], lineage_complete_from=4), False),
    ],
)
def test_offsets_that_move_forward_are_folded(event: Observation, folded: bool) -> None:
    assert is_folded(known(), event) is folded


@pytest.mark.parametrize(
    ("log_ends", "newest", "lags"),
    [
        ((110, 110), 110, False),
        ((110, 109), 110, True),
        ((111, 110), 110, True),
        ((110, 110), 111, True),
        ((110, 110), 109, True),
    ],
)
def test_a_log_that_ends_elsewhere_than_at_the_high_watermark_lags(
    log_ends: tuple[int, int], newest: int, lags: bool
) -> None:
    for state in (known(), fold(None, observation(committed=100))):
        one, other = ({"log_end_offset": end, "last_stable_offset": None} for end in log_ends)
        event = following(one, other, committed=110, leader_log_end_offset_after=newest)
        flags = fold_offsets(state, event, 1, activity_of(state))
        assert flags == activity_of(state) == (activity.LAG if lags else activity.NONE)


def test_flags_that_offsets_do_not_change_are_kept() -> None:
    """A broker with an old epoch, a broker out of sync, brokers that left, a pending alert."""
    samples = [answer(1), answer(2, leader_epoch=3)]
    alert = TrackedAlert("STALE_BROKER_VIEW", 2, "info", 10.0)
    state = fold(None, observation(), observation(in_sync_replicas=[1], samples=samples))
    state.alerts = [alert]
    event = following(None, {"leader_epoch": 3}, in_sync_replicas=[1])
    assert activity_of(state) & ~activity.LAG == (
        activity.EPOCH | activity.ISR | activity.SHRINKS | activity.ALERTS
    )
    assert is_folded(state, event)


def committed(*high_watermarks: int) -> list[Committed]:
    """The committed table; the last entry is that of epoch 4."""
    return [
        Committed(5 + epoch, mark, 10.0, 100, 1, dated=True)
        for epoch, mark in enumerate(high_watermarks, start=-len(high_watermarks))
    ]


@pytest.mark.parametrize(
    ("table", "folded"),
    [
        (committed(80, 90), True),
        (committed(90, 90), True),
        (committed(50, 60, 90), True),
        # An earlier epoch committed more than the newest: a loss may be claimed of it.
        (committed(95, 90), False),
        (committed(85, 80), False),
        (committed(95, 60, 90), False),
        # The newest epoch of the table does not lead.
        (
            [
                Committed(4, 90, 10.0, 100, 1, dated=True),
                Committed(5, 90, 10.0, 100, 1, dated=True),
            ],
            False,
        ),
        # The lineage is read and its epoch is not marked as dated yet.
        ([Committed(4, 90, 10.0, 100, 1)], False),
        ([], False),
    ],
)
def test_the_newest_epoch_must_have_committed_as_much_as_the_earlier_ones(
    table: list[Committed], folded: bool
) -> None:
    assert is_folded(known(committed=table, lineage=[(3, 95), (4, 100)]), following()) is folded


THREE_EPOCHS = [(2, 30), (3, 50), (4, 100)]


@pytest.mark.parametrize(
    ("lineage", "complete_from", "renewed"),
    [
        # A lineage of many epochs is renewed at its end, an unknown one is not.
        (THREE_EPOCHS, 2, ([(2, 30), (3, 50), (4, 110)], 2)),
        ([(3, 50), (4, 100)], None, None),
        (None, 3, None),
        ([], 3, None),
    ],
)
def test_a_known_lineage_is_renewed_at_its_end(
    lineage: list[tuple[int, int]] | None,
    complete_from: int | None,
    renewed: tuple[list[tuple[int, int]], int] | None,
) -> None:
    state = known(lineage=lineage, lineage_complete_from=complete_from)
    longer = following(lineage=[(4, 110)], lineage_complete_from=4)
    assert is_folded(state, longer) is (renewed is not None)
    assert (state.lineage, state.lineage_complete_from) == (renewed or (lineage, complete_from))
    assert is_folded(state, following(observed_at=12.0))


@pytest.mark.parametrize(
    ("entries", "log_end", "folded"), [(2, 110, True), (2, 111, False), (1, 111, True)]
)
def test_a_replica_with_more_than_the_leader_may_be_a_former_leader(
    entries: int, log_end: int, folded: bool
) -> None:
    state = known()
    state.committed = [Committed(3, 50, 5.0, 60, 2, dated=True), *state.committed][-entries:]
    assert is_folded(state, following(None, {"log_end_offset": log_end})) is folded


@pytest.mark.parametrize(
    "state",
    [
        known(leader=None),
        known(leader_epoch=None),
        known(in_sync_replicas=None),
        known(leaderless=True),
        known(adding=[2]),
        known(removing=[2]),
        known(sparse=SparseState(mixed_since=9.0)),
        known(sparse=SparseState(open_election=OPEN)),
        known(sparse=SparseState(regression=Regression(80, 90, 9.0))),
        known(sparse=SparseState(epoch_starts=[EpochStart(-90_000.0, 4)])),
        known(sparse=SparseState(audit=AuditFinding(1, 4, [1, 2], [3, 4], 9.0))),
        known(sparse=SparseState(checkpoints=[CheckpointSeen(1, 91, 9.0, 9.0)])),
        known(sparse=SparseState(metadata=MetadataPosition(7, 0, 9.0, recovering=True))),
        known(loss_candidate=LossCandidate(3, 4, 1, 2, 3, 0)),
        known(missed_passes=1),
        known(previous_offset_history=[1, 2]),
        known(high_watermark=None),
        # A replica of the state has no sample.
        known(replicas=[ReplicaState(1, 100), ReplicaState(2, 100), ReplicaState(3, 100)]),
        fold(known(), observation(samples=[answer(1), silent(2)])),
        fold(known(), observation(samples=[answer(1), answer(2, log_end_offset=None)])),
    ],
)
def test_a_state_with_anything_else_is_left_to_the_whole_fold(state: PartitionState) -> None:
    assert not is_folded(state, following())


def test_a_checkpoint_below_the_high_watermark_is_at_rest_until_that_falls() -> None:
    files = SparseState(checkpoints=[CheckpointSeen(2, 90, 9.0, 9.0)])
    assert is_folded(known(sparse=files), following())
    assert is_folded(known(sparse=files), following(other={"high_watermark": 90}))
    assert not is_folded(known(sparse=files), following(other={"high_watermark": 80}))
    assert is_folded(known(), following(other={"high_watermark": 80}))


def first(**fields: Any) -> PartitionState:
    """The state after one observation; `fields` are those of the leader's sample."""
    return fold(None, observation(samples=[answer(1, **fields), answer(2)]))


EMPTY_LOG = {"log_end_offset": 0, "high_watermark": 0}
EMPTY = observation(committed=0, samples=[answer(1, **EMPTY_LOG), answer(2, **EMPTY_LOG)])
HISTORY = SparseState(metadata=MetadataPosition(7, 0, 9.0), epoch_starts=[EpochStart(5.0, 4)])


@pytest.mark.parametrize(
    ("state", "event", "folded"),
    [
        (fold(None, EMPTY), EMPTY, True),
        # Epoch starts and a record of the metadata log are history.
        (known(sparse=HISTORY), following(), True),
        # A log that does not reach the high watermark is behind what was committed.
        (fold(None, second_ends(70)), second_ends(89, observed_at=11.0), False),
        (fold(None, second_ends(70)), second_ends(90, observed_at=11.0), True),
        # A replica answers again.
        (
            fold(known(), observation(samples=[answer(1), silent(2)])),
            following(None, {"leads": None}),
            False,
        ),
        # The leader does not act as such under its epoch.
        (first(leader_epoch=3), following({"leader_epoch": 3}), False),
        (first(leads=False), following({"leads": False}), False),
        # What neither the state nor the observation knows may have changed.
        (fold(None, observation(leader=None)), following(leader=None), False),
        (fold(None, observation(leader_epoch=None)), following(leader_epoch=None), False),
        (fold(None, observation(in_sync_replicas=None)), following(in_sync_replicas=None), False),
    ],
)
def test_the_fast_path_depends_on_the_state_and_the_observation(
    state: PartitionState, event: Observation, folded: bool
) -> None:
    assert is_folded(state, event) is folded


def test_what_is_read_seldom_stays_known() -> None:
    """A null field is not reported; a change is folded by `evolve`."""
    read: dict[str, Any] = {"unclean_leader_election": True, "throttled_replicas": [2]}
    state = known(**read)
    assert is_folded(state, following(**read))
    assert is_folded(state, following(observed_at=12.0))
    assert (state.unclean_leader_election, state.throttled_replicas) == (True, [2])
    changes: list[dict[str, Any]] = [{"unclean_leader_election": False}, {"throttled_replicas": []}]
    for changed in changes:
        assert not is_folded(known(**read), following(**changed))
    whole = fold(known(**read), following(one={"size_bytes": 7}, throttled_replicas=[]))
    assert (whole.unclean_leader_election, whole.throttled_replicas) == (True, [])
    silent_one = following(one=None, samples=[silent(1), answer(2)], observed_at=12.0)
    later = fold(whole, silent_one)
    assert [replica.size_bytes for replica in later.replicas] == [7, None]

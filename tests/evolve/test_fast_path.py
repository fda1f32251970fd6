"""The fast path takes what moves offsets forward and nothing else; then it must leave what the whole reducer leaves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.evolve.observed import answer, fold, observation, silent
from tidemark.core.events import Observation
from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import LossCandidate, PartitionState, decode_state, encode_state
from tidemark.core.sparse_state import AuditFinding, Regression, SparseState
from tidemark.evolve.fast_path import take_steady


def known(**fields: Any) -> PartitionState:
    """A partition that a lineage, eligible leaders and both replicas are known of."""
    samples = [answer(1, last_stable_offset=90), answer(2)]
    first = observation(
        samples=samples, lineage=[(3, 50), (4, 100)], lineage_complete_from=3, **fields
    )
    return fold(None, first)


def following(**fields: Any) -> Observation:
    """The next second: ten records more everywhere."""
    samples = [
        answer(
            1, log_end_offset=110, high_watermark=100, log_start_offset=7, last_stable_offset=105
        ),
        answer(2, log_end_offset=108, high_watermark=99, log_start_offset=8),
    ]
    whole: dict[str, Any] = {
        "observed_at": 11.0,
        "samples": samples,
        "committed": 100,
        "leader_log_end_offset_before": 109,
        "leader_log_end_offset_after": 110,
    }
    return observation(**{**whole, **fields})


def is_taken(state: PartitionState, event: Observation) -> bool:
    """Whether the fast path takes it; then the outcome must be the reducer's, and else the state must be untouched."""
    kept = encode_state(state)
    slow = fold(decode_state(kept), event)
    taken = take_steady(state, event, slow.pass_number)
    assert encode_state(state) == (encode_state(slow) if taken else kept)
    return taken


@pytest.mark.parametrize(
    "event",
    [
        following(),
        following(topic_id=None),
        following(leader_before_at=10.8, leader_after_at=10.9),
        # Nothing moved, or only the log start; every bound that is compared is met exactly.
        observation(observed_at=11.0, samples=[answer(1, log_start_offset=3), answer(2)]),
        observation(
            observed_at=11.0,
            samples=[answer(1, log_end_offset=101, last_stable_offset=90), answer(2)],
        ),
        following(lineage=[(4, 110)], lineage_complete_from=4),
        following(lineage=[(4, 100)], lineage_complete_from=4),
        following(effective_min_in_sync_replicas=None),
        # The log end under the epoch is the highest that anything showed.
        following(committed=95, leader_log_end_offset_after=90),
        following(committed=105, leader_log_end_offset_after=90),
    ],
)
def test_offsets_that_move_forward_are_taken(event: Observation) -> None:
    assert is_taken(known(), event)


def test_eligible_leaders_that_are_told_again_are_no_change() -> None:
    fields = {"eligible_leader_replicas": [2], "last_known_eligible_leader_replicas": [1]}
    assert is_taken(known(**fields), following(**fields))
    assert is_taken(known(**fields), following())


def test_history_alone_is_no_hindrance() -> None:
    assert is_taken(altered(sparse=SparseState(epoch_starts=[(9.0, 4)])), following())


def committed(*high_watermarks: int) -> list[Committed]:
    """One entry an epoch, the newest being epoch 4."""
    return [
        Committed(5 + epoch, mark, 10.0, 100, 1, dated=True)
        for epoch, mark in enumerate(high_watermarks, start=-len(high_watermarks))
    ]


@pytest.mark.parametrize("table", [committed(80, 90), committed(90, 90), committed(50, 60, 90)])
def test_what_earlier_epochs_committed_is_no_hindrance_below_what_this_one_did(
    table: list[Committed],
) -> None:
    assert is_taken(altered(committed=table, lineage=[(3, 95), (4, 100)]), following())


def test_a_lineage_of_many_epochs_is_renewed_at_its_end() -> None:
    state = altered(lineage=[(2, 30), (3, 50), (4, 100)], lineage_complete_from=2)
    assert is_taken(state, following(lineage=[(4, 110)], lineage_complete_from=4))
    assert state.lineage == [(2, 30), (3, 50), (4, 110)]


def test_a_replica_that_ends_at_the_high_watermark_is_taken() -> None:
    level = [answer(1), answer(2, log_end_offset=90)]
    state = fold(None, observation(samples=level))
    assert is_taken(state, observation(observed_at=11.0, samples=level))


def test_the_lineage_is_renewed_at_its_end_alone() -> None:
    state = known()
    assert take_steady(state, following(lineage=[(4, 110)], lineage_complete_from=4), 1)
    assert (state.lineage, state.lineage_complete_from) == ([(3, 50), (4, 110)], 3)


def both(one: dict[str, Any] | None = None, other: dict[str, Any] | None = None) -> Observation:
    """The next second with something else in the samples."""
    first: dict[str, Any] = {"log_end_offset": 110, "high_watermark": 100, **(one or {})}
    second: dict[str, Any] = {"log_end_offset": 108, "high_watermark": 99, **(other or {})}
    return following(samples=[answer(1, **first), answer(2, **second)])


def test_who_has_more_than_the_leader_may_be_a_leader_of_before() -> None:
    earlier = [Committed(3, 50, 5.0, 60, 2, dated=True)]
    for number, end, taken in ((2, 110, True), (2, 111, False), (1, 111, True)):
        state = known()
        state.committed = [*earlier, *state.committed][-number:]
        assert is_taken(state, both(other={"log_end_offset": end})) is taken


@pytest.mark.parametrize(
    "event",
    [
        following(leader=2),
        following(leader=None),
        following(leader_epoch=5),
        following(leader_epoch=None),
        following(in_sync_replicas=[1]),
        following(in_sync_replicas=None),
        following(replicas=[1, 2, 3]),
        following(replicas=[]),
        following(topic_id="b"),
        following(leaderless=True),
        following(adding=[2]),
        following(removing=[2]),
        following(effective_min_in_sync_replicas=2),
        following(eligible_leader_replicas=[2]),
        following(last_known_eligible_leader_replicas=[2]),
        following(committed=None),
        # The leader shows less than before.
        following(committed=89),
        following(leader_log_end_offset_before=None),
        following(leader_log_end_offset_after=None),
        following(samples=[answer(1, log_end_offset=110)]),
        following(
            samples=[answer(1, log_end_offset=110), answer(2, log_end_offset=110), answer(3)]
        ),
        following(samples=[answer(1, log_end_offset=110), answer(3, log_end_offset=110)]),
        following(samples=[answer(1, log_end_offset=110), answer(1, log_end_offset=110)]),
        following(samples=[answer(1, log_end_offset=110), silent(2)]),
        both({"log_end_offset": None}),
        both(None, {"log_end_offset": None}),
        # A log that is cut, or shorter than what was committed.
        both(None, {"log_end_offset": 99}),
        both(None, {"log_end_offset": 80}),
        both(None, {"leader_epoch": 3}),
        both(None, {"leads": True}),
        both({"leads": False}),
        # A transaction hangs.
        both({"last_stable_offset": 99}),
        both(None, {"lineage": [(4, 108)]}),
        following(lineage=[(3, 50), (4, 110)], lineage_complete_from=3),
        following(lineage=[(5, 110)], lineage_complete_from=5),
        following(lineage=[(3, 110)], lineage_complete_from=3),
        following(lineage=[(4, 110)], lineage_complete_from=3),
        following(lineage=[(4, 110)], lineage_complete_from=None),
        following(lineage=[(4, 99)], lineage_complete_from=4),
        following(lineage=[], lineage_complete_from=4),
    ],
)
def test_an_observation_that_tells_anything_else_is_not_taken(event: Observation) -> None:
    assert not is_taken(known(), event)


def altered(**fields: Any) -> PartitionState:
    state = known()
    for name, value in fields.items():
        setattr(state, name, value)
    return state


@pytest.mark.parametrize(
    "state",
    [
        altered(leader=None),
        altered(leader_epoch=None),
        altered(in_sync_replicas=None),
        altered(leaderless=True),
        altered(adding=[2]),
        altered(removing=[2]),
        altered(sparse=SparseState(regression=Regression(80, 90, 9.0))),
        altered(sparse=SparseState(epoch_starts=[(-90_000.0, 4)])),
        altered(sparse=SparseState(audit=AuditFinding(1, 4, [1, 2], [3, 4], 9.0))),
        altered(loss_candidate=LossCandidate(3, 4, 1, 2, 3, 0)),
        altered(missed_passes=1),
        altered(previous_offset_history=[1, 2]),
        altered(high_watermark=None),
        altered(committed=[]),
        # The newest epoch of the table is not the one that leads.
        altered(committed=[Committed(4, 90, 10.0, 100, 1), Committed(5, 90, 10.0, 100, 1)]),
        fold(known(), observation(samples=[answer(1), silent(2)])),
        fold(known(), observation(samples=[answer(1), answer(2, log_end_offset=None)])),
    ],
)
def test_a_partition_of_which_anything_else_is_remembered_is_not_taken(
    state: PartitionState,
) -> None:
    assert not is_taken(state, following())


@pytest.mark.parametrize("table", [committed(95, 90), committed(95, 60, 90)])
def test_what_an_earlier_epoch_committed_beyond_this_one_is_left_to_the_reducer(
    table: list[Committed],
) -> None:
    assert not is_taken(altered(committed=table), following())


def test_a_replica_that_answers_again_is_not_taken() -> None:
    state = fold(known(), observation(samples=[answer(1), silent(2)]))
    assert not is_taken(state, both(None, {"leads": None}))


def test_a_state_that_knows_no_epoch_is_not_taken_with_an_observation_that_knows_none() -> None:
    state = fold(None, observation(leader_epoch=None))
    assert not is_taken(state, following(leader_epoch=None))
    assert not is_taken(fold(None, observation(leader=None)), following(leader=None))
    assert not is_taken(
        fold(None, observation(in_sync_replicas=None)), following(in_sync_replicas=None)
    )


@pytest.mark.parametrize(
    ("complete_from", "lineage"), [(None, [(3, 50), (4, 100)]), (3, None), (3, [])]
)
def test_a_newest_epoch_renews_no_lineage_that_is_not_known(
    complete_from: int | None, lineage: list[tuple[int, int]] | None
) -> None:
    state = altered(lineage=lineage, lineage_complete_from=complete_from)
    assert not is_taken(state, following(lineage=[(4, 110)], lineage_complete_from=4))
    assert is_taken(state, following())

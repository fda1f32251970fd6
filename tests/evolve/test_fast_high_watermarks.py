"""High watermarks between passes count as what a pass at their time would have read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evolve.observations import NO_LEADER_END, answer, fold, observation, silent
from tidemark.core.events import FastHighWatermarks
from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import PartitionState, encode_state
from tidemark.evolve.fast_high_watermarks import with_fast_high_watermarks

SEEN = fold(None, observation())
GONE = observation(
    observed_at=11.0,
    leader=None,
    leader_epoch=5,
    committed=None,
    leaderless=True,
    samples=[silent(1), answer(2)],
    **NO_LEADER_END,
)


def fast(*samples: tuple[float, int], leader: int = 1, epoch: int = 4) -> FastHighWatermarks:
    """Reported by leader 1 of epoch 4, by default."""
    return FastHighWatermarks(leader=leader, leader_epoch=epoch, samples=list(samples))


def folded(state: PartitionState, read: FastHighWatermarks | None, **fields: Any) -> PartitionState:
    event = {"observed_at": 11.0, "committed": 99, **fields}
    return with_fast_high_watermarks(state, observation(fast_high_watermarks=read, **event))


def test_the_newest_high_watermark_is_committed_under_its_epoch_at_its_time() -> None:
    before = encode_state(SEEN)
    after = folded(SEEN, fast((10.2, 92), (10.5, 97), (10.7, 97)))
    assert after.committed == [Committed(4, 97, 10.5, 100, 1)]
    assert (after.high_watermark, after.high_watermark_moved_at) == (97, 10.5)
    assert after.high_watermark_read_at == 10.5
    assert encode_state(SEEN) == before
    # It says nothing of a log end offset, or of another replica.
    assert (after.offset_history, after.replicas) == (SEEN.offset_history, SEEN.replicas)


def test_those_of_a_dead_leader_count_before_the_election_that_the_observation_shows() -> None:
    gone = _gone_with(fast((10.4, 95)))
    state = with_fast_high_watermarks(SEEN, gone)
    after = fold(state, gone)
    (entry,) = after.committed
    assert (entry.high_watermark, entry.at, entry.read_at, entry.over_at) == (95, 10.4, 10.4, 11.0)
    assert after.leader_epoch == 5
    assert after.high_watermark is None


def _gone_with(read: FastHighWatermarks) -> Any:
    gone = observation(**{name: getattr(GONE, name) for name in GONE.__struct_fields__})
    gone.fast_high_watermarks = read
    return gone


@pytest.mark.parametrize(("at", "high_watermark"), [(10.9, 95), (11.0, 95), (11.1, 90)])
def test_of_an_epoch_that_is_over_what_was_read_before_that_was_known_counts(
    at: float, high_watermark: int
) -> None:
    """A record of the metadata log may come before the observation."""
    state = fold(SEEN, GONE)
    after = folded(state, fast((at, 95)), leader_epoch=5, observed_at=12.0, committed=None)
    (entry,) = after.committed
    assert entry.high_watermark == high_watermark
    assert entry.read_at == (at if high_watermark == 95 else 10.0)
    assert (after.high_watermark, after.leader_epoch) == (None, 5)


def test_a_later_high_watermark_makes_no_follower_late() -> None:
    """Broker 2 had reached the high watermark of the pass, and so was about to join."""
    state = fold(None, observation(in_sync_replicas=[1]))
    state = folded(state, fast((10.9, 105)), committed=None, in_sync_replicas=[1])
    assert state.high_watermark == 105
    elected = fold(state, observation(observed_at=11.0, leader=2, leader_epoch=5))
    assert elected.unclean_epoch is None


@pytest.mark.parametrize(
    ("read", "fields"),
    [
        (None, {}),
        # Another leader of the epoch, an epoch that no observation has shown, one without an entry.
        (fast((10.5, 97), leader=2), {}),
        (fast((10.5, 97), epoch=5), {}),
        (fast((10.5, 97), epoch=3), {}),
        # Of the future.
        (fast((11.1, 97)), {}),
        # The leader itself reports less in the pass.
        (fast((10.5, 100)), {}),
        # Another topic, or perhaps one.
        (fast((10.5, 97)), {"topic_id": "b"}),
        (
            fast((10.5, 97)),
            {"samples": [answer(1, log_end_offset=3, high_watermark=3), answer(2)]},
        ),
    ],
)
def test_what_contradicts_the_state_or_the_observation_changes_nothing(
    read: FastHighWatermarks | None, fields: dict[str, Any]
) -> None:
    assert folded(SEEN, read, **fields) is SEEN


@given(
    st.lists(st.tuples(st.floats(0, 1e10), st.integers(0, 2**63 - 1)), min_size=1, max_size=16),
    st.integers(0, 9),
    st.integers(0, 3),
)
def test_nothing_that_was_committed_is_taken_back(
    samples: list[tuple[float, int]], epoch: int, leader: int
) -> None:
    """Whatever an observation carries: offsets and times only rise, within those it carries."""
    after = folded(SEEN, fast(*samples, leader=leader, epoch=epoch), committed=None)
    (before,), (entry,) = SEEN.committed, after.committed
    assert entry.high_watermark in {before.high_watermark, *(offset for _, offset in samples)}
    assert before.high_watermark <= entry.high_watermark <= entry.log_end_offset
    assert before.at <= entry.at <= 11.0 or entry.high_watermark > before.high_watermark
    assert entry.at <= 11.0
    assert after.high_watermark == entry.high_watermark
    assert (entry.epoch, entry.leader) == (4, 1)

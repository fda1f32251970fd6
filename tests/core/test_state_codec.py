"""The stored form of a state loses nothing, in whichever of its two versions."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tidemark.core.leader_epochs import Committed
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.state_codec import (
    PLAIN_VERSION,
    RELATIVE_VERSION,
    decode_state,
    encode_state,
)

offsets = st.one_of(st.integers(0, 3), st.integers(0, 2**63 - 1))
times = st.sampled_from([0.0, 0.001, 1_763_000_000.123456, 1_763_000_000.2, 99_999_999_999.0])


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


replicas = st.builds(
    ReplicaState,
    broker=st.integers(0, 9),
    log_end_offset=maybe(offsets),
    high_watermark=maybe(offsets),
    log_start_offset=maybe(offsets),
    last_stable_offset=maybe(offsets),
    sampled_at=maybe(times),
)
table = st.builds(
    Committed,
    epoch=st.integers(-1, 9),
    high_watermark=offsets,
    at=times,
    log_end_offset=offsets,
    leader=st.integers(0, 9),
    log_start_offset=offsets,
)
states = st.builds(
    PartitionState,
    observed_at=times,
    replicas=st.lists(replicas, max_size=3),
    leader_end_before=maybe(offsets),
    leader_end_after=maybe(offsets),
    high_watermark=maybe(offsets),
    high_watermark_moved_at=times,
    high_watermark_read_at=times,
    committed=st.lists(table, max_size=2),
    offset_history=st.sampled_from([[], [1_763_000_000_123, 2**63 - 1], [0, 0], [5000, 7, 20, 3]]),
)


def complete() -> PartitionState:
    """A state with each value that the relative version needs."""
    at = 1_763_000_000.5
    return PartitionState(
        observed_at=at,
        replicas=[ReplicaState(1, 100, 90, 5, sampled_at=at)],
        leader_end_before=100,
        leader_end_after=101,
        high_watermark=90,
        high_watermark_moved_at=at - 0.25,
        high_watermark_read_at=at,
        committed=[Committed(3, 90, at, 101, 1)],
        offset_history=[1_763_000_000_500, 100],
    )


@given(states)
def test_a_state_decodes_to_what_was_encoded(state: PartitionState) -> None:
    before = msgspec.msgpack.encode(state)
    assert decode_state(encode_state(state)) == state
    assert msgspec.msgpack.encode(state) == before, "encoding changes no state"


@given(states)
def test_a_state_has_one_stored_form(state: PartitionState) -> None:
    stored = encode_state(state)
    assert encode_state(decode_state(stored)) == stored


def test_a_complete_state_is_stored_as_differences() -> None:
    state = complete()
    stored = encode_state(state)
    assert stored[0] == RELATIVE_VERSION
    assert len(stored) < len(msgspec.msgpack.encode(state)) - 25
    assert decode_state(stored) == state


def test_a_state_without_one_of_the_values_is_stored_as_it_is() -> None:
    names = ("leader_end_before", "leader_end_after", "high_watermark", "high_watermark_moved_at")
    lacking = [complete() for _ in range(9)]
    for state, name in zip(lacking, names, strict=False):
        setattr(state, name, _empty(state, name))
    lacking[4].high_watermark_read_at = 0.0
    lacking[5].committed, lacking[6].offset_history = [], []
    lacking[7].replicas[0].sampled_at = None
    lacking[8].replicas[0].log_start_offset = None
    for state in lacking:
        assert encode_state(state)[0] == PLAIN_VERSION
        assert decode_state(encode_state(state)) == state


def _empty(state: PartitionState, name: str) -> float | None:
    return 0.0 if isinstance(getattr(state, name), float) else None

"""The stored form of a partition's state: a version byte and msgpack.

Offsets of a large topic and times take nine bytes each. A partition of three replicas has twenty of
them that differ little. So version 4 stores offsets as differences to the high watermark, log start
offsets as differences to the newest epoch's, and a time that equals `observed_at` as 0. A state
that lacks one of these values, or has 0 as a time, is stored as it is (version 3).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from tidemark.core.errors import StateError
from tidemark.core.leader_epochs import Committed
from tidemark.core.offset_history import NEWEST_MS, NEWEST_OFFSET, from_oldest
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.shrink_causes import ShrinkCause

# Version 2 added `sparse` and stores offset histories from the newest sample on. Version 3 keeps
# the cause of a shrink and its certainty apart.
PLAIN_VERSION: Final = 3
RELATIVE_VERSION: Final = 4

_PLAIN: Final = bytes((PLAIN_VERSION,))
_RELATIVE: Final = bytes((RELATIVE_VERSION,))
_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[PartitionState] = msgspec.msgpack.Decoder(PartitionState)
_FIELDS: Final = PartitionState.__struct_fields__
# What a state of other bytes raises, before and while its older forms are converted.
UNREADABLE: Final = (
    *(msgspec.MsgspecError, ValueError, TypeError, AttributeError),
    *(IndexError, KeyError, RecursionError, OverflowError),
)
# `copy.copy` calls it too, after a search that takes as long as the copy.
_copy: Any = Struct.__copy__  # type: ignore[attr-defined]
_CAUSES: Final = frozenset(cause.value for cause in ShrinkCause)


def encode_state(state: PartitionState) -> bytes:
    """The stored form. The state does not change."""
    relative = _relative(state)
    if relative is None:
        return _PLAIN + _encoder.encode(state)
    return _RELATIVE + _encoder.encode(relative)


def decode_state(blob: bytes) -> PartitionState:
    """The inverse of `encode_state`; it upcasts older versions.

    Raises StateError. `tidemark stream` refuses the checkpoint of a newer release at start.
    """
    try:
        version = blob[0]
        if version == RELATIVE_VERSION:
            return _absolute(_decoder.decode(memoryview(blob)[1:]))
        if version == PLAIN_VERSION:
            return _decoder.decode(memoryview(blob)[1:])
        return _decode_older(blob)
    except UNREADABLE as error:
        raise StateError(error) from None


def _relative(state: PartitionState) -> PartitionState | None:
    """A copy with differences; None for a state that lacks one of the values."""
    base, at = state.high_watermark, state.observed_at
    before, after = state.leader_end_before, state.leader_end_after
    history, table = state.offset_history, state.committed
    if base is None or before is None or after is None or not (history and table):
        return None
    newest: Committed = _copy(table[-1])
    if not (state.high_watermark_moved_at and state.high_watermark_read_at and newest.at):
        return None
    start = newest.log_start_offset
    replicas = []
    for each in state.replicas:
        replica = _relative_replica(each, base, start, at)
        if replica is None:
            return None
        replicas.append(replica)
    copy: PartitionState = _copy(state)
    copy.replicas = replicas
    copy.leader_end_before, copy.leader_end_after = before - base, after - base
    if copy.high_watermark_moved_at == at:
        copy.high_watermark_moved_at = 0
    if copy.high_watermark_read_at == at:
        copy.high_watermark_read_at = 0
    newest.high_watermark -= base
    newest.log_end_offset -= base
    if newest.at == at:
        newest.at = 0
    copy.committed = [*table[:-1], newest]
    copy.offset_history = history = history.copy()
    history[NEWEST_MS] -= round(at * 1000.0)
    history[NEWEST_OFFSET] -= base
    return copy


def _relative_replica(
    replica: ReplicaState, base: int, start: int, at: float
) -> ReplicaState | None:
    log_end, high_watermark = replica.log_end_offset, replica.high_watermark
    log_start, stable = replica.log_start_offset, replica.last_stable_offset
    if log_end is None or high_watermark is None or log_start is None or not replica.sampled_at:
        return None
    copy: ReplicaState = _copy(replica)
    copy.log_end_offset = log_end - base
    copy.high_watermark = high_watermark - base
    copy.log_start_offset = log_start - start
    if stable is not None:
        copy.last_stable_offset = stable - base
    if copy.sampled_at == at:
        copy.sampled_at = 0
    return copy


def _absolute(state: PartitionState) -> PartitionState:
    """The inverse of `_relative`, in place. Raises TypeError or IndexError for another state."""
    base: Any = state.high_watermark
    at, newest = state.observed_at, state.committed[-1]
    start = newest.log_start_offset
    for replica in state.replicas:
        replica.log_end_offset += base
        replica.high_watermark += base
        replica.log_start_offset += start  # type: ignore[operator]
        if replica.last_stable_offset is not None:
            replica.last_stable_offset += base
        if replica.sampled_at == 0:
            replica.sampled_at = at
    state.leader_end_before += base
    state.leader_end_after += base
    if state.high_watermark_moved_at == 0:
        state.high_watermark_moved_at = at
    if state.high_watermark_read_at == 0:
        state.high_watermark_read_at = at
    newest.high_watermark += base
    newest.log_end_offset += base
    if newest.at == 0:
        newest.at = at
    state.offset_history[NEWEST_MS] += round(at * 1000.0)
    state.offset_history[NEWEST_OFFSET] += base
    return state


def _decode_older(blob: bytes) -> PartitionState:
    version = blob[0]
    if version not in (1, 2):
        raise ValueError(f"version {version}")
    document: list[Any] = msgspec.msgpack.decode(memoryview(blob)[1:])
    if version == 1:
        document = _from_version_1(document)
    return msgspec.convert(_from_version_2(document), PartitionState)


def _from_version_1(document: list[Any]) -> list[Any]:
    """Version 1: [state, history, previous history], the histories from the oldest sample on."""
    state, history, previous = document
    state[_FIELDS.index("offset_history")] = from_oldest(history)
    state[_FIELDS.index("previous_offset_history")] = from_oldest(previous)
    return list(state)


def _from_version_2(state: list[Any]) -> list[Any]:
    """Version 2 wrote a recorded cause as "fencing, by the metadata log"."""
    for shrink in state[_FIELDS.index("shrinks")]:
        cause, recorded, _ = shrink.pop().partition(", by the metadata log")
        shrink += [cause if cause in _CAUSES else ShrinkCause.UNKNOWN, bool(recorded)]
    return state

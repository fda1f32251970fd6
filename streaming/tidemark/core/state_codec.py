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
from tidemark.core.offset_history import NEWEST_MS, NEWEST_OFFSET, from_oldest
from tidemark.core.partition import PartitionState
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
    copy: PartitionState = _copy(state)
    copy.replicas = [_copy(replica) for replica in state.replicas]
    copy.committed = [_copy(entry) for entry in state.committed]
    copy.offset_history = state.offset_history.copy()
    return encode_and_discard(copy)


def encode_and_discard(state: PartitionState) -> bytes:
    """`encode_state` in two thirds of its time, by changing the state: no one may use it again."""
    if not _is_complete(state):
        return _PLAIN + _encoder.encode(state)
    _make_relative(state)
    return _RELATIVE + _encoder.encode(state)


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


def _is_complete(state: PartitionState) -> bool:
    """Whether the state has every value that version 4 needs."""
    for replica in state.replicas:
        if (
            replica.log_end_offset is None
            or replica.high_watermark is None
            or replica.log_start_offset is None
            or not replica.sampled_at
        ):
            return False
    return (
        state.high_watermark is not None
        and state.leader_end_before is not None
        and state.leader_end_after is not None
        and bool(state.high_watermark_moved_at and state.high_watermark_read_at)
        and bool(state.offset_history and state.committed)
        and bool(state.committed[-1].at)
    )


def _make_relative(state: PartitionState) -> None:
    base: Any = state.high_watermark
    at, newest = state.observed_at, state.committed[-1]
    start = newest.log_start_offset
    replica: Any
    for replica in state.replicas:
        replica.log_end_offset -= base
        replica.high_watermark -= base
        replica.log_start_offset -= start
        if replica.last_stable_offset is not None:
            replica.last_stable_offset -= base
        if replica.sampled_at == at:
            replica.sampled_at = 0
    state.leader_end_before -= base
    state.leader_end_after -= base
    if state.high_watermark_moved_at == at:
        state.high_watermark_moved_at = 0
    if state.high_watermark_read_at == at:
        state.high_watermark_read_at = 0
    newest.high_watermark -= base
    newest.log_end_offset -= base
    if newest.at == at:
        newest.at = 0
    state.offset_history[NEWEST_MS] -= round(at * 1000.0)
    state.offset_history[NEWEST_OFFSET] -= base


def _absolute(state: PartitionState) -> PartitionState:
    """Undoes `_make_relative`. Raises TypeError or IndexError for another state."""
    base: Any = state.high_watermark
    at, newest = state.observed_at, state.committed[-1]
    start = newest.log_start_offset
    replica: Any
    for replica in state.replicas:
        replica.log_end_offset += base
        replica.high_watermark += base
        replica.log_start_offset += start
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

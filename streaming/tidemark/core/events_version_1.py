"""Version 1 of the events, read only: older collectors and recordings have it.

Its events, and the samples of an observation, are JSON objects. Fields, values and bounds are those
of `core.events`; an absent field has its default.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from tidemark.core.events import (
    MAX_EVENTS,
    MAX_REPLICAS,
    VERSION,
    Ack,
    Audit,
    Batch,
    BrokerState,
    Checkpoint,
    ClusterName,
    Count,
    Escrow,
    Event,
    MetadataChange,
    Name,
    Observation,
    PartitionDeleted,
    Pass,
    Replica,
)


class _Replica(Replica, array_like=False, gc=False):
    pass


class _Observation(Observation, array_like=False, gc=False):
    samples: Annotated[list[_Replica], Meta(max_length=MAX_REPLICAS)] = []  # type: ignore[assignment]


class _MetadataChange(MetadataChange, array_like=False):
    pass


class _Checkpoint(Checkpoint, array_like=False):
    pass


class _BrokerState(BrokerState, array_like=False):
    pass


class _Audit(Audit, array_like=False):
    pass


class _Escrow(Escrow, array_like=False):
    pass


class _PartitionDeleted(PartitionDeleted, array_like=False):
    pass


class _Ack(Ack, array_like=False):
    pass


class _Pass(Pass, array_like=False):
    pass


_Event = (
    _Observation
    | _MetadataChange
    | _Checkpoint
    | _BrokerState
    | _Audit
    | _Escrow
    | _PartitionDeleted
    | _Ack
    | _Pass
)


class _Batch(Struct, kw_only=True):
    v: Literal[1]
    cluster: ClusterName
    collector: Name
    collector_epoch: Count
    pass_number: Count = msgspec.field(name="pass")
    events: Annotated[list[_Event], Meta(max_length=MAX_EVENTS)]


_batches: Final[msgspec.json.Decoder[_Batch]] = msgspec.json.Decoder(_Batch)
_events: Final[msgspec.json.Decoder[_Event]] = msgspec.json.Decoder(_Event)


def decode_batch(data: bytes) -> Batch:
    """A batch of version 1, as one of this version. Raises `core.codec.UNREADABLE`."""
    read = _batches.decode(data)
    return Batch(
        v=VERSION,
        cluster=read.cluster,
        collector=read.collector,
        collector_epoch=read.collector_epoch,
        pass_number=read.pass_number,
        events=[_converted(event) for event in read.events],
    )


def decode_event(data: bytes) -> Event:
    """A single event of version 1. Raises `core.codec.UNREADABLE`."""
    return _converted(_events.decode(data))


def _converted(event: _Event) -> Event:
    values = msgspec.structs.asdict(event)
    if isinstance(event, _Observation):
        values["samples"] = [Replica(**msgspec.structs.asdict(each)) for each in event.samples]
    kind: Any = type(event).__base__
    converted: Event = kind(**values)
    return converted

"""Version 1 of the events, read only: older collectors and recordings have it.

Its events, and the samples of an observation, are JSON objects. Fields, values and bounds are those
of `core.events`; an absent field has its default.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Union, get_args

import msgspec
from msgspec import Meta

from tidemark.core.events import (
    MAX_EVENTS,
    MAX_REPLICAS,
    VERSION,
    Batch,
    Event,
    Observation,
    Replica,
)


class _Replica(Replica, array_like=False, gc=False):
    pass


class _Observation(Observation, array_like=False, gc=False):
    samples: Annotated[list[_Replica], Meta(max_length=MAX_REPLICAS)] = []  # type: ignore[assignment]


# The others as they are, but for their form.
_OTHERS: Final = tuple(
    msgspec.defstruct(kind.__name__, [], bases=(kind,), array_like=False)
    for kind in get_args(Event)
    if kind is not Observation
)
_EVENT: Final[Any] = Union[(_Observation, *_OTHERS)]
_EVENTS: Final[Any] = Annotated[list[_EVENT], Meta(max_length=MAX_EVENTS)]
_BATCH: Final = msgspec.defstruct(
    "Batch", [("v", Literal[1]), ("events", _EVENTS)], bases=(Batch,), kw_only=True
)

_batches: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(_BATCH)
_events: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(_EVENT)


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


def _converted(event: Event) -> Event:
    values = msgspec.structs.asdict(event)
    if isinstance(event, _Observation):
        values["samples"] = [Replica(**msgspec.structs.asdict(each)) for each in event.samples]
    kind: Any = type(event).__base__
    converted: Event = kind(**values)
    return converted

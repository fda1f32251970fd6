"""Version 2 of `tidemark.replica-state`: the events of version 1 as JSON arrays.

An event is the array of its fields, in the order of `FIELDS`, after the name of its kind; so is
each sample of an observation. Fields at the end that are null are left out. All else is as in
`tidemark.core.events`: the values, the bounds, and the objects within the other events. A record
takes a third of the bytes, which the broker, Spark and the decoder all carry.

A new field is nullable and the last of its event. No field moves and none is removed.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from tidemark.core.events import (
    MAX_EVENTS,
    MAX_REPLICAS,
    Ack,
    Audit,
    BrokerState,
    Checkpoint,
    ClusterName,
    Count,
    Event,
    MetadataChange,
    Name,
    Observation,
    PartitionDeleted,
    Pass,
    Replica,
)

COMPACT_VERSION: Final = 2


class CompactReplica(Replica, array_like=True, gc=False):
    """A sample as an array."""


class CompactObservation(Observation, array_like=True, gc=False):
    """An observation as an array. A field that is declared again comes first."""

    samples: Annotated[list[CompactReplica], Meta(max_length=MAX_REPLICAS)] = []  # type: ignore[assignment]


class CompactMetadataChange(MetadataChange, array_like=True):
    """A metadata change as an array."""


class CompactCheckpoint(Checkpoint, array_like=True):
    """A checkpoint as an array."""


class CompactBrokerState(BrokerState, array_like=True):
    """The state of a broker as an array."""


class CompactAudit(Audit, array_like=True):
    """An audit as an array."""


class CompactPartitionDeleted(PartitionDeleted, array_like=True):
    """A deletion as an array."""


class CompactAck(Ack, array_like=True):
    """An acknowledgement as an array."""


class CompactPass(Pass, array_like=True):
    """A pass as an array. Its brokers are objects."""


CompactEvent = (
    CompactObservation
    | CompactMetadataChange
    | CompactCheckpoint
    | CompactBrokerState
    | CompactAudit
    | CompactPartitionDeleted
    | CompactAck
    | CompactPass
)


class CompactBatch(Struct, kw_only=True):
    """One Kafka record of version 2."""

    v: Literal[2]
    cluster: ClusterName
    collector: Name
    collector_epoch: Count
    pass_number: Count = msgspec.field(name="pass")
    events: Annotated[list[CompactEvent], Meta(max_length=MAX_EVENTS)]


_KINDS: Final[tuple[type[Struct], ...]] = CompactEvent.__args__
_PLAIN: Final[dict[type, Any]] = {kind: kind.__base__ for kind in _KINDS}
# By the kind of an event: its name, and its fields in their order.
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    str(kind.__struct_config__.tag): kind.__struct_fields__ for kind in _KINDS
}
REPLICA_FIELDS: Final = CompactReplica.__struct_fields__
_SAMPLES: Final = Observation.__struct_fields__.index("samples")
_AFTER: Final = _SAMPLES + 1


def as_array(event: Event) -> object:
    """What msgspec encodes as the array of an event."""
    event = as_object(event)
    values = msgspec.structs.astuple(event)
    kind = event.__struct_config__.tag
    if isinstance(event, Observation):
        samples = [_trimmed(msgspec.structs.astuple(sample)) for sample in event.samples]
        return _trimmed((kind, samples, *values[:_SAMPLES], *values[_AFTER:]))
    return _trimmed((kind, *values))


def _trimmed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Without the nulls at the end."""
    end = len(values)
    while values[end - 1] is None:
        end -= 1
    return values[:end]


def as_object(event: Event) -> Event:
    """The event of version 1 with the same values."""
    plain = _PLAIN.get(type(event))
    if plain is None:
        return event
    values = {name: getattr(event, name) for name in event.__struct_fields__}
    if isinstance(event, Observation):
        values["samples"] = [Replica(**msgspec.structs.asdict(s)) for s in event.samples]
    converted: Event = plain(**values)
    return converted


def named_path(path: list[int], kind: object) -> str:
    """`.samples[1].broker` for the positions of a field in the array of an event.

    Positions of no field are given as they are.
    """
    fields = FIELDS.get(kind, ()) if isinstance(kind, str) else ()
    if not path or not 1 <= path[0] <= len(fields):
        return "".join(f"[{place}]" for place in path)
    name, rest = fields[path[0] - 1], path[1:]
    text = f".{name}"
    if name == "samples" and len(rest) > 1 and rest[1] < len(REPLICA_FIELDS):
        text += f"[{rest[0]}].{REPLICA_FIELDS[rest[1]]}"
        rest = rest[2:]
    return text + "".join(f"[{place}]" for place in rest)

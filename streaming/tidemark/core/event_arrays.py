"""Events as arrays: how they are written, and the names of their fields."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from tidemark.core.events import Event, Observation, Replica

_KINDS: Final[tuple[type[Struct], ...]] = Event.__args__
# By the kind of an event: its name, and its fields in their order.
FIELDS: Final[dict[str, tuple[str, ...]]] = {
    str(kind.__struct_config__.tag): kind.__struct_fields__ for kind in _KINDS
}
REPLICA_FIELDS: Final = Replica.__struct_fields__


def as_array(event: Event) -> object:
    """What msgspec encodes as the array of an event, without the nulls at its end."""
    values = msgspec.structs.astuple(event)
    kind = event.__struct_config__.tag
    if isinstance(event, Observation):
        samples = [_trimmed(msgspec.structs.astuple(sample)) for sample in event.samples]
        return _trimmed((kind, samples, *values[1:]))
    return _trimmed((kind, *values))


def _trimmed(values: tuple[Any, ...]) -> tuple[Any, ...]:
    end = len(values)
    while values[end - 1] is None:
        end -= 1
    return values[:end]


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

"""Events as version 1 wrote them: as JSON objects."""

from __future__ import annotations

from typing import Any

import msgspec

from tidemark.core.events import Batch, Event, Observation


def encode_batch(batch: Batch) -> bytes:
    """A batch of version 1 with the same events."""
    head = {
        "v": 1,
        "cluster": batch.cluster,
        "collector": batch.collector,
        "collector_epoch": batch.collector_epoch,
        "pass": batch.pass_number,
    }
    return msgspec.json.encode({**head, "events": [as_object(event) for event in batch.events]})


def as_object(event: Event) -> dict[str, Any]:
    fields = _known(event)
    if isinstance(event, Observation):
        fields["samples"] = [_known(sample) for sample in event.samples]
    return {"kind": event.__struct_config__.tag, **fields}


def _known(struct: msgspec.Struct) -> dict[str, Any]:
    return {
        name: value for name, value in msgspec.structs.asdict(struct).items() if value is not None
    }

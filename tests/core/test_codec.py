"""A batch decodes to what was encoded. Any other record is a WireError that names the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests import version_1
from tests.core.event_strategies import any_event, batches
from tests.schema import EVENTS
from tidemark.core.codec import (
    MAX_RECORD_BYTES,
    decode_batch,
    encode_batch,
    json_schema,
    salvage_batch,
)
from tidemark.core.errors import WireError
from tidemark.core.events import Batch, ClusterName, Topic

encoders = st.sampled_from([encode_batch, version_1.encode_batch])
Encode = Callable[[Batch], bytes]
SCHEMA = json.loads(EVENTS.read_text(encoding="utf-8"))
# `jsonschema.validate` would check the schema itself for each example.
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@given(batches, encoders)
def test_a_batch_of_either_version_decodes_to_what_was_encoded(
    batch: Batch, encode: Encode
) -> None:
    encoded = encode(batch)
    assert decode_batch(encoded) == batch
    assert salvage_batch(encoded) == (batch, [])


@settings(max_examples=30)
@given(batches)
def test_an_encoded_batch_fits_the_committed_schema(batch: Batch) -> None:
    VALIDATOR.validate(json.loads(encode_batch(batch)))


def test_the_committed_schema_is_the_generated_one() -> None:
    assert json_schema() == SCHEMA, "run `make schema`"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@given(batches, encoders, st.data())
def test_a_truncated_record_is_a_typed_error(
    batch: Batch, encode: Encode, data: st.DataObject
) -> None:
    encoded = encode(batch)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(WireError) as error:
        salvage_batch(encoded[:cut])
    assert error.value.field.startswith("$")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_batch_or_a_typed_error(data: bytes) -> None:
    try:
        batch, bad = salvage_batch(data)
    except WireError:
        return
    assert isinstance(batch, Batch)
    assert all(event.error.field.startswith("$.events[") for event in bad)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(found for key, item in inner for found in _paths(item, (*path, key)))]


def _named(path: tuple[Any, ...]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


@given(batches.filter(lambda batch: bool(batch.events)), st.data())
def test_the_error_names_a_field_of_the_wrong_type(batch: Batch, data: st.DataObject) -> None:
    document = json.loads(version_1.encode_batch(batch))
    path = data.draw(st.sampled_from([path for path in _paths(document) if path]))
    target = document
    for part in path[:-1]:
        target = target[part]
    # An object with an unknown key fits maps only; a map's field takes no number.
    target[path[-1]] = 0.5 if isinstance(target[path[-1]], dict) else {"hostile": True}
    with pytest.raises(WireError) as error:
        decode_batch(json.dumps(document).encode())
    named = error.value.field
    # msgspec writes `[...]` for the values of a map, which have no position.
    assert (
        named == "$"
        or "[...]" in named
        or _named(path).startswith(named)
        or named.startswith(_named(path))
    ), (named, _named(path))
    assert str(error.value)


@given(batches, any_event, st.integers(0, 5), encoders)
def test_one_bad_event_does_not_affect_the_others(
    batch: Batch, event: Any, place: int, encode: Encode
) -> None:
    document = json.loads(encode(batch))
    (bad,) = json.loads(encode(structs.replace(batch, events=[event])))["events"]
    bad["kind" if isinstance(bad, dict) else 0] = "no such kind"
    place = min(place, len(document["events"]))
    document["events"].insert(place, bad)
    salvaged, refused = salvage_batch(json.dumps(document).encode())
    assert salvaged == batch
    assert [item.error.field.split(".", 2)[1][:9] for item in refused] == [f"events[{place}]"]
    assert json.loads(refused[0].payload) == bad


@pytest.mark.parametrize(
    ("record", "field", "message"),
    [
        (b"", "$", "empty"),
        (b"[]", "$", "Expected `object`"),
        (
            b'{"v":3,"cluster":"a","collector":"b","collector_epoch":1,"pass":1,"events":[]}',
            "$.v",
            "upgrade the reader",
        ),
        (
            b'{"v":1,"cluster":"a","collector":"b","collector_epoch":-1,"pass":1,"events":[]}',
            "$.collector_epoch",
            ">= 0",
        ),
        (b'{"v":1,"cluster":"a","collector":"b","collector_epoch":1,"events":[]}', "$", "pass"),
        (b"[" * 100_000, "$", ""),
        (b" " * (MAX_RECORD_BYTES + 1), "$", "bytes"),
        (b'{"v":1,"cluster":"\xff"', "$", ""),
    ],
)
def test_hostile_records(record: bytes, field: str, message: str) -> None:
    with pytest.raises(WireError) as error:
        salvage_batch(record)
    assert error.value.field == field
    assert message in str(error.value)


@pytest.mark.parametrize("kind", [ClusterName, Topic], ids=["cluster", "topic"])
def test_a_name_has_no_line_end(kind: Any) -> None:
    assert msgspec.convert("orders", kind) == "orders"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert("orders\n", kind)

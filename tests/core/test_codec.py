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
from tests.schema import EVENTS, event_schema
from tidemark.core.codec import (
    MAX_RECORD_BYTES,
    decode_batch,
    encode_batch,
    encode_event,
    salvage_batch,
)
from tidemark.core.errors import WireError
from tidemark.core.event_arrays import FIELDS, REPLICA_FIELDS
from tidemark.core.events import Batch, ClusterName, Observation, PartitionDeleted, Replica, Topic

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
    assert event_schema() == SCHEMA, "run `make schema`"
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


# Events as arrays: positions never change, and errors name fields.


# Written to topics: a field may be added at the end, and nothing else.
POSITIONS = {
    "observation": "samples topic partition observed_at topic_id leader leader_epoch leaderless "
    "replicas in_sync_replicas eligible_leader_replicas last_known_eligible_leader_replicas adding "
    "removing effective_min_in_sync_replicas metadata_from metadata_at "
    "leader_log_end_offset_before leader_log_end_offset_after leader_before_at leader_after_at "
    "committed fast_high_watermarks lineage lineage_complete_from compacted "
    "unclean_leader_election throttled_replicas",
    "metadata_change": "topic partition observed_at topic_id metadata_offset record_at leader "
    "leader_epoch partition_epoch replicas in_sync_replicas eligible_leader_replicas "
    "last_known_eligible_leader_replicas adding removing recovering cause",
    "checkpoint": "topic partition observed_at broker topic_id high_watermark recovery_point "
    "log_start_offset lineage_starts modified_at first_dirty_offset",
    "broker": "broker observed_at incarnation fenced in_controlled_shutdown is_voter "
    "metadata_log_end_offset metadata_lag_ms log_directories offline_log_dirs configuration "
    "produce_purgatory fetch_purgatory elect_leader_purgatory jmx checkpoint_modified_at "
    "checkpoint_directory stopped_clean stopped_at cluster_id",
    "audit": "topic partition observed_at topic_id brokers offset leader_epoch crcs leader_epochs "
    "high_watermark",
    "escrow": "topic partition observed_at topic_id ranges kept_until",
    "gone": "topic partition observed_at topic_id",
    "ack": "fingerprint observed_at topic partition by comment",
    "pass": "number started_at ended_at monotonic period_ms brokers missed cluster_id partitions "
    "quorum_leader quorum_epoch reassigning shard",
}
REPLICA_POSITIONS = (
    "broker log_end_offset high_watermark log_start_offset last_stable_offset leader_epoch leads "
    "requested_ms answered_ms error lineage size_bytes"
)


def test_a_field_keeps_its_position() -> None:
    assert FIELDS.keys() == POSITIONS.keys()
    for kind, names in POSITIONS.items():
        assert FIELDS[kind][: len(names.split())] == tuple(names.split()), kind
    assert REPLICA_FIELDS[: len(REPLICA_POSITIONS.split())] == tuple(REPLICA_POSITIONS.split())


@given(any_event)
def test_fields_after_the_known_ones_are_ignored(event: Any) -> None:
    """A reader of this release takes what a later one writes."""
    written = json.loads(encode_event(event))
    absent = [None] * (1 + len(FIELDS[written[0]]) - len(written))
    later = _record([*written, *absent, {"of": "a later release"}])
    assert decode_batch(later).events == [event]


def _record(*events: object) -> bytes:
    head = {"v": 2, "cluster": "c", "collector": "k", "collector_epoch": 1, "pass": 2}
    return json.dumps({**head, "events": events}).encode()


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (["observation", [[1, "x"]], "t", 0, 1.0], ".samples[0].log_end_offset"),
        (["observation", [[1]], "a/b", 0, 1.0], ".topic"),
        (["observation", [[1], [1]], "t", 0, 1.0], ".samples"),
        (["observation", [], "t", 0, 1.0, None, None, None, False, [-1]], ".replicas[0]"),
        (["gone", "t", 0, "x"], ".observed_at"),
        (["pass", 1, 1, 1, 1, 1, [{"broker": "x", "outcome": "ok"}]], ".brokers[0].broker"),
        (["gone"], ""),
        (["nothing", 1], "[0]"),
        ([[]], "[0]"),
        ([], ""),
        ({"kind": "gone"}, ""),
    ],
)
def test_an_error_names_the_field(event: object, field: str) -> None:
    record = _record(["gone", "t", 0, 1.0], event)
    salvaged, (bad,) = salvage_batch(record)
    assert len(salvaged.events) == 1
    assert bad.error.field == f"$.events[1]{field}"
    assert json.loads(bad.payload) == event
    with pytest.raises(WireError) as error:
        decode_batch(record)
    assert error.value.field == f"$.events[1]{field}"


def test_objects_are_no_events_of_version_2() -> None:
    event = version_1.as_object(PartitionDeleted(topic="t", partition=0, observed_at=1.0))
    with pytest.raises(WireError, match="Expected `array`"):
        decode_batch(_record(event))


@given(st.permutations(("v", "cluster", "collector", "collector_epoch", "pass", "events")))
def test_the_order_of_the_keys_does_not_matter(keys: list[str]) -> None:
    record = _record(["gone", "t", 0, 1.0])
    batch = decode_batch(record)
    for written in (record, version_1.encode_batch(batch)):
        document = json.loads(written)
        shuffled = json.dumps({key: document[key] for key in keys}).encode()
        assert decode_batch(shuffled) == batch


def test_trailing_nulls_are_left_out() -> None:
    event = Observation(
        topic="t", partition=1, observed_at=2.0, samples=[Replica(broker=1, log_end_offset=3)]
    )
    encoded = json.loads(encode_event(event))
    assert encoded[1] == [[1, 3]]
    assert encoded[-1] == []
    assert len(encoded) == FIELDS["observation"].index("metadata_from") + 2

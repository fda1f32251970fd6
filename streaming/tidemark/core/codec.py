"""Bytes to events and back. Every failure is a WireError that names the field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import cleandoc
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from tidemark.core.compact_events import (
    COMPACT_VERSION,
    CompactBatch,
    CompactEvent,
    as_array,
    as_object,
    named_path,
)
from tidemark.core.errors import WireError
from tidemark.core.events import (
    MAX_BYTES,
    MAX_EVENTS,
    VERSION,
    Batch,
    BrokerAnswer,
    ClusterName,
    Count,
    Event,
    Name,
    Observation,
    Pass,
    Replica,
)

# Writers keep to MAX_BYTES. Readers accept more, up to this bound.
MAX_RECORD_BYTES: Final = 16 * MAX_BYTES

# What msgspec raises for bytes that do not fit.
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError)

_encoder = msgspec.json.Encoder()
_batches: msgspec.json.Decoder[Batch] = msgspec.json.Decoder(Batch)
_events: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_compact_batches: msgspec.json.Decoder[CompactBatch] = msgspec.json.Decoder(CompactBatch)
_compact_events: msgspec.json.Decoder[CompactEvent] = msgspec.json.Decoder(CompactEvent)
_broker_of = attrgetter("broker")
_PATH = re.compile(r" - at `(?:key in )?(?P<path>[^`]*)`$")
# As `encode_head` begins a record of version 2.
_COMPACT_START: Final = b'{"v":2,'
_POSITIONS = re.compile(r"^(?P<event>\$\.events\[(?P<index>\d+)\])(?P<path>(?:\[\d+\])+)")


class _Envelope(msgspec.Struct, kw_only=True):
    """A batch whose events are not decoded."""

    v: Literal[1, 2]
    cluster: ClusterName
    collector: Name
    collector_epoch: Count
    pass_number: Count = msgspec.field(name="pass")
    events: list[msgspec.Raw]


class _Version(msgspec.Struct):
    """Of a record whose other fields are not decoded."""

    v: int


class BadEvent(NamedTuple):
    """One event of a batch that does not fit the schema."""

    error: WireError
    payload: bytes


def encode_batch(batch: Batch, version: int = VERSION) -> bytes:
    """JSON of a batch in a version of the schema: one line, without the line end."""
    head = encode_head(
        batch.cluster, batch.collector, batch.collector_epoch, batch.pass_number, version
    )
    return head + b",".join(encode_event(event, version) for event in batch.events) + b"]}"


def encode_head(
    cluster: str, collector: str, collector_epoch: int, pass_number: int, version: int = VERSION
) -> bytes:
    """A batch up to its events, which are separated by commas and followed by `]}`."""
    head = {
        "v": version,
        "cluster": cluster,
        "collector": collector,
        "collector_epoch": collector_epoch,
        "pass": pass_number,
    }
    return _encoder.encode(head)[:-1] + b',"events":['


def encode_event(event: Event, version: int = VERSION) -> bytes:
    """JSON of a single event, as a batch of the version contains it."""
    form = as_array(event) if version == COMPACT_VERSION else as_object(event)
    return _encoder.encode(form)


def decode_batch(data: bytes) -> Batch:
    """Decodes a whole batch of either version. Raises WireError for a field that does not fit."""
    batch = _decode(data)
    batch.events = [as_object(event) for event in batch.events]
    return batch


def salvage_batch(data: bytes) -> tuple[Batch, list[BadEvent]]:
    """The readable events of a batch, and each bad one with its error.

    Events of version 2 are of the subclasses in `compact_events`, which costs no conversion.
    Raises WireError when the envelope is not readable.
    """
    try:
        return _decode(data), []
    except WireError as error:
        first = error
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
    except UNREADABLE:
        raise first from None
    if len(envelope.events) > MAX_EVENTS or not re.match(r"^\$\.events\[", first.field):
        raise first
    events = _compact_events if envelope.v == COMPACT_VERSION else _events
    good: list[Event] = []
    bad: list[BadEvent] = []
    for index, raw in enumerate(envelope.events):
        payload = bytes(raw)
        try:
            event: Event = events.decode(payload)
            _check_brokers(event, index)
            good.append(event)
        except WireError as error:
            bad.append(BadEvent(error, payload))
        except UNREADABLE as error:
            reason = _wire_error(error, payload, f"$.events[{index}]")
            bad.append(BadEvent(_with_names(reason, payload), payload))
    return _batch(envelope, good), bad


def _decode(data: bytes, *, is_compact: bool | None = None) -> Batch:
    """Raises WireError for the first field that does not fit."""
    _check_size(data)
    compact = data.startswith(_COMPACT_START) if is_compact is None else is_compact
    try:
        batch = _upcast(_compact_batches.decode(data)) if compact else _batches.decode(data)
    except UNREADABLE as error:
        failure = _wire_error(error, data)
    else:
        for index, event in enumerate(batch.events):
            _check_brokers(event, index)
        return batch
    if not compact and failure.field.startswith(("$.v", "$.events")) and _is_compact(data):
        # Of another writer, with its keys in another order.
        return _decode(data, is_compact=True)
    raise _with_names(failure, _raw_event(data, failure))


def _is_compact(data: bytes) -> bool:
    try:
        return msgspec.json.decode(data, type=_Version).v == COMPACT_VERSION
    except UNREADABLE:
        return False


def _upcast(compact: CompactBatch) -> Batch:
    return _batch(compact, cast(list[Event], compact.events))


def _batch(envelope: CompactBatch | _Envelope, events: list[Event]) -> Batch:
    return Batch(
        v=1,
        cluster=envelope.cluster,
        collector=envelope.collector,
        collector_epoch=envelope.collector_epoch,
        pass_number=envelope.pass_number,
        events=events,
    )


def _raw_event(data: bytes, failure: WireError) -> bytes:
    """The event that a failure is about; empty without one."""
    match = _POSITIONS.match(failure.field)
    try:
        return (
            b""
            if match is None
            else bytes(msgspec.json.decode(data, type=_Envelope).events[int(match["index"])])
        )
    except (*UNREADABLE, IndexError):
        return b""


def _with_names(failure: WireError, event: bytes) -> WireError:
    """The failure with the names of fields in place of their positions in an array."""
    match = _POSITIONS.match(failure.field)
    if match is None:
        return failure
    try:
        kind = msgspec.json.decode(msgspec.json.decode(event, type=list[msgspec.Raw])[0])
    except (*UNREADABLE, IndexError):
        return failure
    path = [int(place) for place in re.findall(r"\d+", match["path"])]
    field = match["event"] + named_path(path, kind) + failure.field[match.end() :]
    return WireError(str(failure), field)


def json_schema(version: int = VERSION) -> dict[str, Any]:
    """JSON Schema (2020-12) of a batch; it is committed beside this module."""
    schema = msgspec.json.schema(CompactBatch if version == COMPACT_VERSION else Batch)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Tidemark replica-state, version {version}",
        **dedented(schema),
    }


def dedented(schema: Any) -> Any:
    """A JSON Schema with descriptions as Python 3.13 stores docstrings: without indentation."""
    if isinstance(schema, list):
        return [dedented(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: cleandoc(value) if key == "description" and isinstance(value, str) else dedented(value)
        for key, value in schema.items()
    }


def _check_brokers(event: Event, index: int) -> None:
    """A broker gives one answer in a pass: a second one contradicts it."""
    answers: Sequence[Replica | BrokerAnswer]
    if isinstance(event, Observation):
        field, answers = "samples", event.samples
    elif isinstance(event, Pass):
        field, answers = "brokers", event.brokers
    else:
        return
    if len(set(map(_broker_of, answers))) != len(answers):
        raise WireError("a broker is named twice", f"$.events[{index}].{field}")


def _check_size(data: bytes) -> None:
    if len(data) > MAX_RECORD_BYTES:
        raise WireError(
            f"the record has {len(data)} bytes, more than the {MAX_RECORD_BYTES} a reader takes",
            "$",
        )


def _wire_error(error: Exception, data: bytes, prefix: str = "$") -> WireError:
    text = str(error) or type(error).__name__
    match = _PATH.search(text)
    path = match["path"] if match else "$"
    if path == "$.v" and prefix == "$":
        return WireError(
            f"{_PATH.sub('', text)}: this Tidemark reads the versions {VERSION} and "
            f"{COMPACT_VERSION}; upgrade the reader before the writer",
            "$.v",
        )
    field = prefix + path.removeprefix("$")
    if not data.strip():
        text = "the record is empty"
    return WireError(_PATH.sub("", text), field)

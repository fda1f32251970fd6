"""Bytes to events and back. Every failure is a WireError that names the field.

What is written has version 2; version 1 is read too (`core.events_version_1`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import cleandoc
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec

from tidemark.core import events_version_1
from tidemark.core.errors import WireError
from tidemark.core.event_arrays import as_array, named_path
from tidemark.core.events import (
    MAX_BYTES,
    MAX_EVENTS,
    VERSION,
    Ack,
    Audit,
    Batch,
    BrokerAnswer,
    Escrow,
    Event,
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
_broker_of = attrgetter("broker")
_PATH = re.compile(r" - at `(?:key in )?(?P<path>[^`]*)`$")
# As writers of version 1 begin a record.
_START_OF_VERSION_1: Final = b'{"v":1,'
_POSITIONS = re.compile(r"^(?P<event>\$\.events\[(?P<index>\d+)\])(?P<path>(?:\[\d+\])+)")


class _Envelope(Batch, kw_only=True):
    """A batch whose events are not decoded."""

    v: Literal[1, 2]  # type: ignore[assignment]
    events: list[msgspec.Raw]  # type: ignore[assignment]


class _Version(msgspec.Struct):
    """Of a record whose other fields are not decoded."""

    v: int


class BadEvent(NamedTuple):
    """One event of a batch that does not fit the schema."""

    error: WireError
    payload: bytes


def encode_batch(batch: Batch) -> bytes:
    """JSON of a batch: one line, without the line end."""
    head = encode_head(batch.cluster, batch.collector, batch.collector_epoch, batch.pass_number)
    return head + b",".join(map(encode_event, batch.events)) + b"]}"


def encode_head(cluster: str, collector: str, collector_epoch: int, pass_number: int) -> bytes:
    """A batch up to its events, which are separated by commas and followed by `]}`."""
    head = {
        "v": VERSION,
        "cluster": cluster,
        "collector": collector,
        "collector_epoch": collector_epoch,
        "pass": pass_number,
    }
    return _encoder.encode(head)[:-1] + b',"events":['


def encode_event(event: Event) -> bytes:
    """JSON of a single event, as a batch contains it."""
    return _encoder.encode(as_array(event))


def salvage_batch(data: bytes) -> tuple[Batch, list[BadEvent]]:
    """The readable events of a batch of either version, and each bad one with its error.

    Raises WireError when the envelope is not readable.
    """
    try:
        return decode_batch(data), []
    except WireError as error:
        first = error
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
    except UNREADABLE:
        raise first from None
    if len(envelope.events) > MAX_EVENTS or not re.match(r"^\$\.events\[", first.field):
        raise first
    decode = _events.decode if envelope.v == VERSION else events_version_1.decode_event
    good: list[Event] = []
    bad: list[BadEvent] = []
    for index, raw in enumerate(envelope.events):
        payload = bytes(raw)
        try:
            event = decode(payload)
            _check_brokers(event, index)
            good.append(event)
        except WireError as error:
            bad.append(BadEvent(error, payload))
        except UNREADABLE as error:
            reason = _wire_error(error, payload, f"$.events[{index}]")
            bad.append(BadEvent(_with_names(reason, payload), payload))
    batch = Batch(
        v=VERSION,
        cluster=envelope.cluster,
        collector=envelope.collector,
        collector_epoch=envelope.collector_epoch,
        pass_number=envelope.pass_number,
        events=good,
    )
    return batch, bad


def decode_batch(data: bytes) -> Batch:
    """A whole batch of either version. Raises WireError for the first field that does not fit."""
    _check_size(data)
    if data.startswith(_START_OF_VERSION_1):
        return _decode(data, events_version_1.decode_batch)
    try:
        return _decode(data, _batches.decode)
    except WireError as error:
        # Of a writer with its keys in another order.
        if error.field.startswith(("$.v", "$.events")) and _is_version_1(data):
            return _decode(data, events_version_1.decode_batch)
        raise


def _decode(data: bytes, decode: Callable[[bytes], Batch]) -> Batch:
    try:
        batch = decode(data)
    except UNREADABLE as error:
        failure = _wire_error(error, data)
        raise _with_names(failure, _raw_event(data, failure)) from None
    for index, event in enumerate(batch.events):
        _check_brokers(event, index)
    return batch


def _is_version_1(data: bytes) -> bool:
    try:
        return msgspec.json.decode(data, type=_Version).v == 1
    except UNREADABLE:
        return False


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


def encode_lone_event(cluster: str, sender: str, event: Ack | Audit | Escrow) -> bytes:
    """A batch of one event. Its sender is no collector: it has no pass and owns no partition."""
    return encode_batch(
        Batch(
            v=2,
            cluster=cluster,
            collector=sender,
            collector_epoch=int(event.observed_at * 1000),
            pass_number=0,
            events=[event],
        )
    )


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
            f"{_PATH.sub('', text)}: this Tidemark reads the versions 1 and {VERSION}; upgrade "
            "the reader before the writer",
            "$.v",
        )
    field = prefix + path.removeprefix("$")
    if not data.strip():
        text = "the record is empty"
    return WireError(_PATH.sub("", text), field)

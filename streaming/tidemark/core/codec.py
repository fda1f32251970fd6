"""Bytes to events and back. Every failure is a WireError that names the field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec

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
_broker_of = attrgetter("broker")
_PATH = re.compile(r" - at `(?:key in )?(?P<path>[^`]*)`$")


class _Envelope(msgspec.Struct, kw_only=True):
    """A batch whose events are not decoded."""

    v: Literal[1]
    cluster: ClusterName
    collector: Name
    collector_epoch: Count
    pass_number: Count = msgspec.field(name="pass")
    events: list[msgspec.Raw]


class BadEvent(NamedTuple):
    """One event of a batch that does not fit the schema."""

    error: WireError
    payload: bytes


def encode_batch(batch: Batch) -> bytes:
    """JSON of a batch: one line, without the line end."""
    return _encoder.encode(batch)


def encode_event(event: Event) -> bytes:
    """JSON of a single event, as a batch contains it."""
    return _encoder.encode(event)


def decode_batch(data: bytes) -> Batch:
    """Decodes a whole batch. Raises WireError for the first field that does not fit."""
    _check_size(data)
    try:
        batch = _batches.decode(data)
    except UNREADABLE as error:
        raise _wire_error(error, data) from None
    for index, event in enumerate(batch.events):
        _check_brokers(event, index)
    return batch


def salvage_batch(data: bytes) -> tuple[Batch, list[BadEvent]]:
    """The readable events of a batch, and each bad one with its error.

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
    good: list[Event] = []
    bad: list[BadEvent] = []
    for index, raw in enumerate(envelope.events):
        payload = bytes(raw)
        try:
            event = _events.decode(payload)
            _check_brokers(event, index)
            good.append(event)
        except WireError as error:
            bad.append(BadEvent(error, payload))
        except UNREADABLE as error:
            bad.append(BadEvent(_wire_error(error, payload, f"$.events[{index}]"), payload))
    batch = Batch(
        v=1,
        cluster=envelope.cluster,
        collector=envelope.collector,
        collector_epoch=envelope.collector_epoch,
        pass_number=envelope.pass_number,
        events=good,
    )
    return batch, bad


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a batch; it is committed beside this module."""
    schema = msgspec.json.schema(Batch)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tidemark replica-state, version 1",
        **schema,
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
            f"{_PATH.sub('', text)}: this Tidemark reads version {VERSION}; upgrade the reader "
            "before the writer",
            "$.v",
        )
    field = prefix + path.removeprefix("$")
    if not data.strip():
        text = "the record is empty"
    return WireError(_PATH.sub("", text), field)

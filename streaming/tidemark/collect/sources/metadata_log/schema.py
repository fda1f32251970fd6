"""Fields of metadata records, by version: a table instead of Kafka's generated classes.

Every record of the metadata log is flexible (KIP-482): compact lengths, and tagged fields at the
end of a structure. Tags that a table does not have are skipped, as Kafka does.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, Final, NamedTuple

from tidemark.collect.codecs.wire import INT32, ResponseReader
from tidemark.core.errors import WireError

UUID_BYTES: Final = 16
# Records of one topic follow each other: they share the text of its id.
KNOWN_UUIDS: Final = 1_024


class RecordReader(ResponseReader):
    """Reads the value of one metadata record. Raises WireError for what does not fit."""

    __slots__ = ()

    def fail(self, what: str) -> WireError:
        return WireError(
            f"{self.name} of {self.end} bytes: {what} at byte {self.position}",
            f"$[{self.position}]",
        )


Read = Callable[[RecordReader], Any]


class Field(NamedTuple):
    """One field: how it is read, since which version, and its tag where it is tagged."""

    name: str
    read: Read
    since: int = 0
    tag: int | None = None
    default: Any = None


class RecordSchema(NamedTuple):
    """A record type: its api key, the class of its values, and its fields in order.

    A field that the class does not have is read over. Tagged ones of these need no entry.
    """

    key: int
    make: Any
    newest_version: int
    fields: Sequence[Field]

    def decode(self, reader: RecordReader, version: int) -> Any:
        """The record, up to the end of the reader. Raises WireError."""
        values = _values(self.fields, reader, version)
        if reader.position != reader.end:
            raise reader.fail(f"{reader.end - reader.position} bytes left over")
        return self.make(*(values[name] for name in self.make._fields))


def _values(fields: Sequence[Field], reader: RecordReader, version: int) -> dict[str, Any]:
    values = {field.name: field.default for field in fields}
    tagged = {}
    for field in fields:
        if version < field.since:
            continue
        if field.tag is None:
            values[field.name] = field.read(reader)
        else:
            tagged[field.tag] = field
    for _ in range(reader.count_tags()):
        tag, size = reader.uvarint(), reader.uvarint()
        end = reader.position + size
        found = tagged.get(tag)
        if found is None:
            reader.skip(size)
            continue
        values[found.name] = found.read(reader)
        if reader.position != end:
            raise reader.fail(f"the tagged field {found.name} of another size")
    return values


def number(layout: Struct) -> Read:
    """A number of this layout."""
    return lambda reader: reader.read(layout)[0]


int8: Final = number(Struct(">b"))
int16: Final = number(Struct(">h"))
int32: Final = number(INT32)
int64: Final = number(Struct(">q"))
boolean: Final = number(Struct(">?"))


def string(reader: RecordReader) -> str:
    return reader.text(compact=True)


def topic_uuid(reader: RecordReader) -> str:
    """A Uuid as Kafka prints it: base64url without padding."""
    return _uuid_text(reader.take(UUID_BYTES))


@lru_cache(KNOWN_UUIDS)
def _uuid_text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def int32s(reader: RecordReader) -> list[int]:
    """Empty for null."""
    count = reader.count(INT32.size, compact=True, nullable=True)
    return [reader.read(INT32)[0] for _ in range(count)]


def skipped_string(reader: RecordReader) -> None:
    """A string, or null, that nobody asks for: read for its length, not kept."""
    reader.skip(max(reader.uvarint() - 1, 0))


def skipped_uuids(reader: RecordReader) -> None:
    """An array that nobody asks for."""
    reader.skip(UUID_BYTES * reader.count(UUID_BYTES, compact=True))


def skipped(fields: Sequence[Read], smallest: int) -> Read:
    """An array of structures that nobody asks for."""

    def read(reader: RecordReader) -> None:
        for _ in range(reader.count(smallest, compact=True)):
            for field in fields:
                field(reader)
            reader.skip_tags()

    return read

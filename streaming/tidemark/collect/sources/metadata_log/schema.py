"""Fields of metadata records, by version: a table instead of Kafka's generated classes.

Every record of the metadata log is flexible (KIP-482): compact lengths, and tagged fields at the
end of a structure. Tags that a table does not have are skipped, as Kafka does.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from tidemark.collect.codecs.wire import ResponseReader
from tidemark.core.errors import WireError

INT8: Final = Struct(">b")
INT16: Final = Struct(">h")
UINT16: Final = Struct(">H")
INT32: Final = Struct(">i")
INT64: Final = Struct(">q")
_UUID_BYTES: Final = 16
# Controllers write arrays of brokers and directories; a longer one is not from a controller.
MAX_ELEMENTS: Final = 100_000


class RecordReader(ResponseReader):
    """Reads the value of one metadata record. Raises WireError for what does not fit."""

    __slots__ = ()

    def fail(self, what: str) -> WireError:
        return WireError(
            f"{self.name} of {self.end} bytes: {what} at byte {self.position}",
            f"$[{self.position}]",
        )

    def number(self, layout: Struct) -> int:
        return int(self.read(layout)[0])

    def at_end(self) -> None:
        """Raises WireError where bytes are left over."""
        if self.position != self.end:
            raise self.fail(f"{self.end - self.position} bytes left over")

    def length(self, smallest: int, *, nullable: bool) -> int | None:
        """The compact length of an array or string; null where allowed."""
        found = self.uvarint() - 1
        if found < 0:
            if nullable:
                return None
            raise self.fail("a null where none is allowed")
        if found > MAX_ELEMENTS * max(smallest, 1) or found * smallest > self.end - self.position:
            raise self.fail(f"an array of {found} elements")
        return found


Read = Callable[[RecordReader], Any]


class Field(NamedTuple):
    """One field: how it is read, since which version, and its tag where it is tagged."""

    name: str
    read: Read
    since: int = 0
    tag: int | None = None
    default: Any = None


class RecordSchema(NamedTuple):
    """A record type: its api key, the class of its values, and its fields in order."""

    key: int
    make: Callable[..., Any]
    newest_version: int
    fields: Sequence[Field]

    def decode(self, reader: RecordReader, version: int) -> Any:
        """The record, up to the end of the reader. Raises WireError."""
        record = self.make(**_fields(self.fields, reader, version))
        reader.at_end()
        return record


def _fields(fields: Sequence[Field], reader: RecordReader, version: int) -> dict[str, Any]:
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


def int8(reader: RecordReader) -> int:
    return reader.number(INT8)


def int16(reader: RecordReader) -> int:
    return reader.number(INT16)


def int32(reader: RecordReader) -> int:
    return reader.number(INT32)


def int64(reader: RecordReader) -> int:
    return reader.number(INT64)


def boolean(reader: RecordReader) -> bool:
    return reader.number(INT8) != 0


def string(reader: RecordReader) -> str:
    return reader.text(compact=True)


def nullable_string(reader: RecordReader) -> str | None:
    length = reader.length(1, nullable=True)
    if length is None:
        return None
    start = reader.position
    reader.skip(length)
    try:
        return reader.data[start : reader.position].decode()
    except UnicodeDecodeError:
        raise reader.fail("a string that is not UTF-8") from None


def topic_uuid(reader: RecordReader) -> str:
    """A Uuid as Kafka prints it: base64url without padding."""
    start = reader.position
    reader.skip(_UUID_BYTES)
    data = bytes(reader.data[start : reader.position])
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def int32s(reader: RecordReader) -> list[int]:
    return [reader.number(INT32) for _ in range(reader.length(4, nullable=False) or 0)]


def nullable_int32s(reader: RecordReader) -> list[int] | None:
    length = reader.length(4, nullable=True)
    return None if length is None else [reader.number(INT32) for _ in range(length)]


def uuids(reader: RecordReader) -> list[str]:
    return [topic_uuid(reader) for _ in range(reader.length(_UUID_BYTES, nullable=False) or 0)]


def nullable_uuids(reader: RecordReader) -> list[str] | None:
    length = reader.length(_UUID_BYTES, nullable=True)
    return None if length is None else [topic_uuid(reader) for _ in range(length)]


def skipped(fields: Sequence[Read], smallest: int) -> Read:
    """An array of structures that nobody asks for: read for its length, not kept."""

    def read(reader: RecordReader) -> None:
        for _ in range(reader.length(smallest, nullable=False) or 0):
            for field in fields:
                field(reader)
            reader.skip_tags()

    return read

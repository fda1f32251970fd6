"""Raw Kafka frames over kafka-python's connections, and the primitives that the hand codecs share.

A `RawRequest` stands in for kafka-python's message class: the connection gives it a correlation id, sends its frame and
hands back a `RawAnswer` with the undecoded body and the time it was read. TLS, SASL, ApiVersions, correlation and
time-outs remain the library's.
"""

from __future__ import annotations

import time
from struct import Struct, error
from typing import Any, Final

from kafka.errors import KafkaProtocolError

from tidemark.core.errors import WireError

# (topic, its partitions), in the order of the request.
Blocks = tuple[tuple[str, tuple[int, ...]], ...]

FETCH: Final = 1
LIST_OFFSETS: Final = 2

_HEADER = Struct(">ihhi")
_INT16 = Struct(">h")
_INT32 = Struct(">i")


class RawAnswer:
    """The body of an answer (after the response header) and when it was read, by the monotonic clock."""

    __slots__ = ("answered_at", "body", "throttle_time_ms")

    def __init__(self, body: bytes, answered_at: float, throttle_time_ms: int) -> None:
        self.body = body
        self.answered_at = answered_at
        # kafka-python's connection reads it to hold further requests back.
        self.throttle_time_ms = throttle_time_ms


class _Correlation:
    __slots__ = ("correlation_id",)

    def __init__(self, correlation_id: int) -> None:
        self.correlation_id = correlation_id


class _Header:
    """What kafka-python's protocol asks of the header of a request in flight."""

    __slots__ = ("api_key", "api_version", "correlation_id", "flexible")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, flexible: bool) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.flexible = flexible

    def get_response_class(self) -> _Header:
        return self

    def parse_header(self, buffer: Any) -> _Correlation:
        head = buffer.read(4)
        # ResponseHeader v1 ends with tagged fields; no broker sends any. The connection is closed by this error alone.
        if len(head) < 4 or (self.flexible and buffer.read(1) != b"\x00"):
            raise KafkaProtocolError("not a response header")
        return _Correlation(_INT32.unpack(head)[0])

    def decode(self, buffer: Any) -> RawAnswer:
        body = buffer.read()
        # ThrottleTimeMs leads both answers since Fetch v1 and ListOffsets v2.
        throttled = self.api_version >= 2 and len(body) >= 4
        return RawAnswer(body, time.monotonic(), _INT32.unpack_from(body)[0] if throttled else 0)


class RawRequest:
    """One request whose body is encoded already. `flexible` says that its header has tagged fields (KIP-482)."""

    def __init__(self, api_key: int, version: int, body: bytes | bytearray, flexible: bool) -> None:
        self.API_KEY = api_key
        self.API_VERSION = version
        self.body = body
        self.flexible = flexible
        self.header: _Header | None = None
        self._client_id = b""

    def expect_response(self) -> bool:
        return True

    def with_header(self, correlation_id: int = 0, client_id: str = "tidemark") -> None:
        self.header = _Header(self.API_KEY, self.API_VERSION, correlation_id, self.flexible)
        self._client_id = client_id.encode()

    def encode(self, framed: bool = True, header: bool = True) -> bytes:
        """The frame: size, request header v1 (v2 when flexible), body."""
        assert framed
        assert header
        assert self.header is not None
        tags = b"\x00" if self.flexible else b""
        name = _INT16.pack(len(self._client_id)) + self._client_id + tags
        size = _HEADER.size - 4 + len(name) + len(self.body)
        return b"".join(
            (
                _HEADER.pack(size, self.API_KEY, self.API_VERSION, self.header.correlation_id),
                name,
                self.body,
            )
        )


def put_uvarint(value: int) -> bytes:
    """Unsigned varint (KIP-482)."""
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def put_compact_string(text: str) -> bytes:
    data = text.encode()
    return put_uvarint(len(data) + 1) + data


def put_string(text: str) -> bytes:
    data = text.encode()
    return _INT16.pack(len(data)) + data


class Reader:
    """Reads one answer from its start to its end. Every read past the end, or of a length that cannot be, is a WireError."""

    __slots__ = ("data", "end", "name", "position")

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.end = len(data)
        self.position = 0
        self.name = name

    def fail(self, what: str) -> WireError:
        return WireError(
            f"{self.name} answer of {self.end} bytes: {what} at byte {self.position}",
            f"$[{self.position}]",
        )

    def take(self, layout: Struct) -> tuple[Any, ...]:
        try:
            values = layout.unpack_from(self.data, self.position)
        except error:
            raise self.fail("truncated") from None
        self.position += layout.size
        return values

    def skip(self, count: int) -> None:
        if count < 0 or self.position + count > self.end:
            raise self.fail("truncated")
        self.position += count

    def uvarint(self) -> int:
        result = shift = 0
        while True:
            if self.position >= self.end:
                raise self.fail("truncated")
            byte = self.data[self.position]
            self.position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7
            if shift > 28:
                raise self.fail("a length above 2^32")

    def count(self, smallest: int, compact: bool, nullable: bool = False) -> int:
        """The number of elements of an array, each of at least `smallest` bytes; null, where it may be, is none."""
        found = self.uvarint() - 1 if compact else int(self.take(_INT32)[0])
        if found < (-1 if nullable else 0) or found * smallest > self.end - self.position:
            raise self.fail(f"an array of {found} elements")
        return max(found, 0)

    def text(self, compact: bool) -> str:
        length = self.uvarint() - 1 if compact else int(self.take(_INT16)[0])
        start = self.position
        if length < 0:
            raise self.fail("a null string")
        self.skip(length)
        try:
            return self.data[start : self.position].decode()
        except UnicodeDecodeError:
            raise self.fail("a string that is not UTF-8") from None

    def skip_tags(self) -> None:
        for _ in range(self.count_tags()):
            self.uvarint()
            self.skip(self.uvarint())

    def count_tags(self) -> int:
        found = self.uvarint()
        if found * 2 > self.end - self.position:
            raise self.fail(f"{found} tagged fields")
        return found

    def finish(self) -> None:
        if self.position != self.end:
            raise self.fail(f"{self.end - self.position} bytes left over")


class Patched:
    """A request body encoded once for a set of partitions; columns in it are patched when their values change."""

    def __init__(self, body: bytearray, positions: list[int]) -> None:
        self.body = body
        self._positions = positions
        self._columns: dict[int, list[int]] = {}

    def patch(self, offset: int, values: list[int], layout: Struct = _INT32) -> None:
        """Writes one number per partition, `offset` bytes into its entry. An unchanged column costs one list comparison."""
        before = self._columns.get(offset)
        if before == values:
            return
        for index, (position, value) in enumerate(zip(self._positions, values, strict=True)):
            if before is None or before[index] != value:
                layout.pack_into(self.body, position + offset, value)
        self._columns[offset] = list(values)

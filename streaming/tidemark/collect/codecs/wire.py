"""Raw Kafka frames over kafka-python's connections, and the primitives that the codecs share.

kafka-python's connection sends a `RawRequest` like one of its own messages and returns a
`RawResponse` with the undecoded body. TLS, SASL, ApiVersions, correlation and time-outs stay with
the library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from kafka.errors import KafkaProtocolError

from tidemark.core.errors import WireError

D = TypeVar("D")
E = TypeVar("E", bound=tuple[int, ...])

# (topic, its partitions), in the order of the request.
GroupedPartitions = tuple[tuple[str, tuple[int, ...]], ...]
# (topic, an entry for each partition), in the order of the response. An entry begins with these:
TopicEntries = list[tuple[str, list[E]]]
PARTITION: Final = 0
ERROR_CODE: Final = 1
# In place of an error code: there is no entry. Kafka has no such code.
UNANSWERED: Final = -2

FETCH: Final = 1
LIST_OFFSETS: Final = 2
API_VERSIONS: Final = 18

INT16: Final = Struct(">h")
INT32: Final = Struct(">i")
INT64: Final = Struct(">q")
_HEADER = Struct(">ihhi")


class RawResponse(NamedTuple):
    """The body of a response (after its header) and when it was read (monotonic)."""

    body: bytes
    answered_at: float
    # kafka-python's connection reads it to hold further requests back.
    throttle_time_ms: int


class _ResponseHeader(NamedTuple):
    correlation_id: int


class RawRequest:
    """One request with an encoded body. `flexible`: its header has tagged fields (KIP-482).

    In kafka-python's protocol it is the message, the header of the request in flight, and the class
    of the response.
    """

    def __init__(self, api_key: int, version: int, body: bytes, flexible: bool) -> None:
        self.API_KEY = self.api_key = api_key
        self.API_VERSION = self.api_version = version
        self.body = body
        self.flexible = flexible
        self.correlation_id = 0
        self._client_id = b""

    @property
    def header(self) -> RawRequest:
        return self

    def expect_response(self) -> bool:
        return True

    def with_header(self, correlation_id: int = 0, client_id: str = "tidemark") -> None:
        self.correlation_id = correlation_id
        self._client_id = client_id.encode()

    def encode(self, framed: bool = True, header: bool = True) -> bytes:
        """The frame: size, request header v1 (v2 when flexible), body."""
        assert framed and header
        name = INT16.pack(len(self._client_id)) + self._client_id + b"\x00" * self.flexible
        size = _HEADER.size - 4 + len(name) + len(self.body)
        head = _HEADER.pack(size, self.api_key, self.api_version, self.correlation_id)
        return b"".join((head, name, self.body))

    def get_response_class(self) -> RawRequest:
        return self

    def parse_header(self, buffer: Any) -> _ResponseHeader:
        head = buffer.read(4)
        # ResponseHeader v1 ends with tagged fields, and brokers send none; that of ApiVersions has
        # version 0. Only this error closes the connection.
        if len(head) < 4 or (
            self.flexible and self.api_key != API_VERSIONS and buffer.read(1) != b"\x00"
        ):
            raise KafkaProtocolError("not a response header")
        return _ResponseHeader(*INT32.unpack(head))

    def decode(self, buffer: Any) -> RawResponse:
        body = buffer.read()
        # ThrottleTimeMs is the first field since Fetch v1 and ListOffsets v2, but of ApiVersions.
        throttled = self.api_version >= 2 and len(body) >= 4 and self.api_key != API_VERSIONS
        return RawResponse(body, time.monotonic(), INT32.unpack_from(body)[0] if throttled else 0)


class RequestTemplate(Generic[D]):
    """A request body, encoded once for a set of partitions and patched where values change.

    An entry is the number of a partition and `defaults`. In a flexible version, every structure
    ends with an empty set of tagged fields.
    """

    def __init__(
        self,
        head: bytes,
        topics: GroupedPartitions,
        defaults: bytes,
        tail: bytes,
        flexible: bool,
        decode: Callable[[bytes], D],
    ) -> None:
        body = bytearray(head + encode_length(len(topics), flexible))
        tags = b"\x00" * flexible
        self._positions: list[int] = []
        for topic, partitions in topics:
            body += encode_string(topic, flexible) + encode_length(len(partitions), flexible)
            for partition in partitions:
                self._positions.append(len(body))
                body += INT32.pack(partition) + defaults + tags
            body += tags
        self.body = body + tail + tags
        self._columns: dict[int, list[int]] = {}
        self._decode = decode
        self._last_response: bytes | None = None
        self._last_decoded: Any = None

    def decode(self, response: bytes) -> D:
        """The decoded response; one equal to the last one is not decoded again."""
        if response != self._last_response:
            self._last_decoded = self._decode(response)
            self._last_response = response
        return cast(D, self._last_decoded)

    def patch(self, offset: int, values: list[int], layout: Struct = INT32) -> None:
        """Writes a number per partition, `offset` bytes into its entry, where it has changed."""
        before = self._columns.get(offset)
        if before == values:
            return
        for index, (position, value) in enumerate(zip(self._positions, values, strict=True)):
            if before is None or before[index] != value:
                layout.pack_into(self.body, position + offset, value)
        self._columns[offset] = list(values)


def elements(array: Iterable[E] | None, name: str) -> Iterable[E]:
    """An array that kafka-python decoded. Raises WireError for null, which Kafka never sends."""
    if array is None:
        raise WireError(f"{name} answer: a null array")
    return array


def encode_uvarint(value: int) -> bytes:
    """Unsigned varint (KIP-482)."""
    if value < 0x80:
        return bytes([value])
    return bytes([(value & 0x7F) | 0x80]) + encode_uvarint(value >> 7)


def encode_length(count: int, compact: bool) -> bytes:
    """The length of an array."""
    return encode_uvarint(count + 1) if compact else INT32.pack(count)


def encode_string(text: str, compact: bool) -> bytes:
    data = text.encode()
    return (encode_uvarint(len(data) + 1) if compact else INT16.pack(len(data))) + data


class ResponseReader:
    """Reads one response from start to end. Raises WireError past the end, or for a bad length."""

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

    def read(self, layout: Struct) -> tuple[Any, ...]:
        start = self.position
        self.skip(layout.size)
        return layout.unpack_from(self.data, start)

    def skip(self, count: int) -> None:
        if count < 0 or self.position + count > self.end:
            raise self.fail("truncated")
        self.position += count

    def take(self, count: int) -> bytes:
        self.skip(count)
        return bytes(self.data[self.position - count : self.position])

    def uvarint(self) -> int:
        result = 0
        for shift in range(0, 35, 7):
            self.skip(1)
            byte = self.data[self.position - 1]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
        raise self.fail("a length above 2^32")

    def count(self, smallest: int, compact: bool, nullable: bool = False) -> int:
        """The length of an array of elements of at least `smallest` bytes; 0 for a null array."""
        found = self.uvarint() - 1 if compact else int(self.read(INT32)[0])
        if found < (-1 if nullable else 0) or found * smallest > self.end - self.position:
            raise self.fail(f"an array of {found} elements")
        return max(found, 0)

    def text(self, compact: bool) -> str:
        length = self.uvarint() - 1 if compact else int(self.read(INT16)[0])
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

    def topics(
        self, smallest: int, compact: bool, entries: Callable[[int], list[E]]
    ) -> TopicEntries[E]:
        """The topics, up to the end. `entries` reads entries of `smallest` bytes or more."""
        found: TopicEntries[E] = []
        for _ in range(self.count(3, compact)):
            topic = self.text(compact)
            found.append((topic, entries(self.count(smallest, compact))))
            if compact:
                self.skip_tags()
        if compact:
            self.skip_tags()
        if self.position != self.end:
            raise self.fail(f"{self.end - self.position} bytes left over")
        return found

"""Compressed records, unpacked within a bound.

kafka-python has gzip; snappy, lz4 and zstd come with python-snappy, lz4 and zstandard, or with
pyarrow, which the `stream` extra installs. Mirrors the Compression classes of Kafka.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from io import BytesIO
from struct import Struct
from typing import Any, Final

from kafka import codec as kafka_codec

# The records of a compressed batch are unpacked up to this size.
MAX_UNPACKED_BYTES: Final = 64 * 1024 * 1024
# Of one gzip stream.
MAX_MEMBERS: Final = 64
NAMES: Final = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
PACKAGES: Final = {"snappy": "python-snappy", "lz4": "lz4", "zstd": "zstandard"}
_CHUNK: Final = 1024 * 1024
# The framing of snappy-java: this, two versions, and blocks after their sizes.
_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEAD: Final = 16
_SIZE: Final = Struct(">i")

# Of a block of snappy and its unpacked size.
BlockUnpacker = Callable[[bytes, int], bytes]


class UnreadableRecordsError(Exception):
    """The records of a batch cannot be read; the text says why."""


class OversizedRecordsError(UnreadableRecordsError):
    """They unpack beyond the bound."""


class DamagedRecordsError(UnreadableRecordsError):
    """They cannot be read by anyone."""


def unpack(data: bytes, codec: int, bound: int | None = None) -> bytes:
    """The bytes that Kafka's compression `codec` packed: up to `bound`, or MAX_UNPACKED_BYTES.

    Raises UnreadableRecordsError.
    """
    name = name_of(codec)
    try:
        return _unpack(data, name, MAX_UNPACKED_BYTES if bound is None else bound)
    except UnreadableRecordsError:
        raise
    except Exception as error:
        # Each library raises errors of its own over damaged bytes.
        raise DamagedRecordsError(
            f"its records are damaged (they are not {name}: {type(error).__name__})"
        ) from None


def name_of(codec: int) -> str:
    """Raises UnreadableRecordsError for a codec that Kafka does not have."""
    if codec not in NAMES:
        raise UnreadableRecordsError(f"compression {codec} is unknown")
    return NAMES[codec]


def check_installed(name: str) -> None:
    """Raises UnreadableRecordsError where kafka-python itself cannot unpack it."""
    if not getattr(kafka_codec, f"has_{name}")():
        raise UnreadableRecordsError(_missing(name))


def check_gzip_size(data: bytes) -> None:
    """Raises UnreadableRecordsError where gzip unpacks beyond the bound."""
    _gunzip(data, MAX_UNPACKED_BYTES)


def _unpack(data: bytes, name: str, bound: int) -> bytes:
    if name == "gzip":
        return _gunzip(data, bound)
    pyarrow = _pyarrow()
    if name == "snappy":
        return _unpack_snappy(_block_unpacker(pyarrow), data, bound)
    with _reader(pyarrow, data, name) as stream:
        found: bytes = stream.read(bound + 1)
    _check_size(len(found), bound)
    return found


def _reader(pyarrow: Any, data: bytes, name: str) -> Any:
    """A file of what lz4 or zstd packed, as a context."""
    if pyarrow is not None:
        return pyarrow.CompressedInputStream(pyarrow.BufferReader(data), name)
    if name == "lz4":
        return _library(name, "lz4.frame").open(BytesIO(data))
    return _library(name, "zstandard").ZstdDecompressor().stream_reader(data)


def _library(name: str, module: str) -> Any:
    """Raises UnreadableRecordsError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UnreadableRecordsError(_missing(name)) from None


def _missing(name: str) -> str:
    return f"no Python library for {name} is installed: pip install {PACKAGES[name]}"


def _gunzip(data: bytes, bound: int) -> bytes:
    """All members, as Java reads them. Writers make one; each of many copies what follows it."""
    found, rest, members = bytearray(), data, 0
    while rest:
        members += 1
        if members > MAX_MEMBERS:
            raise DamagedRecordsError(f"its records are in more than {MAX_MEMBERS} gzip members")
        unpacker = zlib.decompressobj(wbits=31)
        while rest and not unpacker.eof:
            found += unpacker.decompress(rest, _CHUNK)
            rest = unpacker.unconsumed_tail
            _check_size(len(found), bound)
        found += unpacker.flush()
        if not unpacker.eof:
            raise DamagedRecordsError("its records are damaged (gzip ends early)")
        rest = unpacker.unused_data
    return bytes(found)


def _block_unpacker(pyarrow: Any) -> BlockUnpacker:
    if pyarrow is None:
        snappy = _library("snappy", "snappy")
        return lambda block, _size: bytes(snappy.decompress(block))
    codec = pyarrow.Codec("snappy")
    return lambda block, size: bytes(codec.decompress(block, decompressed_size=size))


def _unpack_snappy(unpack_block: BlockUnpacker, data: bytes, bound: int) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(unpack_block, data, bound)
    found, position = bytearray(), _XERIAL_HEAD
    while position < len(data):
        (size,) = _SIZE.unpack_from(data, position)
        block = data[position + _SIZE.size : position + _SIZE.size + size]
        if size <= 0 or len(block) < size:
            raise DamagedRecordsError("its records are damaged (snappy ends early)")
        found += _snappy_block(unpack_block, block, bound, len(found))
        position += _SIZE.size + size
    return bytes(found)


def _snappy_block(unpack_block: BlockUnpacker, block: bytes, bound: int, before: int = 0) -> bytes:
    """A block, after `before` bytes. It begins with its unpacked size, in groups of seven bits."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            break
    _check_size(before + size, bound)
    return unpack_block(block, size)


def _check_size(size: int, bound: int) -> None:
    if size > bound:
        raise OversizedRecordsError(f"its records unpack to over {bound} bytes")


def _pyarrow() -> Any:
    """None where it is not installed."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        return None

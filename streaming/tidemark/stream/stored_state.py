"""A group's state as the checkpoint stores it: compressed.

Spark hands the whole state to Python and back in each batch, and pickles it byte by byte: that
costs more than to compress it.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from tidemark.core.errors import StateError

# The first byte.
COMPRESSED: Final = 2
# Then the size of the state, and a zstd frame.
_SIZE_BYTES: Final = 8
_START: Final = 1 + _SIZE_BYTES
# A value of Spark's has at most 2 GiB.
MAX_STATE_BYTES: Final = 2**31


def to_stored(state: bytes) -> bytes:
    """The state of a group as the checkpoint stores it."""
    frame = _codec().compress(state, asbytes=True)
    return b"".join((bytes((COMPRESSED,)), len(state).to_bytes(_SIZE_BYTES, "big"), frame))


def from_stored(stored: bytes | bytearray) -> bytes:
    """The inverse of `to_stored`. Raises StateError."""
    if not stored or stored[0] != COMPRESSED:
        raise StateError(f"its form is {bytes(stored[:1]).hex() or 'empty'}, not {COMPRESSED:02x}")
    size = int.from_bytes(stored[1:_START], "big")
    if len(stored) <= _START or size > MAX_STATE_BYTES:
        raise StateError(f"a compressed state of {len(stored)} bytes")
    try:
        state: bytes = _codec().decompress(stored[_START:], size, asbytes=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StateError(error) from None
    if len(state) != size:
        raise StateError(f"a compressed state of {size} bytes has {len(state)}")
    return state


def _codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=1)

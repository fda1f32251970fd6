"""Ranges of settled offsets as text that fits a commit's metadata. Pure.

A bit for each record from the committed offset on, compressed (zlib) and in base 85, which JSON
does not escape. Records that settle in any order take about one bit each, long runs almost none.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Sequence
from typing import Final

# Records beyond this many are left out.
MAX_RECORDS: Final = 1_000_000

# Offsets [from, to).
Range = tuple[int, int]


def pack(ranges: Sequence[Range], first: int) -> str:
    """`ranges` are in order, apart from each other, and from offset `first` on."""
    text, offset = [], first
    for start, end in ranges:
        if end - first > MAX_RECORDS:
            break
        text += ["0" * (start - offset), "1" * (end - start)]
        offset = end
    # The leading 1 keeps the zeros after it.
    bits = int("1" + "".join(text), 2)
    data = bits.to_bytes((bits.bit_length() + 7) // 8)
    return base64.b85encode(zlib.compress(data, 9)).decode("ascii")


def unpack(text: str, first: int) -> list[Range]:
    """Raises ValueError: not what `pack` writes."""
    unzip = zlib.decompressobj()
    try:
        data = unzip.decompress(base64.b85decode(text), MAX_RECORDS // 8 + 1)
    except zlib.error:
        raise ValueError("not compressed") from None
    if not unzip.eof:
        raise ValueError("cut off, or of more than MAX_RECORDS")
    bits = f"{int.from_bytes(data):b}"[1:]
    return [(first + run.start(), first + run.end()) for run in re.finditer("1+", bits)]

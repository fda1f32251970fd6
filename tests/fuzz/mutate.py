"""Hostile variants of valid inputs. Pure: the same random numbers give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import getitem
from random import Random
from typing import Any, Final

MAX_BYTES: Final = 256 * 1024
# Sizes and limits of formats, text that parsers treat apart, nesting and numbers of any size.
TOKENS: Final = (
    *(b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff" * 8, b"\t"),
    *(b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\xdd\x7f\xff\xff\xff"),
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"NaN", b"1e999", b"-1", b"1" * 40),
    *(b"[" * 3_000, b'{"a":' * 3_000, b"\xf0\x9f\x92\xa5", b"\xed\xa0\x80", b"\r\n", b"\r\n\r\n"),
    *(b"*a", b"&a ", b"!!python/object:os.system ", b"%00", b"%", b"../", b"=", b"\\u0000", b"\\"),
)
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 2**70),
    *(1e308, -1e308, 0.5, "", "x", "x" * 5_000, "\u202e\x00", "\ud800", "1", "../.."),
    *([], {}, [[]], [{}], {"": None}),
)


def mutant(seeds: Sequence[bytes], random: Random) -> bytes:
    """One hostile input: of a valid one, of two, or of nothing."""
    data = random.choice(seeds)
    if random.random() < 0.5 and data[:1] in b"{[" and data:
        return _json_mutant(data, random)[:MAX_BYTES]
    for _ in range(random.randint(1, 5)):
        data = _changed(data, random, seeds)
    return data[:MAX_BYTES]


def _changed(data: bytes, random: Random, seeds: Sequence[bytes]) -> bytes:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + random.choice((1, 1, 2, 4, 8, 64)))
    match random.randrange(7):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + random.randbytes(end - at) + data[end:]
        case 2:
            return data[:at] + random.choice(TOKENS) + data[at:]
        case 3:
            return data[:at] + random.choice(TOKENS) + data[end:]
        case 4:
            return data[:at] + data[end:]
        case 5:
            return data[:at] + data[at:end] * random.choice((2, 50, 1_000)) + data[end:]
    other = random.choice(seeds)
    return data[:at] + other[random.randrange(len(other) + 1) :]


def _json_mutant(data: bytes, random: Random) -> bytes:
    document = json.loads(data)
    for _ in range(random.randint(1, 4)):
        path = random.choice(list(places(document)))
        document = replaced(document, path, _other(reduce(getitem, path, document), random))
    try:
        return json.dumps(document, ensure_ascii=random.random() < 0.5).encode(
            "utf-8", "surrogatepass"
        )
    except RecursionError:
        return b"["


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values of a JSON document, its own first."""
    yield path
    if isinstance(value, dict | list):
        for key, nested in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(nested, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """The document with another value at a path."""
    if not path:
        return other
    changed = value.copy()
    changed[path[0]] = replaced(value[path[0]], path[1:], other)
    return changed


def _other(value: Any, random: Random) -> Any:
    match random.randrange(5):
        case 0 if isinstance(value, list) and value:
            return value * random.choice((2, 70))
        case 1 if isinstance(value, dict) and value:
            kept = random.choice(list(value))
            return {key: inner for key, inner in value.items() if key != kept}
        case 2 if isinstance(value, dict):
            return {**value, random.choice(("x", "", "type", "v", "topic")): random.choice(VALUES)}
    return random.choice(VALUES)

"""The files of a log directory: what Kafka wrote is read, anything else is a FormatError."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collect.log_directories.make import TOPIC_ID, offsets
from tidemark.collect.sources.log_directories.formats import (
    MAX_OFFSET,
    FormatError,
    MetaProperties,
    parse_epochs,
    parse_folder,
    parse_meta_properties,
    parse_offsets,
    parse_topic_id,
)

PARSERS: list[Callable[[bytes], object]] = [
    parse_offsets,
    parse_epochs,
    parse_topic_id,
    parse_meta_properties,
]
TOPICS = st.text("Az9._-", min_size=1, max_size=249)
PLACES = st.tuples(TOPICS, st.integers(0, 2**31 - 1))
OFFSETS = st.dictionaries(PLACES, st.integers(0, MAX_OFFSET), max_size=8)


def test_files_that_kafka_wrote() -> None:
    assert parse_offsets(b"") == {}
    assert parse_offsets(b"0\n0\n") == {}
    assert parse_offsets(b"0\n2\nt 0 19\nt.a_b-c 1 0\n") == {("t", 0): 19, ("t.a_b-c", 1): 0}
    assert parse_epochs(b"0\n2\n0 0\n1 18\n") == [(0, 0), (1, 18)]
    assert parse_topic_id(f"version: 0\ntopic_id: {TOPIC_ID}".encode()) == TOPIC_ID
    meta = b"#\n#Sun Nov 22\nnode.id=1\ndirectory.id=x\nversion=1\ncluster.id=abc\n"
    assert parse_meta_properties(meta) == MetaProperties(1, "abc")
    assert parse_meta_properties(b"version=0\nbroker.id=7\n") == MetaProperties(7, None)


@pytest.mark.parametrize(
    ("parse", "data", "reason"),
    [
        (parse_offsets, b"0\n1\nt 0 4", "its last line is cut"),
        (parse_offsets, b"0\n", "it ends before its number of entries"),
        (parse_offsets, b"1\n0\n", "unknown version '1'; this Tidemark reads version 0"),
        (parse_offsets, b"0\n2\nt 0 4\n", "it announces 2 entries and has 1"),
        (parse_offsets, b"0\n1\nt 0 4\nt 1 4\n", "it announces 1 entries and has 2"),
        (parse_offsets, b"0\n1\nt 0\n", "line 3 is not `topic partition offset`"),
        (parse_offsets, b"0\n1\nt/u 0 4\n", "line 3 is not `topic partition offset`"),
        (parse_offsets, b"0\n1\nt 0 -4\n", "line 3: '-4' is not a number"),
        (
            parse_offsets,
            b"0\n1\nt 0 9223372036854775808\n",
            "is not a number from 0 to 9223372036854775807",
        ),
        (parse_offsets, b"0\n1\nt 2147483648 4\n", "is not a number from 0 to 2147483647"),
        (parse_offsets, b"0\n2\nt 0 4\nt 0 5\n", "line 4 repeats t-0"),
        (parse_offsets, "0\n1\nt 0 ٣\n".encode(), "is not a number"),
        (parse_offsets, b"0\n300000\n", "it has 300000 entries, more than 200000"),
        (parse_offsets, b"\xff\xfe\n", "it is not text"),
        (parse_offsets, b"\x00" * 40 + b"\n", "unknown version"),
        (parse_epochs, b"0\n2\n1 18\n0 0\n", "does not follow"),
        (parse_epochs, b"0\n1\n0 0 0\n", "line 3 is not `epoch offset`"),
        (parse_topic_id, b"version: 1\ntopic_id: x", "unknown version '1'"),
        (parse_topic_id, b"version: 0\n", "it has no topic_id"),
        (parse_meta_properties, b"node.id=1\n", "unknown version 'none'"),
        (parse_meta_properties, b"version=1\nnode.id=one\n", "'one' is not a number"),
    ],
)
def test_damage_is_named(parse: Callable[[bytes], object], data: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason.replace("(", r"\(")):
        parse(data)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("t-0", ("t", 0)),
        ("a-b.c-12", ("a-b.c", 12)),
        ("t-0.0a1b-delete", None),
        ("t-0.0a1b-future", None),
        ("t-0.0a1b-stray", None),
        ("t-01", None),
        ("t-9999999999", None),
        (".lock", None),
        ("meta.properties", None),
    ],
)
def test_only_folders_of_live_partitions_have_a_name(
    name: str, place: tuple[str, int] | None
) -> None:
    assert parse_folder(name) == place


@given(OFFSETS)
def test_offsets_are_read_as_they_were_written(entries: dict[tuple[str, int], int]) -> None:
    assert parse_offsets(offsets(entries).encode()) == entries


@given(OFFSETS, st.data())
def test_a_cut_file_is_never_read_as_a_whole_one(
    entries: dict[tuple[str, int], int], data: st.DataObject
) -> None:
    whole = offsets(entries).encode()
    end = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(FormatError):
        parse_offsets(whole[:end])


@pytest.mark.parametrize("parse", PARSERS)
@given(
    st.binary(max_size=300)
    | st.text('0123456789 \n-:={}"tversionopic_d', max_size=200).map(str.encode)
)
def test_nonsense_raises_only_format_errors(parse: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(FormatError):
        parse(data)

"""Every line of a file is read or reported, and reading continues after it."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from tidemark.core.codec import MAX_RECORD_BYTES
from tidemark.core.errors import ConfigError
from tidemark.observations import recorded_lines as recording
from tidemark.observations.recorded_lines import check_sources, read_lines


def test_files_are_read_in_order_with_their_own_line_numbers(tmp_path: Path) -> None:
    one, other = tmp_path / "1.jsonl", tmp_path / "2.jsonl.gz"
    one.write_bytes(b"a\n\n  b  \r\nc")
    other.write_bytes(gzip.compress(b"d\ne\n"))
    found = [line[:3] for line in read_lines([str(one), str(other)])]
    assert found == [(0, 1, b"a"), (0, 3, b"b"), (0, 4, b"c"), (1, 1, b"d"), (1, 2, b"e")]


def test_a_byte_order_mark_is_not_part_of_the_first_line(tmp_path: Path) -> None:
    one, other = tmp_path / "1.jsonl", tmp_path / "2.jsonl.gz"
    one.write_bytes(b"\xef\xbb\xbfa\r\n\xef\xbb\xbfb\r\n")
    other.write_bytes(gzip.compress(b"\xef\xbb\xbf"))
    assert [line.data for line in read_lines([str(one), str(other)])] == [b"a", b"\xef\xbb\xbfb"]


def test_standard_input_plain_or_gzipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"a\nb\n", gzip.compress(b"a\nb\n"), b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
        assert [line.data for line in read_lines(["-"])] == ([b"a", b"b"] if data else [])


def test_truncated_and_damaged_gzip_is_reported_and_the_next_file_is_read(
    tmp_path: Path,
) -> None:
    text = b"".join(b"%d-%d\n" % (number, number * 7919) for number in range(5000))
    packed = gzip.compress(text)
    cut, damaged, whole = tmp_path / "cut.gz", tmp_path / "damaged.gz", tmp_path / "whole"
    cut.write_bytes(packed[: len(packed) // 2])
    damaged.write_bytes(packed[:-6] + b"\0\0" + packed[-4:])
    whole.write_bytes(b"last\n")
    lines = list(read_lines([str(cut), str(damaged), str(whole)]))
    faults = [(line.source, line.fault) for line in lines if line.fault]
    assert [source for source, _ in faults] == [0, 1]
    assert faults[0][1] == "the gzip stream ends early"
    assert "it cannot be read on" in str(faults[1][1])
    assert sum(line.source == 0 for line in lines) > 100
    assert lines[-1].data == b"last"


def test_a_line_above_the_limit_is_reported_with_its_length(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"before\n" + b"x" * (3 * MAX_RECORD_BYTES) + b"\nafter\n")
    before, long, after = read_lines([str(path)])
    assert (before.data, after.data, after.number) == (b"before", b"after", 3)
    assert long.fault == (
        f"the line has {3 * MAX_RECORD_BYTES} bytes, "
        f"more than the {MAX_RECORD_BYTES} a reader takes"
    )
    assert len(long.data) == MAX_RECORD_BYTES + 1


def test_a_line_at_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "limit"
    path.write_bytes(b"x" * MAX_RECORD_BYTES + b"\nafter\n")
    assert [(len(line.data), line.fault) for line in read_lines([str(path)])] == [
        (MAX_RECORD_BYTES, None),
        (5, None),
    ]


def test_progress_is_reported_for_files_but_not_for_pipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "PROGRESS_SECONDS", 0.0)
    path = tmp_path / "many"
    path.write_bytes(b"line\n" * 1000)
    reports: list[str] = []
    assert len(list(read_lines([str(path)], reports.append))) == 1000
    assert reports[0].startswith(f"{path}: line 64, ")
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"line\n" * 1000)))
    )
    reader, writer = os.pipe()
    os.write(writer, b"line\n" * 1000)
    os.close(writer)
    reports.clear()
    for pipe in ("-", f"/dev/fd/{reader}"):
        assert [line.fault for line in read_lines([pipe], reports.append)] == [None] * 1000
    assert reports == []
    os.close(reader)


def test_sources_are_checked_before_anything_is_read(tmp_path: Path) -> None:
    for source in (str(tmp_path / "none"), str(tmp_path)):
        with pytest.raises(ConfigError, match=f"cannot read {source}"):
            check_sources(["-", source])
    with pytest.raises(ConfigError, match="a single time"):
        check_sources(["-", "-"])

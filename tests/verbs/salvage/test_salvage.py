"""Records of lost ranges from saved logs, as the command line gives them."""

from __future__ import annotations

import base64
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verbs.audit.logs import sealed
from tests.verbs.run import tidemark
from tests.verbs.salvage.logs import CODECS, Sent, batch, log, marker, save, sent, transactional
from tidemark.kafka import decompression
from tidemark.verbs.salvage import run

PLACE = "orders-0"


def salvage(*arguments: str, code: int = 0) -> tuple[list[dict[str, Any]], str]:
    found = tidemark("salvage", *arguments, "--format", "jsonl", code=code)
    return [json.loads(line) for line in found.out.splitlines()], found.err


def salvage_range(
    tmp_path: Path, batches: list[bytes], start: int, end: int, *options: str, code: int = 0
) -> tuple[list[dict[str, Any]], str]:
    """Records of a saved partition with these batches."""
    folder = save(tmp_path / PLACE, batches)
    return salvage(str(folder), "--from", f"{start}", "--to", f"{end}", *options, code=code)


def as_sent(record: dict[str, Any]) -> Sent:
    def data(text: str | None, encoding: str | None) -> bytes | None:
        if text is None:
            return None
        return text.encode() if encoding == "text" else base64.b64decode(text)

    return Sent(
        data(record["key"], record["key_encoding"]),
        data(record["value"], record["value_encoding"]),
        record["timestamp_ms"],
        tuple((name, data(text, how)) for name, text, how in record["headers"]),
    )


@pytest.mark.parametrize("values", ["base64", "text"])
@pytest.mark.parametrize("codec", CODECS)
def test_every_record_of_the_range_is_back_byte_for_byte(
    tmp_path: Path, codec: str, values: str
) -> None:
    found, err = salvage_range(tmp_path, log(100, codec=codec), 13, 72, "--values", values)
    assert [(r["topic"], r["partition"], r["offset"]) for r in found] == [
        ("orders", 0, offset) for offset in range(13, 72)
    ]
    assert [as_sent(r) for r in found] == [sent(offset) for offset in range(13, 72)]
    assert {r["leader_epoch"] for r in found} == {4}
    assert err == "orders-0 [13, 72): 59 records found, all.\n"


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_a_codec_without_a_library_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    folder = save(tmp_path / PLACE, [*log(5), *log(5, start=5, codec=codec)])
    monkeypatch.setattr(decompression, "_pyarrow", lambda: None)
    for module in ("snappy", "lz4.frame", "zstandard"):
        monkeypatch.setitem(sys.modules, module, None)
    found, err = salvage(str(folder), "--from", "0", "--to", "10", code=3)
    assert [r["offset"] for r in found] == [0, 1, 2, 3, 4]
    assert "5 records found, 5 offsets without" in err
    assert f"no Python library for {codec} is installed: pip install" in err


def test_a_table_of_the_first_records_and_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MAX_ROWS", 2)
    save(tmp_path / "data" / PLACE, log(20))
    out = tidemark("salvage", str(tmp_path / "data"), "--from", "3", "--to", "9").out
    heading, first, _, more, _, end = out.splitlines()
    assert heading.split() == [
        *("OFFSET", "EPOCH", "TIME", "PRODUCER", "SEQUENCE"),
        *("TRANSACTION", "HEADERS", "KEY", "VALUE"),
    ]
    assert first.split()[:3] == ["3", "4", "2023-11-14T22:13:20.003Z"]
    # What a terminal would interpret is escaped.
    assert '"key 3"' in first
    assert r"value 3 \xff\x00 value 3" in first
    assert more == "and 4 more records; --format jsonl has all."
    assert end == "orders-0 [3, 9): 6 records found, all."


def test_csv_has_a_heading_and_a_file_is_never_overwritten(tmp_path: Path) -> None:
    folder, output = save(tmp_path / PLACE, log(10)), tmp_path / "lost.csv"
    arguments = (
        *("salvage", str(folder), "--from", "3", "--to", "5"),
        *("--format", "csv", "--output", str(output)),
    )
    tidemark(*arguments)
    heading, first, second = csv.reader(io.StringIO(output.read_text()))
    record = dict(zip(heading, first, strict=True))
    assert record["offset"] == "3"
    assert base64.b64decode(record["value"]) == sent(3).value
    assert json.loads(dict(zip(heading, second, strict=True))["headers"]) == [
        ["trace", "NA==", "base64"]
    ]
    assert f"cannot write {output}: File exists; give the name of a new file." in (
        tidemark(*arguments, code=2).err
    )


def test_absent_keys_and_values_are_not_empty_ones(tmp_path: Path) -> None:
    odd = [Sent(None, None, 5), Sent(b"", b"", 6, (("h", None), ("h", b"2")))]
    found, _ = salvage_range(tmp_path, [batch(0, odd)], 0, 2, "--values", "text")
    assert [as_sent(r) for r in found] == odd


def test_batches_of_the_new_leader_are_left_out_and_said(tmp_path: Path) -> None:
    found, err = salvage_range(
        tmp_path, [*log(40), *log(40, start=40, epoch=6)], 30, 60, "--epoch", "4", code=3
    )
    assert [r["offset"] for r in found] == list(range(30, 40))
    assert err.splitlines() == [
        "orders-0 [30, 60) of epochs up to 4: 10 records found, 20 offsets without.",
        "  [40, 60) the new leader wrote other records there in epoch 6",
    ]


def test_a_transaction_is_decided_by_the_marker_that_follows(tmp_path: Path) -> None:
    folder = save(
        tmp_path / PLACE,
        [
            *(
                transactional(0, 7),
                transactional(2, 8),
                marker(4, 8, commit=False),
                transactional(5, 7),
            ),
            *(transactional(7, 9), batch(9, [sent(9)], producer=10), marker(10, 7, commit=True)),
            *(transactional(11, 7), marker(13, 8, commit=True)),
        ],
    )
    found, err = salvage(str(folder), "--from", "0", "--to", "10")
    assert [(r["offset"], r["producer_id"], r["transaction"]) for r in found] == [
        *((0, 7, "committed"), (1, 7, "committed"), (2, 8, "aborted"), (3, 8, "aborted")),
        *((5, 7, "committed"), (6, 7, "committed"), (7, 9, "open"), (8, 9, "open")),
        (9, 10, None),
    ]
    assert [r["sequence"] for r in found[:2]] == [0, 1]
    assert err.splitlines() == [
        "orders-0 [0, 10): 9 records found, all; 1 transaction marker.",
        "  2 records aborted by its producer: no consumer with read_committed saw it",
        "  2 records in a transaction that the saved log does not end",
    ]


def test_a_cut_segment_gives_what_is_whole(tmp_path: Path) -> None:
    batches = log(20)
    folder = save(tmp_path / PLACE, batches)
    path = folder / f"{0:020}.log"
    whole = len(b"".join(batches[:3]))
    path.write_bytes(b"".join(batches)[: whole + 40])
    found, err = salvage(str(folder), "--from", "0", "--to", "20", code=3)
    assert [r["offset"] for r in found] == list(range(15))
    only = "the file ends within a batch, which was written only in part"
    assert err.splitlines()[1:] == [
        "  [15, 20) no saved log has a batch there",
        f"  {path}, byte {whole} to the end: {only}",
    ]


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (16, b"\x07", "magic 7 is unknown"),
        (8, b"\x7f", "a batch of"),
        (8, b"\x00\x00\x01\x00", "its CRC is not the one written in it"),
        (0, b"\x00\x00\x00\x7f", "or its size is wrong"),
        (90, b"\x55\x55", "its CRC is not the one written in it"),
        (23, b"\x00\x10", "or its size is wrong"),
    ],
)
def test_reading_goes_on_after_damage(tmp_path: Path, at: int, value: bytes, reason: str) -> None:
    batches = log(50)
    bad = bytearray(batches[4])
    bad[at : at + len(value)] = value
    folder = save(tmp_path / PLACE, [*batches[:4], bytes(bad), *batches[5:]], per_segment=100)
    found, err = salvage(str(folder), "--from", "0", "--to", "50", code=3)
    assert [r["offset"] for r in found] == [*range(20), *range(25, 50)]
    assert [as_sent(r) for r in found] == [sent(r["offset"]) for r in found]
    assert reason in err


def test_an_offset_beyond_the_segment_is_damage(tmp_path: Path) -> None:
    batches = log(40)
    wrong = sealed(25, 4, batches[3])
    found, err = salvage_range(tmp_path, [*batches[:3], wrong, *batches[4:]], 0, 40, code=3)
    assert [as_sent(r) for r in found] == [sent(o) for o in (*range(15), *range(20, 40))]
    assert "offset 29 belongs to a later segment" in err


def test_zero_bytes_after_the_end_are_named(tmp_path: Path) -> None:
    folder = save(tmp_path / PLACE, log(10))
    path = folder / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + bytes(5_000))
    found, err = salvage(str(folder), "--from", "0", "--to", "10")
    assert len(found) == 10
    assert "to the end: only zero bytes follow" in err


def test_a_second_copy_fills_what_the_first_one_lacks(tmp_path: Path) -> None:
    batches = log(30)
    bad = bytearray(batches[2])
    bad[100] ^= 0xFF
    first = save(tmp_path / "1" / PLACE, [*batches[:2], bytes(bad), batches[3]])
    second = save(tmp_path / "2" / PLACE, batches[2:])
    found, err = salvage(str(first), str(second), "--from", "0", "--to", "30")
    assert [as_sent(r) for r in found] == [sent(offset) for offset in range(30)]
    assert err == "orders-0 [0, 30): 30 records found, all.\n"


def test_copies_that_differ_are_named_and_the_newer_epoch_is_taken(tmp_path: Path) -> None:
    first = save(tmp_path / "1" / PLACE, log(10, epoch=3))
    other = [batch(0, [sent(90 + n) for n in range(10)], epoch=4)]
    second = save(tmp_path / "2" / PLACE, other)
    found, err = salvage(str(first), str(second), "--from", "0", "--to", "10")
    assert as_sent(found[0]) == sent(90)
    assert "has a batch of epoch 4" in err
    assert "the first is taken" in err


def test_a_compacted_batch_lacks_records(tmp_path: Path) -> None:
    whole = batch(0, [sent(0), sent(1), sent(2)])
    # The cleaner keeps the last offset of the batch.
    cleaned = bytearray(batch(0, [sent(0)]))
    cleaned[23:27] = whole[23:27]
    found, err = salvage_range(tmp_path, [sealed(0, 4, bytes(cleaned))], 0, 3, code=3)
    assert [r["offset"] for r in found] == [0]
    assert "[1, 3) its batch no longer has the record (compacted)" in err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--from", "0"), "a larger --to"),
        (("--from", "5", "--to", "5"), "a larger --to"),
        ((), "either --losses"),
        (("--losses", "--from", "1", "--to", "2"), "either --losses"),
        (("--alerts", "x", "--epoch", "3"), "losses have their epochs"),
        (("--from", "0", "--to", "1", "--execute"), "need --produce-to"),
        (("--from", "0", "--to", "1", "--partition", "x"), "x names no partition; write x-0"),
        (("--from", "0", "--to", "1", "--partition", "logs:0"), "no log of logs-0 is saved"),
        (("--from", "0", "--to", "1", "--produce-to", "orders"), "add --to-original"),
    ],
)
def test_wrong_usage_says_what_to_write(
    tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    save(tmp_path / PLACE, log(10))
    assert text in tidemark("salvage", str(tmp_path), *arguments, code=2).err


def test_a_folder_without_logs_or_with_other_offsets_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    arguments = ("--from", "500", "--to", "501")
    assert (
        "no log is saved in" in tidemark("salvage", str(tmp_path / "empty"), *arguments, code=2).err
    )
    folder = save(tmp_path / "any", log(10))
    assert (
        "has no name such as orders-0" in tidemark("salvage", str(folder), *arguments, code=2).err
    )
    named = ("--partition", "orders:0")
    assert (
        "no record of the range was found"
        in tidemark("salvage", str(folder), *arguments, *named, code=1).err
    )

"""Damaged segments: salvage ends with records that were written, and says what it lacks."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.verbs.salvage.logs import CODECS, batch, log, marker, save, sent
from tidemark.verbs.salvage.records import LostRecords, SavedRecord
from tidemark.verbs.salvage.run import Salvaged, summary
from tidemark.verbs.salvage.saved_log import LostRange, read_log

COUNT = 40


def read(*folders: Path) -> tuple[list[SavedRecord], Salvaged]:
    lost = LostRange(("orders", 0), 0, COUNT, None)
    logs = [read_log(folder, lost) for folder in folders]
    reading = LostRecords(lost, logs)
    found = list(reading)
    return found, Salvaged(lost, logs, reading.tally)


def whole_log(codec: str) -> list[bytes]:
    in_transaction = batch(
        30, [sent(o) for o in range(30, 34)], producer=7, transactional=True, codec=codec
    )
    rest = [batch(35, [sent(o) for o in range(35, COUNT)], codec=codec)]
    return [*log(30, codec=codec), in_transaction, marker(34, 7, commit=True), *rest]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_segments_give_only_records_that_were_written(
    tmp_path: Path, data: st.DataObject
) -> None:
    folder = tmp_path / "orders-0"
    shutil.rmtree(folder, ignore_errors=True)
    save(folder, whole_log(data.draw(st.sampled_from(sorted(CODECS)))))
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(content)))
        content[at:] = data.draw(st.sampled_from([b"", bytes(300), bytes(content[at + 9 :])]))
    path.write_bytes(content)
    if data.draw(st.booleans()):
        # The name of a segment is an offset too.
        path.rename(folder / f"{data.draw(st.integers(0, COUNT)):020}.log")
    found, salvaged = read(folder)
    offsets = [record.offset for record in found]
    assert offsets == sorted(set(offsets))
    # The CRC covers everything but the offset and the epoch of a batch.
    values = {sent(o).value: sent(o) for o in range(COUNT)}
    for record in found:
        origin = values[record.value]
        assert (record.key, record.timestamp_ms, record.headers) == (
            origin.key,
            origin.timestamp_ms,
            origin.headers,
        )
    assert salvaged.missing == COUNT - len(found) - salvaged.tally.markers
    assert salvaged.missing == salvaged.tally.absent_offsets
    assert summary(salvaged)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=400), min_size=1, max_size=3))
def test_any_bytes_end_with_a_result(tmp_path: Path, contents: list[bytes]) -> None:
    folder = tmp_path / "orders-0"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, content in enumerate(contents):
        (folder / f"{10 * number:020}.log").write_bytes(content)
    found, salvaged = read(folder)
    assert salvaged.missing == COUNT - len(found) - salvaged.tally.markers


def test_a_whole_log_has_everything(tmp_path: Path) -> None:
    found, salvaged = read(save(tmp_path / "orders-0", whole_log("zstd")))
    assert [record.offset for record in found] == [*range(34), *range(35, COUNT)]
    assert (salvaged.missing, salvaged.tally.markers) == (0, 1)
    assert salvaged.tally.by_transaction == {None: 35, "committed": 4}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_one_wrong_byte_costs_at_most_its_batch(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "orders-0"
    shutil.rmtree(folder, ignore_errors=True)
    batches = log(COUNT)
    (path,) = save(folder, batches, per_segment=100).iterdir()
    content = bytearray(path.read_bytes())
    # No CRC covers the leader epoch, at byte 12.
    at = data.draw(st.integers(12, 15) | st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    found, _ = read(folder)
    end, damaged = 0, 0
    for number, each in enumerate(batches):
        end += len(each)
        if at >= end:
            damaged = number + 1
    kept = set(range(COUNT)) - set(range(5 * damaged, 5 * damaged + 5))
    assert kept <= {record.offset for record in found}

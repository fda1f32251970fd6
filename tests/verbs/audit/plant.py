"""Differences planted into a broker's segments: brokers do not verify what they have stored.

A running broker serves the change at once.
"""

from __future__ import annotations

from pathlib import Path

from tests.verbs.audit.logs import flipped
from tidemark.record_log.batches import Batch, split_batches


def change_batch(segment: Path, number: int) -> Batch:
    """Changes a byte of a batch's records, and its CRC to match; the batch as it was."""
    batch, start = _find(segment, number)
    # The last byte is the number of headers, 0; the one before belongs to the value.
    changed = flipped(batch, -2, 0x20)
    crc = changed.actual_crc().to_bytes(4, "big")
    _write(segment, start, changed.data[:17] + crc + changed.data[21:])
    return batch


def change_byte(segment: Path, number: int, at: int) -> Batch:
    """Changes one byte of a batch and nothing else; the batch as it was."""
    batch, start = _find(segment, number)
    _write(segment, start, flipped(batch, at, 1).data)
    return batch


def _find(segment: Path, number: int) -> tuple[Batch, int]:
    batches, _ = split_batches(segment.read_bytes(), 0)
    return batches[number], sum(len(before.data) for before in batches[:number])


def _write(segment: Path, start: int, data: bytes) -> None:
    with segment.open("r+b") as file:
        file.seek(start)
        file.write(data)

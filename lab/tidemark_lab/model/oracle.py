"""What is true of a state. Tests compare the conclusions of Tidemark with it."""

from __future__ import annotations

from itertools import combinations
from zlib import crc32

from tidemark_lab.model.log import Log, first_difference
from tidemark_lab.model.state import ModelState, true_leader

# (offset, leader epoch, CRC of the content)
BatchContent = tuple[int, int, int]


def lost_offsets(state: ModelState) -> tuple[int, ...]:
    """Offsets of committed records that the elected leader lacks.

    None while there is no leader: a replica that holds the records may still be elected.
    """
    leader = true_leader(state)
    if leader is None:
        return ()
    log = state.logs[leader]
    return tuple(
        offset
        for offset, record in enumerate(state.committed)
        if offset >= len(log) or log[offset] != record
    )


def diverging_replicas(state: ModelState) -> tuple[tuple[int, int, int], ...]:
    """(one, other, first offset) of each pair that differs below both its high watermarks."""
    found = []
    for one, other in combinations(range(len(state.logs)), 2):
        common = min(state.replicas[one].high_watermark, state.replicas[other].high_watermark)
        offset = first_difference(state.logs[one][:common], state.logs[other][:common])
        if offset is not None:
            found.append((one, other, offset))
    return tuple(found)


def batch_contents(log: Log) -> tuple[BatchContent, ...]:
    """A log as an audit reads its batches. As in Kafka, the CRC does not cover the epoch."""
    return tuple(
        (offset, record.epoch, crc32(record.id.to_bytes(8))) for offset, record in enumerate(log)
    )

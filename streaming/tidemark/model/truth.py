"""What is true of a state whatever anybody saw: the oracle that conclusions are measured by."""

from __future__ import annotations

from itertools import combinations
from zlib import crc32

from tidemark.model.log import Log, parting
from tidemark.model.state import ClusterState, true_leader

# (offset, leader epoch, CRC of the content)
Content = tuple[int, int, int]


def lost_offsets(state: ClusterState) -> tuple[int, ...]:
    """Offsets whose committed record the elected leader does not hold; none while nobody leads, for it may still come back."""
    leader = true_leader(state)
    if leader is None:
        return ()
    log = state.logs[leader]
    return tuple(
        offset
        for offset, record in enumerate(state.committed)
        if offset >= len(log) or log[offset] != record
    )


def diverging_replicas(state: ClusterState) -> tuple[tuple[int, int, int], ...]:
    """(one, other, first offset) of every two replicas that hold different records at an offset below both their high watermarks."""
    found = []
    for one, other in combinations(range(len(state.logs)), 2):
        common = min(state.replicas[one].high_watermark, state.replicas[other].high_watermark)
        at = parting(state.logs[one][:common], state.logs[other][:common])
        if at is not None:
            found.append((one, other, at))
    return tuple(found)


def content_of(log: Log) -> tuple[Content, ...]:
    """A log as an audit of its batches reads it. The CRC covers the content and not the epoch, as in Kafka's batches."""
    return tuple(
        (offset, record.epoch, crc32(record.id.to_bytes(8))) for offset, record in enumerate(log)
    )

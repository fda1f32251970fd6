"""What is in a broker's log directory: log end offsets and the checkpoint of high watermarks.

Shares no code with the product.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.local.cluster import Place

# Offset and size of a batch (or of a message, before 0.11); then partition leader epoch, magic.
_HEAD: Final = struct.Struct(">qiib")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23


class ReplicaOnDisk(NamedTuple):
    log_end_offset: int
    # By the checkpoint, which a stopping broker writes and a running one every second.
    high_watermark: int | None


def read_replicas(folder: Path, places: Iterable[Place]) -> dict[Place, ReplicaOnDisk]:
    """The replicas that the folder holds."""
    watermarks = _checkpoint(folder / "replication-offset-checkpoint")
    return {
        place: ReplicaOnDisk(_log_end_offset(log), watermarks.get(place))
        for place in places
        if (log := folder / f"{place[0]}-{place[1]}").is_dir()
    }


def _checkpoint(file: Path) -> dict[Place, int]:
    """Version, number of lines, then `topic partition offset` (OffsetCheckpointFile)."""
    lines = file.read_text(encoding="utf-8").splitlines()[2:] if file.exists() else []
    rows = (line.split() for line in lines)
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def _log_end_offset(log: Path) -> int:
    segment = max(log.glob("*.log"))
    data, at, end = segment.read_bytes(), 0, int(segment.stem)
    while at + _HEAD.size <= len(data):
        offset, size, _, magic = _HEAD.unpack_from(data, at)
        if size <= 0 or at + 12 + size > len(data):
            break
        if magic >= 2:
            offset += _LAST_OFFSET_DELTA.unpack_from(data, at + _LAST_OFFSET_DELTA_AT)[0]
        end, at = offset + 1, at + 12 + size
    return end

"""A follower's fetch (AbstractFetcherThread, ReplicaFetcherThread)."""

from __future__ import annotations

from tests.histories.logs import EpochOffset, ReplicaLog
from tests.histories.replica import Replica


def fetch(follower: Replica, leader: Replica, limit: int) -> bool:
    """One round, of at most `limit` records. False when the leader refuses or nothing changes."""
    log, source, mode = follower.log, leader.log, follower.mode
    if log is None or source is None or not leader.serves() or leader.topic != follower.topic:
        return False
    if mode.fenced and leader.leader_epoch != follower.leader_epoch:
        return False
    if mode.truncation == "fetch" or (mode.truncation == "epoch" and follower.truncating):
        latest = log.latest_epoch
        if latest is not None and log.end >= source.start:
            answer = source.end_offset_for(latest)
            if answer is None:
                return False
            if answer[0] < latest or answer[1] < log.end:
                _truncate(follower, log, answer)
                return True
        follower.truncating = False
    if log.end > source.end:
        if mode.truncation == "high_watermark" and not follower.controlled.unclean:
            # ReplicaFetcherThread.handleOffsetOutOfRange halts the broker.
            follower.broker.crash()
            return False
        follower.truncate(log, source.end)
        return True
    if log.end < source.start:
        old_end, cut = log.end, log.truncate_fully(source.start)
        follower.truth.cut(follower.number, follower.topic, old_end, log.end, cut, "reset")
        return True
    offset, high_watermark = log.end, source.high_watermark
    ids = source.ids[offset : offset + limit]
    leader.note_fetch(follower.number, offset)
    if ids:
        log.copy_from(ids)
    log.high_watermark = max(log.start, min(high_watermark, log.end))
    if source.start > log.start:
        log.delete_before(min(source.start, log.end))
    return True


def _truncate(follower: Replica, log: ReplicaLog, answer: EpochOffset) -> None:
    """AbstractFetcherThread.getOffsetTruncationState."""
    epoch, end = answer
    own = log.end_offset_for(epoch)
    if own is None:
        offset = min(end, log.end)
    elif own[0] != epoch:
        offset = min(own[1], log.end)
    else:
        offset = min(own[1], end, log.end)
    follower.truncate(log, offset)

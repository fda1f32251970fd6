"""What a broker answers to the collector's requests about the partition; codes of errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.histories.broker import Broker
from tests.histories.logs import ReplicaLog
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.core.events import MAX_LINEAGE

UNKNOWN_TOPIC: Final = 3
NOT_LEADER: Final = 6
OUT_OF_RANGE: Final = 1
FENCED: Final = 74
UNKNOWN_EPOCH: Final = 75
NOT_AVAILABLE: Final = 78
UNANSWERED: Final = -2
NAMES: Final = {
    OUT_OF_RANGE: "OFFSET_OUT_OF_RANGE",
    UNKNOWN_TOPIC: "UNKNOWN_TOPIC_OR_PARTITION",
    NOT_LEADER: "NOT_LEADER_OR_FOLLOWER",
    FENCED: "FENCED_LEADER_EPOCH",
    UNKNOWN_EPOCH: "UNKNOWN_LEADER_EPOCH",
    NOT_AVAILABLE: "OFFSET_NOT_AVAILABLE",
}


class Latest(NamedTuple):
    """ListOffsets with the replica id of a debug consumer."""

    error: int
    end: int
    epoch: int


class Fetched(NamedTuple):
    """The zero-byte Fetch; epoch -1: no epoch was asked for."""

    error: int
    high_watermark: int
    start: int
    epoch: int
    end: int


@dataclass(slots=True)
class Answers:
    """What one broker answered in a pass. `outcome` is null while it answers."""

    led: bool
    outcome: str | None = None
    committed: tuple[int, int] | None = None
    latest: Latest | None = None
    fetched: Fetched | None = None
    epochless: bool = False
    claim: int | None = None
    lineage: Lineage | None = None
    requested_ms: float = 0.0
    latest_ms: float = 0.0
    asked_ms: float = 0.0
    answered_ms: float = 0.0
    walk: list[int] = field(default_factory=list)


def failure(broker: Broker) -> str | None:
    """Why a broker gives no answer; null: it answers."""
    if broker.unheard or broker.paused:
        return "timed_out"
    return None if broker.up else "refused"


def list_committed(broker: Broker, fence: int) -> tuple[int, int]:
    """(error, offset) of ListOffsets at a leader, fenced; fence -1: without."""
    log = broker.log
    if log is None:
        return UNKNOWN_TOPIC, -1
    if fence >= 0 and broker.leader_epoch != fence:
        return (FENCED if broker.leader_epoch > fence else UNKNOWN_EPOCH), -1
    if not broker.leads:
        return NOT_LEADER, -1
    if broker.mode.fenced and broker.epoch_start > log.high_watermark:
        return NOT_AVAILABLE, -1
    return 0, log.high_watermark


def list_latest(broker: Broker) -> Latest:
    log = broker.log
    if log is None:
        return Latest(UNKNOWN_TOPIC, -1, -1)
    return Latest(0, log.end, broker.leader_epoch if broker.mode.fenced else -1)


def list_epochs(log: ReplicaLog) -> Lineage:
    """What a walk by OffsetForLeaderEpoch finds: the newest epochs that have records."""
    starts = [start for _, start in log.cache[1:]]
    ends = zip((epoch for epoch, _ in log.cache), [*starts, log.end], strict=True)
    held = [(entry, start) for entry, (_, start) in zip(ends, log.cache, strict=True)]
    entries = [entry for entry, start in held if start < entry[1]]
    shown = entries[-MAX_LINEAGE:]
    return Lineage(shown, 0 if len(shown) == len(entries) else shown[0][0])


def fetch_epoch(broker: Broker, epoch: int, fence: int, offset: int | None) -> Fetched:
    """`epoch` -1: a Fetch at `offset`, without the end of an epoch."""
    log = broker.log
    if log is None:
        return Fetched(UNKNOWN_TOPIC, -1, -1, -1, -1)
    if fence >= 0 and broker.leader_epoch != fence:
        code = FENCED if broker.leader_epoch > fence else UNKNOWN_EPOCH
        return Fetched(code, -1, -1, -1, -1)
    if epoch < 0:
        if offset is None or not log.start <= offset <= log.end:
            return Fetched(OUT_OF_RANGE, -1, -1, -1, -1)
        return Fetched(0, log.high_watermark, log.start, -1, -1)
    answer = log.end_offset_for(epoch)
    if answer is None:
        return Fetched(OUT_OF_RANGE, -1, -1, -1, -1)
    return Fetched(0, log.high_watermark, log.start, *answer)

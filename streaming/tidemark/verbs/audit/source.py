"""What an audit asks of the replicas: the brokers answer, or the copies of their folders."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from tidemark.record_log.segments import Place


class Position(NamedTuple):
    """What one replica can show: [local_log_start, high_watermark).

    Records in [log_start, local_log_start) are in tiered storage only. `exact`: the high watermark
    is the replica's own, and not the end of its log for want of it. `damage` ends a log early.
    """

    log_start: int
    local_log_start: int
    high_watermark: int
    log_end: int
    leader_epoch: int | None = None
    exact: bool = True
    damage: str | None = None


class Partition(NamedTuple):
    """A partition to compare. `compacted` is None where the cleanup policy is unknown."""

    place: Place
    replicas: tuple[int, ...]
    topic_id: str | None = None
    compacted: bool | None = None

    @property
    def name(self) -> str:
        return f"{self.place[0]}-{self.place[1]}"


class Source(Protocol):
    """Answers by broker. A text in place of an answer says why a replica has none.

    `retry_seconds`: the pause before a replica without an answer is asked again.
    """

    retry_seconds: float

    def positions(self, place: Place, brokers: Collection[int]) -> dict[int, Position | str]: ...

    def read(
        self, place: Place, brokers: Collection[int], offset: int, size: int
    ) -> dict[int, bytes | str]:
        """About `size` bytes of batches from the one that contains `offset`, or follows it, on."""

    def close(self) -> None: ...

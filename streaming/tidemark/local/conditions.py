"""What an observer outside could know, and since when: the judge of how fast Tidemark was. Pure, fed with samples.

It is deliberately written apart from Tidemark's detectors, straight from what the brokers answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

LAG_SECONDS: Final = 2.0
STALLED_SECONDS: Final = 5.0
# Leader positions kept to tell the age of an offset: ten minutes at five a second.
_POSITIONS: Final = 3_000


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look at one broker. What it did not answer is None; `leader` -1 is its word that nobody leads."""

    at: float
    broker: int
    error: str | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    in_sync_replicas: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    log_end_offset: int | None = None
    # Only from a broker that answered as the leader of `leader_epoch`.
    committed: int | None = None
    # Asked epoch -> where this broker's log leaves the epochs up to it.
    epoch_ends: Mapping[int, int] = field(default_factory=dict)


class Edge(NamedTuple):
    """A condition became true. `broker` is the replica it is about, None for the partition."""

    at: float
    condition: str
    broker: int | None


@dataclass
class Conditions:
    """Follows one partition. `edges` grows by one entry whenever a condition becomes true."""

    edges: list[Edge] = field(default_factory=list)
    committed: tuple[int, int] | None = None
    _active: set[tuple[str, int | None]] = field(default_factory=set)
    _latest: dict[int, Sample] = field(default_factory=dict)
    _ends: dict[int, int] = field(default_factory=dict)
    # broker -> (an epoch that its log has records of, where that epoch ended at most)
    _tails: dict[int, tuple[int, int]] = field(default_factory=dict)
    _positions: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_POSITIONS))
    _leader: int | None = None
    _epoch: int = -1
    _in_sync: tuple[int, ...] = ()
    _in_sync_before: tuple[int, ...] = ()
    _replicas: tuple[int, ...] = ()
    _stands: tuple[float, int] | None = None

    def first(self, condition: str, since: float, broker: int | None = None) -> float | None:
        """When `condition` first became true at or after `since`."""
        found = (
            e.at
            for e in self.edges
            if e.condition == condition and e.at >= since and (broker is None or e.broker == broker)
        )
        return next(found, None)

    def feed(self, sample: Sample) -> None:
        """Takes the next sample in time."""
        if (
            sample.error is None
            and sample.leader_epoch is not None
            and sample.leader_epoch >= self._epoch
        ):
            self._metadata(sample)
        self._truncation(sample)
        self._loss(sample)
        self._latest[sample.broker] = sample
        if sample.broker in self._replicas:
            self._set(
                "FOLLOWER_UNREACHABLE",
                sample.broker,
                sample.at,
                sample.error is not None and sample.broker != self._leader,
            )
        if sample.committed is not None and sample.broker == self._leader:
            self._stall(sample)
        self._lag(sample.at)

    def _set(self, condition: str, broker: int | None, at: float, holds: bool) -> None:
        key = (condition, broker)
        if holds and key not in self._active:
            self.edges.append(Edge(at, condition, broker))
        (self._active.add if holds else self._active.discard)(key)

    def _metadata(self, sample: Sample) -> None:
        assert sample.leader_epoch is not None
        in_sync, replicas = sample.in_sync_replicas or (), sample.replicas or ()
        if (
            sample.leader != self._leader
            and sample.leader is not None
            and sample.leader >= 0
            and self._leader is not None
        ):
            outside = sample.leader not in self._in_sync_before
            if outside:
                self.edges.append(Edge(sample.at, "UNCLEAN_ELECTION", sample.leader))
            self._positions.clear()
            self._stands = None
        if in_sync:
            self._in_sync_before = in_sync
        self._leader, self._epoch, self._in_sync, self._replicas = (
            sample.leader,
            sample.leader_epoch,
            in_sync,
            replicas,
        )
        missing = bool(replicas) and set(in_sync) < set(replicas)
        self._set("ISR_CHANGE", None, sample.at, missing)
        self._set("UNDER_REPLICATED", None, sample.at, missing)
        self._set("OFFLINE", None, sample.at, sample.leader == -1)

    def epochs_to_ask(self, broker: int, leader_epoch: int) -> set[int]:
        """Closed epochs whose end in this broker's log would tell a truncation or a loss (at most two)."""
        wanted = {self._tails[broker][0]} if broker in self._tails else set()
        if self.committed is not None:
            wanted.add(self.committed[0])
        return {epoch for epoch in wanted if epoch < leader_epoch}

    def _truncation(self, sample: Sample) -> None:
        """A log that became shorter, as a whole or in one epoch: the latter shows even when it has grown again since."""
        end = sample.log_end_offset
        if end is None or sample.leader_epoch is None:
            return
        epoch, tail = self._tails.get(sample.broker, (sample.leader_epoch, end))
        now = sample.epoch_ends.get(epoch, end)
        if end < self._ends.get(sample.broker, 0) or (epoch in sample.epoch_ends and now < tail):
            self.edges.append(Edge(sample.at, "LOG_TRUNCATION", sample.broker))
        # While all its records are of that epoch it may still have to truncate there: go on asking for it.
        self._tails[sample.broker] = (sample.leader_epoch, end) if end > now else (epoch, now)
        self._ends[sample.broker] = end

    def _loss(self, sample: Sample) -> None:
        """A leader of a later epoch whose log leaves the committed epoch before the committed offset."""
        if sample.committed is None or sample.leader_epoch is None:
            return
        if self.committed is not None and sample.leader_epoch > self.committed[0]:
            epoch, offset = self.committed
            if sample.epoch_ends.get(epoch, sample.committed) < offset:
                self.edges.append(Edge(sample.at, "COMMITTED_DATA_LOSS", None))
        if self.committed is None or (sample.leader_epoch, sample.committed) > self.committed:
            self.committed = (sample.leader_epoch, sample.committed)

    def _stall(self, sample: Sample) -> None:
        assert sample.committed is not None
        waiting = sample.log_end_offset is not None and sample.log_end_offset > sample.committed
        if self._stands is None or self._stands[1] != sample.committed or not waiting:
            self._stands = (sample.at, sample.committed)
        self._set(
            "HW_STALLED",
            None,
            sample.at,
            waiting and sample.at - self._stands[0] >= STALLED_SECONDS,
        )

    def _lag(self, now: float) -> None:
        """A follower behind an offset that the leader has held for two seconds; a silent one stands where the mark stands."""
        leader = self._latest.get(self._leader if self._leader is not None else -1)
        if leader is None or leader.log_end_offset is None:
            return
        if not self._positions or self._positions[-1][1] != leader.log_end_offset:
            self._positions.append((leader.at, leader.log_end_offset))
        for broker in self._replicas:
            follower = self._latest.get(broker)
            if broker == self._leader or follower is None:
                continue
            silent = follower.error is not None
            position = (
                leader.committed
                if silent and broker in self._in_sync
                else self._ends.get(broker)
                if silent
                else follower.log_end_offset
            )
            behind_since = next(
                (
                    at
                    for at, offset in self._positions
                    if position is not None and offset > position
                ),
                None,
            )
            self._set(
                "FOLLOWER_LAG",
                broker,
                now,
                behind_since is not None and now - behind_since >= LAG_SECONDS,
            )

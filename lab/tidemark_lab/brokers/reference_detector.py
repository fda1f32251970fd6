"""Which conditions hold on a partition, and since when, as an outside observer sees it.

The reference for Tidemark's latency: written apart from Tidemark's detectors, straight from broker
responses. Pure; fed with samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

LAG_SECONDS: Final = 2.0
STALLED_SECONDS: Final = 5.0
# Positions of the leader, kept for the age of an offset: ten minutes at five a second.
_MAX_POSITIONS: Final = 3_000


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One poll of one broker. None: unknown; `leader` -1: the broker reports no leader."""

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
    # Requested epoch -> end offset of the epochs up to it in this broker's log.
    epoch_ends: Mapping[int, int] = field(default_factory=dict)


class Onset(NamedTuple):
    """A condition became true. `broker`: the replica it is about, None for the partition."""

    at: float
    condition: str
    broker: int | None


class EpochEnd(NamedTuple):
    """An epoch that a log holds records of, and its end offset in that log or an upper bound."""

    epoch: int
    end_offset: int


class LeaderPosition(NamedTuple):
    """An offset of the leader and when it was first seen."""

    at: float
    offset: int


@dataclass
class ReferenceDetector:
    """Follows one partition. `onsets` gets an entry whenever a condition becomes true."""

    onsets: list[Onset] = field(default_factory=list)
    # The newest committed offset, as the end of its leader epoch.
    committed: EpochEnd | None = None
    _active: set[tuple[str, int | None]] = field(default_factory=set)
    _latest: dict[int, Sample] = field(default_factory=dict)
    _log_ends: dict[int, int] = field(default_factory=dict)
    _watched_epochs: dict[int, EpochEnd] = field(default_factory=dict)
    _positions: deque[LeaderPosition] = field(default_factory=lambda: deque(maxlen=_MAX_POSITIONS))
    _leader: int | None = None
    _epoch: int = -1
    _in_sync: tuple[int, ...] = ()
    _last_in_sync: tuple[int, ...] = ()
    _replicas: tuple[int, ...] = ()
    # The committed offset that does not move, and since when.
    _unmoved: LeaderPosition | None = None

    def first(self, condition: str, since: float, broker: int | None = None) -> float | None:
        """When `condition` first became true at or after `since`."""
        times = (
            onset.at
            for onset in self.onsets
            if onset.condition == condition
            and onset.at >= since
            and (broker is None or onset.broker == broker)
        )
        return next(times, None)

    def feed(self, sample: Sample) -> None:
        """Takes the next sample in time."""
        epoch = sample.leader_epoch
        if sample.error is None and epoch is not None and epoch >= self._epoch:
            self._update_metadata(sample, epoch)
        self._detect_truncation(sample)
        self._detect_loss(sample)
        self._latest[sample.broker] = sample
        if sample.broker in self._replicas:
            is_down = sample.error is not None and sample.broker != self._leader
            self._set("BROKER_DOWN", sample.broker, sample.at, is_down)
        if sample.committed is not None and sample.broker == self._leader:
            self._detect_stall(sample, sample.committed)
        self._detect_lag(sample.at)

    def _set(self, condition: str, broker: int | None, at: float, holds: bool) -> None:
        if not holds:
            self._active.discard((condition, broker))
        elif (condition, broker) not in self._active:
            self._active.add((condition, broker))
            self.onsets.append(Onset(at, condition, broker))

    def _update_metadata(self, sample: Sample, epoch: int) -> None:
        in_sync, replicas = sample.in_sync_replicas or (), sample.replicas or ()
        leader = sample.leader
        if None not in (leader, self._leader) and leader not in (-1, self._leader):
            if leader not in self._last_in_sync:
                self.onsets.append(Onset(sample.at, "UNCLEAN_ELECTION", leader))
            self._positions.clear()
            self._unmoved = None
        self._leader, self._epoch, self._in_sync, self._replicas = leader, epoch, in_sync, replicas
        self._last_in_sync = in_sync or self._last_in_sync
        missing = bool(replicas) and set(in_sync) < set(replicas)
        self._set("ISR_CHANGE", None, sample.at, missing)
        self._set("UNDER_REPLICATED", None, sample.at, missing)
        self._set("LEADER_ALONE", None, sample.at, missing and in_sync == (leader,))
        self._set("OFFLINE", None, sample.at, leader == -1)

    def epochs_to_request(self, broker: int, leader_epoch: int) -> set[int]:
        """Closed epochs, two at most: their ends in this broker's log show a truncation or loss."""
        known = (self._watched_epochs.get(broker), self.committed)
        return {end.epoch for end in known if end is not None and end.epoch < leader_epoch}

    def _detect_truncation(self, sample: Sample) -> None:
        """A shorter log, or a shorter epoch: that shows even when the log has grown since."""
        end = sample.log_end_offset
        if end is None or sample.leader_epoch is None:
            return
        before = self._watched_epochs.get(sample.broker, EpochEnd(sample.leader_epoch, end))
        now = sample.epoch_ends.get(before.epoch, end)
        shorter_epoch = before.epoch in sample.epoch_ends and now < before.end_offset
        if end < self._log_ends.get(sample.broker, 0) or shorter_epoch:
            self.onsets.append(Onset(sample.at, "LOG_TRUNCATION", sample.broker))
        # A log that ends in that epoch may still be truncated there: keep requesting it.
        self._watched_epochs[sample.broker] = (
            EpochEnd(sample.leader_epoch, end) if end > now else EpochEnd(before.epoch, now)
        )
        self._log_ends[sample.broker] = end

    def _detect_loss(self, sample: Sample) -> None:
        """In a later leader's log the committed epoch ends before the committed offset."""
        if sample.committed is None or sample.leader_epoch is None:
            return
        before, now = self.committed, EpochEnd(sample.leader_epoch, sample.committed)
        if before is None or now > before:
            self.committed = now
        if before is not None and now.epoch > before.epoch:
            held = sample.epoch_ends.get(before.epoch, now.end_offset)
            if held < before.end_offset:
                self.onsets.append(Onset(sample.at, "COMMITTED_DATA_LOSS", None))

    def _detect_stall(self, sample: Sample, committed: int) -> None:
        waiting = sample.log_end_offset is not None and sample.log_end_offset > committed
        if self._unmoved is None or self._unmoved.offset != committed or not waiting:
            self._unmoved = LeaderPosition(sample.at, committed)
        stalled = waiting and sample.at - self._unmoved.at >= STALLED_SECONDS
        self._set("HW_STALLED", None, sample.at, stalled)

    def _detect_lag(self, now: float) -> None:
        """A follower behind an offset that the leader has held for two seconds."""
        leader = self._latest.get(self._leader) if self._leader is not None else None
        if leader is None or leader.log_end_offset is None:
            return
        if not self._positions or self._positions[-1].offset != leader.log_end_offset:
            self._positions.append(LeaderPosition(leader.at, leader.log_end_offset))
        for broker in self._replicas:
            follower = self._latest.get(broker)
            if broker == self._leader or follower is None:
                continue
            position = self._follower_position(follower, leader)
            behind_since = next(
                (p.at for p in self._positions if position is not None and p.offset > position),
                None,
            )
            lags = behind_since is not None and now - behind_since >= LAG_SECONDS
            self._set("FOLLOWER_LAG", broker, now, lags)

    def _follower_position(self, follower: Sample, leader: Sample) -> int | None:
        """A silent follower: the high watermark while in sync, else its last known log end."""
        if follower.error is None:
            return follower.log_end_offset
        if follower.broker in self._in_sync:
            return leader.committed
        return self._log_ends.get(follower.broker)

"""What the partitions of a cluster or topic, and the replicas of a broker, add up to.

Counts are kept as views come and go. Maxima cannot be taken back, so whoever has something above 0 stands in `moving`,
and the largest is looked up when it is asked for. Only what is known counts: a lag nobody measured is in no maximum.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.assess.safe_to_stop import EFFECTS, Effect
from tidemark_exporters.export.facts import Follower, Host, Motion, Shape


class _Figures(NamedTuple):
    """Largest values and the sum over what moves; 0 where nothing does."""

    lag_records: int = 0
    lag_ms: float = 0.0
    uncommitted: int = 0
    uncommitted_ms: float = 0.0


class Tally:
    """Sums over the partitions of a cluster or a topic. `moving`: key -> motion, where any of it is above 0."""

    __slots__ = (
        "_figures",
        "at_min",
        "blind",
        "known_lag_ms",
        "known_lag_records",
        "known_uncommitted",
        "known_uncommitted_ms",
        "leader_alone",
        "leaderless",
        "moving",
        "off_preferred",
        "partitions",
        "under_min",
        "under_replicated",
        "unplaced",
    )

    def __init__(self) -> None:
        self.partitions = self.leaderless = self.under_replicated = self.under_min = self.at_min = 0
        self.leader_alone = self.blind = self.off_preferred = self.unplaced = 0
        self.known_lag_records = self.known_lag_ms = self.known_uncommitted = (
            self.known_uncommitted_ms
        ) = 0
        self.moving: dict[str, Motion] = {}
        # Worked out when somebody asks, once for all that ask until something moves.
        self._figures: _Figures | None = None

    def count(self, shape: Shape, sign: int) -> None:
        """Adds a partition (1) or takes it away (-1)."""
        self.partitions += sign
        self.leaderless += sign * shape.leaderless
        self.under_replicated += sign * shape.under_replicated
        self.under_min += sign * shape.under_min
        self.at_min += sign * shape.at_min
        self.leader_alone += sign * shape.leader_alone
        self.blind += sign * shape.blind
        self.off_preferred += sign * shape.off_preferred
        self.unplaced += sign * shape.unplaced
        self.known_lag_records += sign * shape.knows_lag_records
        self.known_lag_ms += sign * shape.knows_lag_ms
        self.known_uncommitted += sign * shape.knows_uncommitted
        self.known_uncommitted_ms += sign * shape.knows_uncommitted_ms

    def move(self, key: str, motion: Motion) -> None:
        """Takes over a partition's newest motion."""
        self._figures = None
        if motion.lag_records or motion.lag_ms or motion.uncommitted or motion.uncommitted_ms:
            self.moving[key] = motion
        else:
            self.moving.pop(key, None)

    @property
    def used(self) -> bool:
        return self.partitions > 0

    @property
    def lag_records(self) -> int | None:
        return self._moved().lag_records if self.known_lag_records else None

    @property
    def lag_ms(self) -> float | None:
        return self._moved().lag_ms if self.known_lag_ms else None

    @property
    def uncommitted(self) -> int | None:
        return self._moved().uncommitted if self.known_uncommitted else None

    @property
    def uncommitted_ms(self) -> float | None:
        return self._moved().uncommitted_ms if self.known_uncommitted_ms else None

    def _moved(self) -> _Figures:
        if self._figures is None:
            lag_records, waiting, lag_ms, waiting_ms = 0, 0, 0.0, 0.0
            for records, milliseconds, uncommitted, uncommitted_ms, _ in self.moving.values():
                if records is not None and records > lag_records:
                    lag_records = records
                if milliseconds is not None and milliseconds > lag_ms:
                    lag_ms = milliseconds
                if uncommitted is not None:
                    waiting += uncommitted
                if uncommitted_ms is not None and uncommitted_ms > waiting_ms:
                    waiting_ms = uncommitted_ms
            self._figures = _Figures(lag_records, lag_ms, waiting, waiting_ms)
        return self._figures


class BrokerTally:
    """Sums over the replicas that a broker hosts. `moving`: key -> the follower there, where either lag is above 0."""

    __slots__ = (
        "effects",
        "known_lag_ms",
        "known_lag_records",
        "leaders",
        "moving",
        "out_of_sync",
        "preferred",
        "replicas",
    )

    def __init__(self) -> None:
        self.replicas = self.leaders = self.preferred = self.out_of_sync = 0
        self.known_lag_records = self.known_lag_ms = 0
        self.effects: dict[Effect, int] = dict.fromkeys(EFFECTS, 0)
        self.moving: dict[str, Follower] = {}

    def count(self, host: Host, sign: int) -> None:
        """Adds a replica (1) or takes it away (-1)."""
        self.replicas += sign
        self.out_of_sync += sign * host.out_of_sync
        if host.effect is not None:
            self.effects[host.effect] += sign

    def follow(self, key: str, follower: Follower, sign: int) -> None:
        """Adds the lag of a follower that the broker hosts (1) or takes it away (-1)."""
        _, records, milliseconds = follower
        self.known_lag_records += sign * (records is not None)
        self.known_lag_ms += sign * (milliseconds is not None)
        if sign > 0:
            self.move(key, follower)
        else:
            self.moving.pop(key, None)

    def move(self, key: str, follower: Follower) -> None:
        """Takes over the newest lag of a follower that is counted already."""
        if follower[1] or follower[2]:
            self.moving[key] = follower
        else:
            self.moving.pop(key, None)

    @property
    def used(self) -> bool:
        return (
            self.replicas > 0
            or self.leaders > 0
            or self.preferred > 0
            or self.known_lag_records > 0
            or self.known_lag_ms > 0
        )

    @property
    def lag_records(self) -> int | None:
        return (
            max(
                (records for _, records, _ in self.moving.values() if records is not None),
                default=0,
            )
            if self.known_lag_records
            else None
        )

    @property
    def lag_ms(self) -> float | None:
        known = (
            milliseconds for _, _, milliseconds in self.moving.values() if milliseconds is not None
        )
        return max(known, default=0.0) if self.known_lag_ms else None

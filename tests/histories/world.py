"""A cluster in motion: brokers, controller and producers, in small random steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from tests.histories.broker import Broker
from tests.histories.controller import Controller, PartitionRecord
from tests.histories.modes import Mode
from tests.histories.partition import Partition, Placement
from tests.histories.replica import Replica

ALL = 10_000
# The true time of the beginning, in Unix seconds.
ORIGIN = 1_790_000_000.0
# Eligible replicas of another moment are of the last pass or less ago.
OTHER_MOMENT_SECONDS = 1.0
# How long a slow link lets fetches pass.
FETCH_ROUND_SECONDS = 1.2


@dataclass(slots=True)
class Pace:
    """How fast things happen in this history; times in seconds, steps a second and partition."""

    produce: float
    batch: int
    session_timeout: float
    lag_max: float
    chunk: int
    steps: int


class World:
    """`now` is the true time, in seconds since the start of the history."""

    def __init__(
        self, mode: Mode, brokers: int, placements: Iterable[Placement], pace: Pace
    ) -> None:
        self.mode, self.pace = mode, pace
        self.controller = Controller(mode)
        self.brokers = {n: Broker(n, mode, self.controller) for n in range(1, brokers + 1)}
        self._list = list(self.brokers.values())
        self.partitions = [Partition(self.controller, self._list, p) for p in placements]
        for broker in self._list:
            broker.read_image(self.controller.newest)
        self.now = 0.0
        # A broker shows eligible leader replicas of another moment than its leader and in-sync set.
        self.mixes_moments = False
        # (leader or any, follower or any, seconds from one fetch round to the next).
        self.slow: list[tuple[int | None, int | None, float]] = []
        # Of each partition, the replica that left last, for the faults that let it return.
        self.left: dict[int, int] = {}

    def wall(self, at: float | None = None) -> float:
        """Unix seconds of now, or of a time since the start."""
        return ORIGIN + (self.now if at is None else at)

    def eligible_shown(self, partition: Partition, view: PartitionRecord) -> PartitionRecord:
        """The record whose eligible leader replicas a broker with this view shows."""
        if not self.mixes_moments:
            return view
        records, since = partition.controlled.records, self.now - OTHER_MOMENT_SECONDS
        first = max(sum(record.at < since for record in records) - 1, 0)
        recent = records[first:]
        return recent[round(self.now * 1000) % len(recent)]

    def at(self, now: float) -> None:
        self.now = self.controller.now = now
        for partition in self.partitions:
            partition.truth.now = now

    def step(self, rng: Random) -> None:
        """One small thing happens."""
        dice, pick = rng.random(), self._list[int(rng.random() * len(self._list))]
        partition = self.partitions[int(rng.random() * len(self.partitions))]
        replica = partition.replicas[pick.number]
        if dice < 0.45:
            self.fetch_once(replica, rng)
        elif dice < 0.65:
            if not pick.is_current:
                self.deliver(pick, rng)
        elif dice < 0.85:
            if rng.random() < self.pace.produce:
                partition.produce(self.pace.batch, rng)
        elif dice < 0.93:
            if replica.serves() and not pick.refused:
                replica.maintain_in_sync(self.pace.lag_max)
        elif dice < 0.98:
            self.control(rng)
        elif replica.log is not None and pick.up:
            log = replica.log
            log.end_of_disk = rng.randint(log.end_of_disk, log.end)
            log.checkpoint = log.high_watermark
            if rng.random() < 0.1:
                log.start_checkpoint = log.start

    def settle(self, rng: Random) -> None:
        """What happens several times a second: images, fetches, heartbeats, in-sync sets."""
        self.control(rng)
        for broker in self._list:
            if not broker.is_current:
                self.deliver(broker, rng)
        replicas = [r for partition in self.partitions for r in partition.replicas.values()]
        for replica in replicas:
            self.fetch_once(replica, rng)
        for replica in replicas:
            if replica.leads and replica.broker.runs and not replica.broker.refused:
                replica.maintain_in_sync(self.pace.lag_max)

    def is_slowed(self, replica: Replica) -> bool:
        """Whether its fetch waits: a slow link, leader or follower lets one pass now and then."""
        return any(
            leader in (None, replica.leader)
            and follower in (None, replica.number)
            and self.now % seconds > FETCH_ROUND_SECONDS
            for leader, follower, seconds in self.slow
        )

    def fetch_once(self, replica: Replica, rng: Random) -> None:
        if self.slow and self.is_slowed(replica):
            return
        limit = ALL if rng.random() < 0.8 else rng.randint(1, self.pace.chunk)
        self.partitions[replica.controlled.index].fetch_once(replica, limit, rng)

    def deliver(self, broker: Broker, rng: Random) -> None:
        """The broker's image moves on, mostly to the newest record."""
        if not broker.runs or broker.cut_off or broker.frozen:
            return
        broker.read_image(self.controller.newest if rng.random() < 0.9 else broker.image + 1)
        broker.image_at = self.now

    def control(self, rng: Random) -> None:
        """Heartbeats: the controller fences the silent and unfences the ready, one at a time."""
        controller = self.controller
        for broker in self._list:
            if broker.runs and not broker.cut_off:
                broker.contact_at = self.now
            if broker.is_current:
                broker.image_at = self.now
        if controller.held:
            return
        for broker in self._list:
            fenced = broker.number in controller.fenced
            if not fenced and self.now - broker.contact_at > self.pace.session_timeout:
                controller.fence(broker.number)
                return
            ready = broker.is_current and broker.contact_at == self.now
            if fenced and ready and rng.random() < 0.7:
                controller.unfence(broker.number)
                return

    # The process of a broker.

    def crash(self, broker: Broker, rng: Random, *, lossy: bool = False) -> None:
        if not broker.up:
            return

        def keep(replica: Replica) -> int | None:
            log = replica.log
            return rng.randint(log.end_of_disk, log.end) if lossy and log is not None else None

        broker.crash(keep)

    def stop(self, broker: Broker) -> None:
        """A controlled shutdown, to its end."""
        if not broker.runs or broker.cut_off or self.controller.held:
            return
        self.controller.stop(broker.number)
        for replica in broker.replicas:
            if replica.log is not None:
                replica.log.checkpoint = replica.log.high_watermark
                replica.log.start_checkpoint = replica.log.start
                replica.log.end_of_disk = replica.log.end
        broker.crash()
        self.controller.fence(broker.number)
        broker.clean = True

    def start(self, broker: Broker) -> None:
        """The process starts, is fenced, and reads the metadata before it serves."""
        if broker.up or self.controller.held:
            return
        if broker.number not in self.controller.fenced:
            self.controller.fence(broker.number)
        if not broker.clean:
            self.controller.register_after_unclean_shutdown(broker.number)
        for partition in self.partitions:
            partition.truth.restarts.append((self.now, broker.number))
        broker.start(self.now)

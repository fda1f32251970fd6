"""The partition in motion: brokers, controller and producers, in small random steps."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.histories.broker import Broker
from tests.histories.controller import NO_LEADER, Controller, PartitionRecord
from tests.histories.modes import Mode
from tests.histories.replication import fetch
from tests.histories.truth import Election, Truth

ALL = 10_000


@dataclass(slots=True)
class Pace:
    """How fast things happen in this history; times in seconds."""

    produce: float
    batch: int
    session_timeout: float
    lag_max: float
    chunk: int
    steps: int


class World:
    """`now` is the true time, in seconds since the start of the history."""

    def __init__(
        self, mode: Mode, brokers: int, replicas: int, min_in_sync: int, pace: Pace
    ) -> None:
        self.mode, self.pace = mode, pace
        self.truth = Truth()
        assigned = tuple(range(1, replicas + 1))
        self.controller = Controller(mode, assigned, min_in_sync)
        self.controller.elected = self._elected
        self.truth.elections.append(Election(0, 0, assigned[0], "clean", 0.0))
        self.brokers = {
            n: Broker(n, mode, self.controller, self.truth) for n in range(1, brokers + 1)
        }
        self._list = list(self.brokers.values())
        for broker in self._list:
            broker.read_image(0)
        self.now = 0.0
        # The replica that left last, for the faults that let it return.
        self.left: int | None = None

    def _elected(self, record: PartitionRecord) -> None:
        before = self.controller.records[-2]
        if record.topic != before.topic:
            self.truth.recreate()
            before = before._replace(leader=NO_LEADER)
        self.truth.elect(record, before.leader)

    def at(self, now: float) -> None:
        self.now = self.truth.now = self.controller.now = now

    @property
    def state(self) -> PartitionRecord:
        return self.controller.state

    def leaders(self) -> list[Broker]:
        return [broker for broker in self._list if broker.serves()]

    def legitimate_leader(self) -> Broker | None:
        state = self.controller.state
        broker = self.brokers.get(state.leader)
        if broker is None or not broker.serves() or broker.leader_epoch != state.leader_epoch:
            return None
        return broker if broker.topic == state.topic else None

    def step(self, rng: Random) -> None:
        """One small thing happens."""
        dice, pick = rng.random(), self._list[int(rng.random() * len(self._list))]
        if dice < 0.45:
            self.fetch_once(pick, rng)
        elif dice < 0.65:
            if pick.image < len(self.controller.records) - 1:
                self.deliver(pick, rng)
        elif dice < 0.85:
            if rng.random() < self.pace.produce:
                self.produce(rng)
        elif dice < 0.93:
            if pick.serves():
                pick.maintain_in_sync(self.pace.lag_max)
        elif dice < 0.98:
            self.control(rng)
        elif pick.log is not None and pick.up:
            log = pick.log
            log.end_of_disk = rng.randint(log.end_of_disk, log.end)
            log.checkpoint = log.high_watermark
            if rng.random() < 0.1:
                log.start_checkpoint = log.start

    def run(self, count: int, until: float, rng: Random) -> None:
        """`count` steps in equal parts of the time until `until`."""
        width = (until - self.now) / max(count, 1)
        for _ in range(count):
            self.at(self.now + width)
            self.step(rng)
        self.at(until)

    def settle(self, rng: Random) -> None:
        """What happens several times a second: images, fetches, heartbeats, in-sync sets."""
        self.control(rng)
        newest = len(self.controller.records) - 1
        for broker in self._list:
            if broker.image < newest:
                self.deliver(broker, rng)
        for broker in self._list:
            self.fetch_once(broker, rng)
        for broker in self._list:
            if broker.leads and broker.runs:
                broker.maintain_in_sync(self.pace.lag_max)

    def produce(self, rng: Random) -> None:
        leaders = self.leaders()
        if leaders:
            # Clients of a leader that is cut off go on to write to it.
            leader = leaders[int(rng.random() * len(leaders))]
            leader.append(rng.randint(1, self.pace.batch))

    def fetch_once(self, broker: Broker, rng: Random) -> None:
        if not broker.runs or broker.leads or broker.stuck or broker.leader == NO_LEADER:
            return
        source = self.brokers[broker.leader]
        if broker.cut_off != source.cut_off and rng.random() < 0.5:
            return
        limit = ALL if rng.random() < 0.8 else rng.randint(1, self.pace.chunk)
        fetch(broker, source, limit)

    def deliver(self, broker: Broker, rng: Random) -> None:
        """The broker's image moves on, mostly to the newest record."""
        if not broker.runs or broker.cut_off or broker.frozen:
            return
        newest = len(self.controller.records) - 1
        index = newest if rng.random() < 0.9 else broker.image + 1
        broker.read_image(index)
        broker.image_at = self.now

    def control(self, rng: Random) -> None:
        """Heartbeats: the controller fences the silent and unfences the ready, one at a time."""
        controller, newest = self.controller, len(self.controller.records) - 1
        for broker in self._list:
            if broker.runs and not broker.cut_off:
                broker.contact_at = self.now
            if broker.image == newest:
                broker.image_at = self.now
        if controller.held:
            return
        for broker in self._list:
            fenced = broker.number in controller.fenced
            if not fenced and self.now - broker.contact_at > self.pace.session_timeout:
                controller.fence(broker.number)
                return
            ready = broker.image == newest and broker.contact_at == self.now
            if fenced and ready and rng.random() < 0.7:
                controller.unfence(broker.number)
                return

    # The process of a broker.

    def crash(self, broker: Broker, rng: Random, *, lossy: bool = False) -> None:
        if not broker.up:
            return
        keep = None
        if lossy and broker.log is not None:
            keep = rng.randint(broker.log.end_of_disk, broker.log.end)
        broker.crash(keep)

    def stop(self, broker: Broker) -> None:
        """A controlled shutdown, to its end."""
        if not broker.runs or broker.cut_off or self.controller.held:
            return
        self.controller.stop(broker.number)
        if broker.log is not None:
            broker.log.checkpoint = broker.log.high_watermark
            broker.log.start_checkpoint = broker.log.start
            broker.log.end_of_disk = broker.log.end
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
        broker.up, broker.clean = True, False
        self.truth.restarts.append((self.now, broker.number))
        broker.contact_at = broker.image_at = self.now
        broker.cut_off = broker.frozen = broker.stuck = False
        broker.read_image(len(self.controller.records) - 1)

    def delete_records(self, rng: Random) -> None:
        """Retention, or DeleteRecords: up to the high watermark, at the leader."""
        leader = self.legitimate_leader()
        if leader is None or leader.log is None:
            return
        log = leader.log
        if log.high_watermark <= log.start:
            return
        to = log.high_watermark
        if rng.random() < 0.7:
            to = rng.randint(log.start + 1, to)
        self.truth.delete(log.delete_before(to))

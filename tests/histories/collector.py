"""The product's collector over a simulated network, and the records of the metadata log."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from kafka.future import Future

from tests.histories.answers import address
from tests.histories.connection import SimulatedNetwork
from tests.histories.controller import PartitionRecord
from tests.histories.partition import NUMBER
from tests.histories.world import World
from tidemark.collect.codecs.metadata_image import topic_id_text
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.connect.event_loop import complete
from tidemark.collect.sources.source import SourceEvent
from tidemark.core.codec import decode_batch
from tidemark.core.events import Batch, MetadataChange, PartitionDeleted
from tidemark.settings import Cluster, Collect

if TYPE_CHECKING:
    from tests.histories.history import History

CLUSTER = "main"
# Of each second, how long high watermarks are read between passes.
READ_SECONDS = 0.5
# How many passes a record of a disordered metadata log waits, and shares of such records.
WAITS = [0, 0, 0, 0, 1, 2, 5, 12]
TWICE, SCANNED = 0.2, 0.5


class Written(NamedTuple):
    """One record of the event topic, and the group that reads it."""

    group: int
    batch: Batch


class MetadataLog:
    """A source with the records since the last pass.

    `controller_ahead`: see `Script.log_ahead`; null: in order, once each, by the true time.
    """

    def __init__(self, world: World, ahead: float, controller_ahead: float | None) -> None:
        self._world, self._ahead, self._controller_ahead = world, ahead, controller_ahead
        self._end = 0
        self._rng = Random(0)
        # (how many more calls it waits, event)
        self._late: list[tuple[int, SourceEvent]] = []

    def take(self) -> list[SourceEvent]:
        log = self._world.controller.log
        first, self._end = self._end, len(log)
        found: list[SourceEvent] = [self._event(number) for number in range(first, self._end)]
        return found if self._controller_ahead is None else self._disordered(found)

    def _disordered(self, found: list[SourceEvent]) -> list[SourceEvent]:
        rng, due = self._rng, [(waits - 1, event) for waits, event in self._late]
        due += [(rng.choice(WAITS), event) for event in found]
        due += [(rng.choice(WAITS), event) for event in found if rng.random() < TWICE]
        self._late = [each for each in due if each[0] > 0]
        ready = [event for waits, event in due if waits <= 0]
        rng.shuffle(ready)
        return ready

    def _observed_at(self, record: PartitionRecord) -> float:
        """A reader that scans the log dates an event by its record."""
        ahead = self._controller_ahead
        is_scan = ahead is not None and self._rng.random() < SCANNED
        return self._world.wall(record.at) + (ahead or 0.0) if is_scan else self._now()

    def _now(self) -> float:
        return self._world.wall() + self._ahead

    def _event(self, number: int) -> MetadataChange | PartitionDeleted:
        index, record = self._world.controller.log[number]
        partition = self._world.partitions[index]
        if not record.exists:
            return PartitionDeleted(
                topic=partition.topic,
                partition=NUMBER,
                observed_at=self._observed_at(record),
                topic_id=topic_id_text(partition.topic_id(record.topic)),
            )
        return MetadataChange(
            topic=partition.topic,
            partition=NUMBER,
            observed_at=self._observed_at(record),
            topic_id=topic_id_text(partition.topic_id(record.topic)),
            metadata_offset=100 + number,
            record_at=self._world.wall(record.at) + self._record_ahead,
            leader=record.leader if record.leader >= 0 else None,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            replicas=list(record.replicas),
            in_sync_replicas=list(record.in_sync),
            eligible_leader_replicas=list(record.eligible),
            last_known_eligible_leader_replicas=list(record.last_known),
            adding=list(record.adding),
            removing=list(record.removing),
            recovering=record.recovering,
        )

    @property
    def _record_ahead(self) -> float:
        return self._ahead if self._controller_ahead is None else self._controller_ahead

    def close(self) -> None:
        return


class Collector:
    """One process. `ahead`: how far its clock is ahead of the true time."""

    def __init__(
        self, history: History, name: str, groups: int, *, ahead: float, has_log: bool
    ) -> None:
        world, plan = history.world, history.plan
        settings = Collect(
            collector=name,
            pass_seconds=1.0,
            fast_high_watermark_topics=[".*"] if plan.fast else [],
        )
        servers = [f"{a.host}:{a.port}" for a in map(address, world.brokers)]
        self._loop = history.loop
        self._passes = PassRunner(
            Cluster(name=CLUSTER, bootstrap_servers=servers),
            settings,
            groups,
            round((world.wall() + ahead) * 1000),
            [MetadataLog(world, ahead, plan.log_ahead)] if has_log else [],
            lambda: world.wall() + ahead,
            network=SimulatedNetwork(history),
        )
        self._over, self._rest = Future(), Future().success(None)

    def run(self, until: float) -> list[Written]:
        """What one pass writes. Then it rests until the next one is due, at the time `until`."""
        complete(self._over, result=True)
        if not self._rest.is_done:
            self._loop.run(self._loop.wait, [self._rest], 1.0)
        records = self._loop.run(self._passes.run, set())
        self._over = Future()
        self._rest = self._loop.spawn(self._sleep, max(until - self._loop.now, 0.0))
        return [Written(record.group, decode_batch(record.payload)) for record in records]

    async def _sleep(self, seconds: float) -> None:
        """Only the last part of it reads high watermarks: often enough to find what moves."""
        await self._loop.sleep(seconds - READ_SECONDS)
        await self._passes.rest(self._over, min(seconds, READ_SECONDS), may_end_early=True)

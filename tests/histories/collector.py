"""The product's collector over a simulated network, and the records of the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafka.future import Future

from tests.histories.answers import address
from tests.histories.connection import SimulatedNetwork
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


class Written(NamedTuple):
    """One record of the event topic, and the group that reads it."""

    group: int
    batch: Batch


class MetadataLog:
    """A source with the records since the last pass."""

    def __init__(self, world: World, ahead: float) -> None:
        self._world, self._ahead = world, ahead
        self._end = 0

    def take(self) -> list[SourceEvent]:
        log = self._world.controller.log
        first, self._end = self._end, len(log)
        return [self._event(number) for number in range(first, self._end)]

    def _event(self, number: int) -> MetadataChange | PartitionDeleted:
        index, record = self._world.controller.log[number]
        partition = self._world.partitions[index]
        if not record.exists:
            return PartitionDeleted(
                topic=partition.topic,
                partition=NUMBER,
                observed_at=self._world.wall() + self._ahead,
                topic_id=topic_id_text(partition.topic_id(record.topic)),
            )
        return MetadataChange(
            topic=partition.topic,
            partition=NUMBER,
            observed_at=self._world.wall() + self._ahead,
            topic_id=topic_id_text(partition.topic_id(record.topic)),
            metadata_offset=100 + number,
            record_at=self._world.wall(record.at) + self._ahead,
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
            [MetadataLog(world, ahead)] if has_log else [],
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

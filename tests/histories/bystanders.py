"""Writers of the event topic beside the collector, by clocks of their own: sidecars and audits."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from tests.histories.collector import CLUSTER, Written
from tests.histories.partition import NUMBER, Partition
from tests.histories.replica import Replica
from tidemark.collect.codecs.metadata_image import topic_id_text
from tidemark.core.events import Audit, Batch, BrokerState, Checkpoint, Event

if TYPE_CHECKING:
    from tests.histories.history import History

# How often one of them writes, in each pass.
WRITES: Final = 0.3
MAX_STARTS: Final = 64


class Bystanders:
    """`ahead`: how far their clocks are ahead of the true time, in seconds."""

    def __init__(self, history: History, ahead: float) -> None:
        self._history, self._ahead = history, ahead
        self._epoch = round((history.world.wall() + ahead) * 1000)
        self.has_audited = False

    def written(self, number: int) -> list[Written]:
        """What they write around pass `number`."""
        rng = Random((self._history.plan.seed << 13) + number)
        found: list[Written] = []
        for broker in self._history.world.brokers.values():
            if rng.random() < WRITES:
                found += self._checkpoints(number, broker.number)
        if rng.random() < WRITES:
            found += self._audits(number)
        return found

    def _now(self) -> float:
        return self._history.world.wall() + self._ahead

    def _batch(self, group: int, writer: str, number: int, events: list[Event]) -> Written:
        batch = Batch(
            v=2,
            cluster=CLUSTER,
            collector=writer,
            collector_epoch=self._epoch,
            pass_number=number,
            events=events,
        )
        return Written(group, batch)

    def _checkpoints(self, number: int, broker: int) -> list[Written]:
        now, writer = self._now(), f"sidecar-{broker}"
        found = [
            self._batch(group, writer, number, [BrokerState(broker=broker, observed_at=now)])
            for group in range(self._history.plan.groups)
        ]
        for partition in self._history.world.partitions:
            replica = partition.replicas[broker]
            if replica.log is not None:
                group = self._history.group_of(partition)
                events: list[Event] = [self._checkpoint(partition, replica, now)]
                found.append(self._batch(group, writer, number, events))
        return found

    def _checkpoint(self, partition: Partition, replica: Replica, now: float) -> Checkpoint:
        log = replica.held
        return Checkpoint(
            topic=partition.topic,
            partition=NUMBER,
            observed_at=now,
            broker=replica.number,
            topic_id=_topic_id(partition, replica.topic),
            high_watermark=log.checkpoint,
            recovery_point=log.end_of_disk,
            log_start_offset=log.start_checkpoint,
            lineage_starts=log.cache[-MAX_STARTS:],
            modified_at=now - 1.0,
        )

    def _audits(self, number: int) -> list[Written]:
        """Of two logs that truly differ below both high watermarks."""
        found = []
        for partition in self._history.world.partitions:
            audit = self._audit(partition)
            if audit is not None:
                self.has_audited = True
                group = self._history.group_of(partition)
                found.append(self._batch(group, "audit", number, [audit]))
        return found

    def _audit(self, partition: Partition) -> Audit | None:
        topic = partition.state.topic
        held = [r for r in partition.replicas.values() if r.log is not None and r.topic == topic]
        for index, one in enumerate(held):
            for other in held[index + 1 :]:
                logs = [one.held, other.held]
                high = min(log.high_watermark for log in logs)
                for offset in range(max(log.start for log in logs), high):
                    ids = [log.ids[offset] for log in logs]
                    if ids[0] != ids[1] and min(ids) >= 0:
                        epochs = [partition.truth.epoch_of[record] for record in ids]
                        same = epochs[0] == epochs[1]
                        return Audit(
                            topic=partition.topic,
                            partition=NUMBER,
                            observed_at=self._now(),
                            topic_id=_topic_id(partition, topic),
                            brokers=[one.number, other.number],
                            offset=offset,
                            leader_epoch=epochs[0] if same else None,
                            crcs=ids,
                            leader_epochs=None if same else list(epochs),
                            high_watermark=high,
                        )
        return None


def _topic_id(partition: Partition, topic: int) -> str | None:
    return topic_id_text(partition.topic_id(topic)) if partition.mode.topic_ids else None

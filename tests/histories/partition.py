"""One partition: its records at the controller, its replicas on all brokers, and its truth."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple

from tests.histories.broker import Broker
from tests.histories.controlled_partition import ControlledPartition
from tests.histories.controller import NO_LEADER, Brokers, Controller, PartitionRecord
from tests.histories.replica import Replica
from tests.histories.replication import fetch
from tests.histories.truth import Election, Truth
from tidemark.collect.codecs.metadata_image import topic_id_text

# Each is partition 0 of a topic.
TOPICS: Final = ("orders", "payments", "stock", "users")
NUMBER: Final = 0


def topic_name(index: int) -> str:
    return TOPICS[index] if index < len(TOPICS) else f"topic-{index}"


class Placement(NamedTuple):
    """`min_in_sync` and `unclean` are the topic's configuration."""

    replicas: Brokers
    min_in_sync: int
    unclean: bool


class Partition:
    """`replicas` are by broker: one on each, most of them without a log."""

    def __init__(
        self, controller: Controller, brokers: Iterable[Broker], placement: Placement
    ) -> None:
        replicas, min_in_sync, unclean = placement
        self.mode = controller.mode
        self.truth = Truth()
        self.controlled = ControlledPartition(controller, replicas, min_in_sync, unclean=unclean)
        self.controlled.elected = self._elected
        self.index = self.controlled.index
        self.topic = topic_name(self.index)
        self.truth.elections.append(Election(0, 0, replicas[0], "clean", 0.0))
        self.replicas = {b.number: Replica(b, self.controlled, self.truth) for b in brokers}
        self._list = list(self.replicas.values())

    def _elected(self, record: PartitionRecord) -> None:
        before = self.controlled.records[-2]
        if record.topic != before.topic:
            self.truth.recreate()
            before = before._replace(leader=NO_LEADER)
        self.truth.elect(record, before.leader)

    @property
    def state(self) -> PartitionRecord:
        return self.controlled.state

    def topic_id(self, topic: int) -> uuid.UUID:
        """Of the topic that was created `topic` times again."""
        return uuid.UUID(int=(self.index + 1 << 32) + topic + 1)

    def topic_of(self, topic_id: str | None) -> int:
        """The inverse of `topic_id` as observations show it; without ids, the newest topic."""
        ids = [topic_id_text(self.topic_id(topic)) for topic in range(self.truth.topic + 1)]
        return self.truth.topic if topic_id is None else ids.index(topic_id)

    def leaders(self) -> list[Replica]:
        return [replica for replica in self._list if replica.serves()]

    def legitimate_leader(self) -> Replica | None:
        state = self.state
        replica = self.replicas.get(state.leader)
        if replica is None or not replica.serves() or replica.leader_epoch != state.leader_epoch:
            return None
        return replica if replica.topic == state.topic else None

    def produce(self, most: int, rng: Random) -> None:
        leaders = self.leaders()
        if leaders:
            # Clients of a leader that is cut off go on to write to it.
            leader = leaders[int(rng.random() * len(leaders))]
            leader.append(rng.randint(1, most))

    def fetch_once(self, replica: Replica, limit: int, rng: Random) -> None:
        broker = replica.broker
        if not broker.runs or replica.leads or broker.stuck or replica.leader == NO_LEADER:
            return
        source = self.replicas[replica.leader]
        if broker.cut_off == source.broker.cut_off or rng.random() >= 0.5:
            fetch(replica, source, limit)

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

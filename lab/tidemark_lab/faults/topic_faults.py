"""Faults of topics: elections, reassignments, deletion, recreation, compaction, silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.faults.fault import Fault

# Partition -> brokers, the preferred leader first.
Assignment = Mapping[Place, Sequence[int]]

_THROTTLED_RATES: Final = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
)
_THROTTLED_REPLICAS: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


class TopicFault(Fault):
    """A fault of partitions. It touches the brokers that hold them."""

    def __init__(
        self, cluster: LocalCluster, partitions: Sequence[Place], hold_seconds: float = 0.0
    ) -> None:
        self._cluster, self.hold_seconds = cluster, hold_seconds
        self.partitions = tuple(partitions)

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.partitions})

    @property
    def detail(self) -> str:
        return f"{len(self.partitions)} partitions of {', '.join(self.topics)}"

    def _set_configs(self, kind: str, name: str, configs: Mapping[str, str | None]) -> None:
        """Sets dynamic configurations; None returns one to its default."""
        changes: dict[str, Any] = {
            key: ("DELETE", None) if value is None else ("SET", value)
            for key, value in configs.items()
        }
        resource = ConfigResource(ConfigResourceType[kind], name, changes)
        # kafka-python takes a throttle for unknown: the broker does not list one that is not set.
        results = self._cluster.administer(
            lambda admin: admin.alter_configs([resource], raise_on_unknown=False),
            f"change the configuration of {name}",
        )
        failed = [text for named in results.values() for text in named.values() if text != "OK"]
        if failed:
            raise ClusterError(f"the local cluster did not configure {name}: {failed[0]}")


class PreferredElection(TopicFault):
    """Leadership returns to the first assigned replica of these partitions."""

    name = "preferred election"

    def inject(self) -> None:
        wanted = {topic: [p for t, p in self.partitions if t == topic] for topic in self.topics}
        self._cluster.elect_preferred_leaders(wanted)

    def heal(self) -> None:
        """The elected leaders remain."""


class LeaderMoves(TopicFault):
    """A partition's leader moves this many times: its replicas change their order.

    `replicas`: the order at first. Each time the last one comes first, and is elected.
    """

    name = "leader moves"

    def __init__(
        self, cluster: LocalCluster, place: Place, replicas: Sequence[int], times: int
    ) -> None:
        super().__init__(cluster, [place])
        self._replicas, self._times = list(replicas), times
        self.brokers = tuple(replicas)

    @property
    def detail(self) -> str:
        return f"{super().detail}, {self._times} times"

    def inject(self) -> None:
        order = self._replicas
        for _ in range(self._times):
            order = [order[-1], *order[:-1]]
            self._lead(order)

    def heal(self) -> None:
        self._lead(self._replicas)

    def _lead(self, order: Sequence[int]) -> None:
        topic, partition = self.partitions[0]
        wanted = {TopicPartition(topic, partition): list(order)}
        self._cluster.administer(
            lambda admin: admin.alter_partition_reassignments(wanted), "reorder replicas"
        )
        self._cluster.elect_preferred_leaders({topic: [partition]})
        self._wait(
            lambda: self._cluster.all_partitions(
                topic, lambda p: p.partition_index != partition or p.leader_id == order[0]
            ),
            f"broker {order[0]} leads",
        )


class Reassignment(TopicFault):
    """Replicas move to other brokers and back, with or without a throttle (KIP-455, KIP-73)."""

    name = "reassignment"
    deadline_seconds = 120.0

    def __init__(
        self,
        cluster: LocalCluster,
        before: Assignment,
        after: Assignment,
        throttle_bytes_per_second: int | None = None,
        hold_seconds: float = 0.0,
    ) -> None:
        super().__init__(cluster, sorted(after), hold_seconds)
        self._before, self._after = before, after
        self._throttle = throttle_bytes_per_second
        moves = (set(before[key]) ^ set(after[key]) for key in after)
        self.brokers = tuple(sorted(set().union(*moves)))

    @property
    def detail(self) -> str:
        rate = self._throttle
        throttle = "no throttle" if rate is None else f"throttled to {rate} bytes/s"
        return f"{super().detail}, {throttle}"

    def inject(self) -> None:
        self._move(self._before, self._after)
        self._finish()

    def heal(self) -> None:
        self._move(self._after, self._before)
        self._finish()

    def _move(self, source: Assignment, target: Assignment) -> None:
        if self._throttle is not None:
            replicas = {topic: self._replicas(topic, source, target) for topic in self.topics}
            self._limit(str(self._throttle), replicas)
        wanted = {TopicPartition(*place): list(target[place]) for place in self.partitions}
        results = self._cluster.administer(
            lambda admin: admin.alter_partition_reassignments(wanted), "reassign partitions"
        )
        refused = {key: error for key, error in results.items() if error is not None}
        if refused:
            raise ClusterError(f"the local cluster did not reassign: {refused}")

    def _finish(self) -> None:
        self._wait(self._is_assigned, "the reassignment is complete")
        if self._throttle is not None:
            self._limit(None, dict.fromkeys(self.topics, (None, None)))

    def _replicas(self, topic: str, source: Assignment, target: Assignment) -> tuple[str, str]:
        """The values of _THROTTLED_REPLICAS, as kafka-reassign-partitions sets them.

        Any replica may send, new ones fetch. One that is in sync already is not held back.
        """
        places = [place for place in self.partitions if place[0] == topic]
        senders = [f"{place[1]}:{broker}" for place in places for broker in source[place]]
        fetchers = [
            f"{place[1]}:{broker}"
            for place in places
            for broker in target[place]
            if broker not in source[place]
        ]
        return ",".join(senders), ",".join(fetchers)

    def _limit(
        self, rate: str | None, replicas: Mapping[str, tuple[str | None, str | None]]
    ) -> None:
        """Sets the throttle of every broker and topic; None removes it."""
        for broker in BROKERS:
            self._set_configs("BROKER", str(broker), dict.fromkeys(_THROTTLED_RATES, rate))
        for topic, values in replicas.items():
            configs = dict(zip(_THROTTLED_REPLICAS, values, strict=True))
            self._set_configs("TOPIC", topic, configs)

    def _is_assigned(self) -> bool:
        ongoing = self._cluster.administer(
            lambda admin: admin.list_partition_reassignments(), "list reassignments"
        )
        return not ongoing


class BlockedReassignment(Reassignment):
    """One that waits for a replica of the old assignment whose broker is down (KAFKA-19975).

    Before Kafka 4.3.
    """

    name = "blocked reassignment"

    def inject(self) -> None:
        self._move(self._before, self._after)

    def heal(self) -> None:
        """It ends once that broker is back; the new assignment remains."""
        self._finish()


class LeaderThrottle(TopicFault):
    """A replication throttle that nobody removed, on what one broker leads (KIP-73)."""

    name = "leader throttle"

    def __init__(
        self, cluster: LocalCluster, partitions: Sequence[Place], broker: int, rate: int
    ) -> None:
        super().__init__(cluster, partitions)
        self._rate, self.brokers = rate, (broker,)

    @property
    def detail(self) -> str:
        return f"broker {self.brokers[0]}, {self._rate} bytes/s, {super().detail}"

    def inject(self) -> None:
        self._set(str(self._rate), "*")

    def heal(self) -> None:
        self._set(None, None)

    def _set(self, rate: str | None, replicas: str | None) -> None:
        self._set_configs("BROKER", str(self.brokers[0]), {_THROTTLED_RATES[0]: rate})
        for topic in self.topics:
            self._set_configs("TOPIC", topic, {_THROTTLED_REPLICAS[0]: replicas})


class DeleteRecords(TopicFault):
    """Removes the older part of these partitions: the log start moves (KIP-107)."""

    name = "delete records"

    def __init__(self, cluster: LocalCluster, offsets: Mapping[Place, int]) -> None:
        super().__init__(cluster, sorted(offsets))
        self.offsets = dict(offsets)

    def inject(self) -> None:
        offsets = {TopicPartition(*place): offset for place, offset in self.offsets.items()}
        self._cluster.administer(lambda admin: admin.delete_records(offsets), "delete records")

    def heal(self) -> None:
        """Deleted records remain deleted."""


class ConfigChange(TopicFault):
    """Other configurations of topics for a while."""

    configs: Mapping[str, str]

    def inject(self) -> None:
        self._set_all(self.configs)

    def heal(self) -> None:
        self._set_all(dict.fromkeys(self.configs))

    def _set_all(self, configs: Mapping[str, str | None]) -> None:
        for topic in self.topics:
            self._set_configs("TOPIC", topic, configs)


class RetentionShrink(ConfigChange):
    """Retention removes all but the newest seconds: the log start moves in steps."""

    name = "retention shrink"
    configs: Mapping[str, str] = {"segment.ms": "1000", "retention.ms": "5000"}


class Compaction(ConfigChange):
    """The cleaner runs over topics that are compacted: offsets within the log disappear."""

    name = "compaction"
    configs: Mapping[str, str] = {
        "segment.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01",
    }


class RaisedMinIsr(ConfigChange):
    """min.insync.replicas rises on a live topic."""

    name = "raised min ISR"

    def __init__(
        self, cluster: LocalCluster, partitions: Sequence[Place], minimum: int, before: int
    ) -> None:
        super().__init__(cluster, partitions)
        self._minimum, self._before = minimum, before
        self.configs = {"min.insync.replicas": str(minimum)}

    @property
    def detail(self) -> str:
        return f"{super().detail}, from {self._before} to {self._minimum}"

    def heal(self) -> None:
        self._set_all({"min.insync.replicas": str(self._before)})


class Recreation(TopicFault):
    """A topic is deleted and created again at once, with the same name and another topic id."""

    name = "topic recreation"

    def __init__(
        self,
        cluster: LocalCluster,
        topic: str,
        assignments: Mapping[int, Sequence[int]],
        configs: Mapping[str, str],
    ) -> None:
        super().__init__(cluster, [(topic, partition) for partition in assignments])
        self._topic, self._assignments, self._configs = topic, assignments, configs

    def inject(self) -> None:
        self._cluster.administer(
            lambda admin: admin.delete_topics([self._topic]), f"delete the topic {self._topic}"
        )

    def heal(self) -> None:
        self._cluster.create_topic(self._topic, self._assignments, self._configs)


class IdleTopics(TopicFault):
    """The producer of these partitions' topics falls silent for a while."""

    name = "idle topics"

    def __init__(
        self,
        cluster: LocalCluster,
        partitions: Sequence[Place],
        load: LoadProducer,
        hold_seconds: float,
    ) -> None:
        super().__init__(cluster, partitions, hold_seconds)
        self._load = load

    def inject(self) -> None:
        self._load.pause(*self.topics)

    def heal(self) -> None:
        self._load.resume(*self.topics)

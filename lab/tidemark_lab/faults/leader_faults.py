"""Faults of leadership: a leader that moves again and again."""

from __future__ import annotations

from collections.abc import Sequence

from kafka import TopicPartition

from tidemark_lab.brokers.cluster import LocalCluster, Place
from tidemark_lab.faults.topic_faults import TopicFault


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

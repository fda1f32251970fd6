"""`python -m tests.bench.fleet_brokers CLUSTERS PARTITIONS`: the brokers of many clusters.

Each cluster has three brokers, three replicas of each partition and a password; one in ten
partitions moves once a second. An answer is encoded once, and its offsets are put in. One more
broker takes what is published, and drops it.

Prints the ports: of that broker, then of each cluster. A line `FAULT CLUSTER` of its input starts a
fault: hang, slow or refuse.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from kafka.protocol.producer import InitProducerIdResponse, ProduceResponse

from tests.collect.fake_broker import (
    AUTHENTICATE,
    CONFIGS,
    FETCH,
    HANDSHAKE,
    INIT_PRODUCER,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
    VERSIONS,
    FakeBroker,
    Log,
)
from tidemark.settings import Topics

OFFERED = {**VERSIONS, CONFIGS: (1, 4), HANDSHAKE: (0, 1), AUTHENTICATE: (0, 0)}
OWN = {**VERSIONS, CONFIGS: (1, 4), PRODUCE: (3, 7), INIT_PRODUCER: (0, 1)}
# The partitions that a request asks the ends of, by its API key; the answer has the same order.
ASKED: dict[int, Callable[[Any], list[int]]] = {
    FETCH: lambda request: [p.partition for topic in request.topics for p in topic.partitions],
    LIST_OFFSETS: lambda request: [
        p.partition_index for topic in request.topics for p in topic.partitions
    ],
    METADATA: lambda _: [],
}
BROKERS = (1, 2, 3)
TOPICS = 12
MOVES_ONE_IN = 10
SLOW_SECONDS = 30.0
WRONG_PASSWORD = 58
# Of every replica at the start; nothing else of an answer has these bytes.
END = struct.unpack(">q", b"endoflog")[0]


class Answer:
    """Of the partitions `numbers`, each with equally many ends, where the payload has END."""

    def __init__(self, payload: bytes, numbers: list[int]) -> None:
        self._bytes = np.frombuffer(payload, np.uint8)
        found = [at for at in range(len(payload)) if payload.startswith(b"endoflog", at)]
        self._places = np.array(found, int).reshape(-1, 1) + np.arange(8)
        moving = np.array(numbers, int) % MOVES_ONE_IN == 0
        self._steps = np.repeat(moving, len(found) // max(1, len(numbers)))

    def now(self, correlation: bytes) -> bytes:
        made, ends = self._bytes.copy(), END + self._steps * int(time.monotonic())
        made[self._places] = ends.astype(">i8").view(np.uint8).reshape(-1, 8)
        made[4:8] = np.frombuffer(correlation, np.uint8)
        return made.tobytes()


class FleetBroker(FakeBroker):
    """`shared`: of all brokers with its number. Their answers are alike but for addresses."""

    def __init__(self, broker: int, password: str, shared: dict[tuple[str, bytes], Answer]) -> None:
        super().__init__(broker, OFFERED)
        self.password, self.seconds, self._shared = password, 0.0, shared

    def answer_to(self, data: bytes) -> bytes:
        time.sleep(self.seconds)
        (key,) = struct.unpack_from(">h", data)
        if key not in ASKED:
            return super().answer_to(data)
        question = (self.cluster_id if key == METADATA else "", data[:4] + data[8:])
        if question not in self._shared:
            self._shared[question] = Answer(super().answer_to(data), ASKED[key](self.requests[-1]))
        return self._shared[question].now(data[4:8])

    def login(self, token: bytes) -> int:
        return 0 if token.endswith(f"\0{self.password}".encode()) else WRONG_PASSWORD


class OwnKafka(FakeBroker):
    """Takes every record."""

    def __init__(self) -> None:
        super().__init__(1, OWN)
        topics, one = Topics(), {0: (1, 0, [1], [1], 0)}
        many = dict.fromkeys(range(topics.partitions), one[0])
        made = {topics.replica_state: many, topics.partition_views: many}
        made |= {topics.alerts: one, topics.dead_letters: one}
        self.metadata = lambda: ([self], made)
        self.answers |= {PRODUCE: self._produce, INIT_PRODUCER: self._init_producer}

    def _produce(self, request: Any, version: int) -> bytes:
        of_topic = ProduceResponse.TopicProduceResponse
        of_partition = of_topic.PartitionProduceResponse
        taken = []
        for topic in request.topic_data:
            done = [of_partition(index=each.index, base_offset=0) for each in topic.partition_data]
            taken.append(of_topic(name=topic.name, partition_responses=done))
        self.requests.clear()
        return bytes(ProduceResponse(responses=taken).encode(version=version))

    def _init_producer(self, _request: Any, version: int) -> bytes:
        answer = InitProducerIdResponse(error_code=0, producer_id=1, producer_epoch=0)
        return bytes(answer.encode(version=version))


def make_clusters(clusters: int, partitions: int) -> list[list[FleetBroker]]:
    topics: dict[str, Any] = {f"topic-{number}": {} for number in range(TOPICS)}
    logs: dict[int, dict[tuple[str, int], Log]] = {broker: {} for broker in BROKERS}
    for place in range(partitions):
        topic, number, first = f"topic-{place % TOPICS}", place // TOPICS, place % len(BROKERS)
        replicas = [*BROKERS[first:], *BROKERS[:first]]
        topics[topic][number] = (replicas[0], 0, replicas, replicas, 0)
        for broker in BROKERS:
            logs[broker][topic, number] = Log([(0, END)], END, 0, leads=broker == replicas[0])
    shared: dict[int, dict[tuple[str, bytes], Answer]] = {broker: {} for broker in BROKERS}
    made = []
    for cluster in range(clusters):
        brokers = [FleetBroker(b, f"password-{cluster}", shared[b]) for b in BROKERS]
        for each in brokers:
            each.logs, each.cluster_id = logs[each.broker], f"cluster-{cluster}"
            each.metadata = partial(lambda found: (found, topics), [*brokers])
        made.append(brokers)
    return made


def main() -> None:
    clusters, own = make_clusters(int(sys.argv[1]), int(sys.argv[2])), OwnKafka()
    ports = [[broker.port for broker in cluster] for cluster in clusters]
    print(json.dumps([own.port, ports]), flush=True)
    for line in sys.stdin:
        fault, cluster = line.split()
        for broker in clusters[int(cluster)]:
            if fault == "hang":
                broker.hangs = lambda _: True
            elif fault == "slow":
                broker.seconds = SLOW_SECONDS
            else:
                broker.password = "changed"
                broker.disconnect()


if __name__ == "__main__":
    main()

"""One schedule of faults on real brokers of any version, under load, with a collector beside it.

A follower is paused, a broker restarted, a leader killed; then acknowledged records are lost: the
followers of `pair` are down while the leader goes on alone, the leader is killed, and a follower
comes back. `short` is the last of these alone, with the topic `pair` alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.chaos.run import CLUSTER_NAME, Collector
from tests.versions.verbs import Ran, run_verbs
from tidemark.core.codec import decode_batch
from tidemark.core.events import Pass
from tidemark_lab.brokers.broker_socket import BrokerSocket, fetch_metadata
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.brokers.load_producer import (
    AcknowledgedRecord,
    LoadProducer,
    StoredPartition,
    read_partitions,
)
from tidemark_lab.brokers.replica_logs import ReplicaOnDisk, read_replicas
from tidemark_lab.faults.node_faults import wait_until

__all__ = ["CLUSTER_NAME", "Run", "run_schedule"]

TRIO: Final = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
PAIR: Final = {0: [1, 2], 1: [1, 2], 2: [1, 2]}
TRIO_PLACES: Final[list[Place]] = [("trio", number) for number in TRIO]
PAIR_PLACES: Final[list[Place]] = [("pair", number) for number in PAIR]
OVERRIDES: Final = {
    "replica.lag.time.max.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
}
# ZooKeeper's session and KRaft's: a killed broker is noticed after it, a paused one lives through.
SESSIONS: Final = ("zookeeper.session.timeout.ms", "broker.session.timeout.ms")
SESSION_MS: Final = 6_000
SHORT_SESSION_MS: Final = 3_000
RECORDS_PER_SECOND: Final = 120
WAIT_SECONDS: Final = 60.0
# With a pass each second, KafkaOffline fires within this time: after three of them.
OFFLINE_SECONDS: Final = 3.0
# A few passes of the collector, in the whole schedule and in the short one.
SEEN_SECONDS: Final = 3.5
SHORT_SECONDS: Final = 2.0


@dataclass
class Run:
    """What happened. `quiet` are moments without load, with the brokers' logs on disk."""

    version: str
    events: Path
    places: list[Place]
    # broker -> its APIs and their newest versions
    apis: dict[int, int] = field(default_factory=dict)
    quiet: list[tuple[float, dict[tuple[int, Place], ReplicaOnDisk]]] = field(default_factory=list)
    acknowledged: list[AcknowledgedRecord] = field(default_factory=list)
    stored: dict[Place, StoredPartition] = field(default_factory=dict)
    # When the leader of `pair` was killed, and when the follower was started.
    leaderless: tuple[float, float] = (0.0, 0.0)
    elected: int = 0
    # What the verbs said of the healthy cluster under load; nothing in the short schedule.
    verbs: dict[str, Ran] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.places})


class _Schedule:
    def __init__(self, cluster: LocalCluster, load: LoadProducer, run: Run, seconds: float) -> None:
        self.cluster, self.load, self.run, self.seconds = cluster, load, run, seconds

    def leader(self, topic: str) -> int | None:
        """The leader of partition 0 as the brokers that serve see it; None: they name none."""
        named = [
            partition.leader_id
            for broker in BROKERS
            if self.cluster.is_ready(broker)
            for partition in fetch_metadata(self.cluster.address(broker), [topic])
            .topics[0]
            .partitions
            if partition.partition_index == 0
        ]
        return max(named) if named and max(named) >= 0 else None

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, WAIT_SECONDS, what)

    def wait_whole(self) -> None:
        self.wait(lambda: self.cluster.is_whole(self.run.topics), "every replica is in sync")

    def wait_unlisted(self, broker: int) -> None:
        """A killed broker can start again once its session is over."""
        alive = next(other for other in BROKERS if self.cluster.is_running(other))
        self.wait(
            lambda: (
                broker
                not in {b.node_id for b in fetch_metadata(self.cluster.address(alive)).brokers}
            ),
            f"broker {broker} is gone",
        )

    def pause_follower(self) -> None:
        controller = fetch_metadata(self.cluster.address(1)).controller_id
        paused = 2 if controller == 3 else 3
        self.cluster.pause_broker(paused)
        time.sleep(self.seconds)
        self.cluster.resume_broker(paused)
        self.wait_whole()

    def restart_in_order(self) -> None:
        self.cluster.stop_broker(3)
        self.cluster.start_broker(3)
        self.wait_whole()

    def kill_leader(self) -> None:
        leader = self.leader("trio") or 1
        self.cluster.kill_broker(leader)
        self.wait_unlisted(leader)
        self.wait(lambda: self.leader("trio") not in (None, leader), "another leader serves")
        self.cluster.start_broker(leader)
        self.wait_whole()

    def lose_records(self) -> None:
        leader = self.leader("pair") or 1
        follower = 3 - leader
        self.cluster.kill_broker(follower)
        self.wait(
            lambda: self.cluster.all_partitions("pair", lambda p: p.isr_nodes == [leader]),
            "the leader is alone",
        )
        # Kafka 2.8 moves the high watermark only with the next request (KAFKA-13091), and the
        # producer waits for the ones before.
        alone_at = time.time()
        self.wait(
            lambda: any(
                record.topic == "pair" and record.acked_at > alone_at
                for record in self.load.acknowledged()[-100:]
            ),
            "the leader acknowledges records alone",
        )
        time.sleep(self.seconds)
        killed_at = time.time()
        self.cluster.kill_broker(leader)
        self.wait(lambda: self.leader("pair") is None, "no leader is named")
        unnamed_at = time.time()
        self.wait_unlisted(follower)
        self.wait(
            lambda: newest_pass(self.run.events) > unnamed_at + OFFLINE_SECONDS,
            "KafkaOffline has its passes",
        )
        self.run.leaderless, self.run.elected = (killed_at, time.time()), follower
        self.cluster.start_broker(follower)
        self.wait(lambda: self.leader("pair") == follower, "the follower leads")
        time.sleep(self.seconds)

    def restore(self) -> None:
        self.cluster.start_broker(3 - self.run.elected)
        self.wait_whole()

    def rest(self, *, stop: bool = False) -> None:
        """Notes what is on disk while nothing is written; `stop`: once the brokers stopped."""
        for topic in self.run.topics:
            self.load.pause(topic)
        # What was sent before is written.
        time.sleep(0.5)
        self.wait(self.is_settled, "every log and checkpoint ends at the high watermark")
        settled_at = time.time()
        self.wait(
            lambda: newest_pass(self.run.events) > settled_at, "the collector makes another pass"
        )
        at = time.time()
        if stop:
            self.read_back()
            for broker in reversed(BROKERS):
                self.cluster.stop_broker(broker)
        self.run.quiet.append((at, self.on_disk()))
        for topic in self.run.topics:
            self.load.resume(topic)

    def on_disk(self) -> dict[tuple[int, Place], ReplicaOnDisk]:
        return {
            (broker, place): replica
            for broker in BROKERS
            for place, replica in read_replicas(
                self.cluster.log_directory(broker), self.run.places
            ).items()
        }

    def is_settled(self) -> bool:
        found = self.on_disk()
        ends = {place: set[int | None]() for place in self.run.places}
        for (_, place), replica in found.items():
            ends[place].update(replica)
        return all(len(both) == 1 for both in ends.values())

    def read_back(self) -> None:
        self.run.stored = read_partitions(self.cluster.bootstrap_servers, self.run.places)


def run_schedule(version: str, folder: Path, *, short: bool) -> Run:
    """Runs it in `folder`. Raises ClusterError where the brokers do not do what is waited for."""
    with ExitStack() as stack:
        session = dict.fromkeys(SESSIONS, str(SHORT_SESSION_MS if short else SESSION_MS))
        cluster = stack.enter_context(
            LocalCluster(folder / "kafka", {**OVERRIDES, **session}, version=version)
        )
        places = PAIR_PLACES if short else TRIO_PLACES + PAIR_PLACES
        if not short:
            cluster.create_topic("trio", TRIO, {"min.insync.replicas": "2"})
        options = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
        cluster.create_topic("pair", PAIR, options)
        collector = Collector(cluster, folder)
        stack.callback(collector.stop)
        collector.start()
        run = Run(version, collector.events, places, _apis(cluster.address(1)))
        load = stack.enter_context(
            LoadProducer(
                cluster.bootstrap_servers, places, folder / "acked.jsonl", RECORDS_PER_SECOND, 60
            )
        )
        collector.wait_events()
        seconds = SHORT_SECONDS if short else SEEN_SECONDS
        schedule = _Schedule(cluster, load, run, seconds)
        time.sleep(seconds)
        schedule.rest()
        if not short:
            run.verbs = run_verbs(cluster.bootstrap_servers, run.topics)
            schedule.pause_follower()
            schedule.restart_in_order()
            schedule.kill_leader()
            schedule.rest()
        schedule.lose_records()
        if short:
            schedule.read_back()
        else:
            schedule.restore()
            schedule.rest(stop=True)
        collector.stop()
        load.stop(1.0)
        run.acknowledged = load.acknowledged()
    return run


def _apis(address: tuple[str, int]) -> dict[int, int]:
    with BrokerSocket(address, 5.0) as broker:
        return dict(broker.versions)


def newest_pass(events: Path) -> float:
    """When the newest pass in a recording started; 0 before the first one."""
    with events.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 65_536))
        lines = file.read().split(b"\n")[:-1]
    found = [
        event.started_at
        for line in lines[1:]
        for event in decode_batch(line).events
        if isinstance(event, Pass)
    ]
    return max(found, default=0.0)

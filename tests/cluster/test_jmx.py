"""What JMX shows of real brokers while a follower is paused: one schedule of three minutes.

Broker 1 leads a topic to which more and more producers write, while follower 3 is paused and
remains in the in-sync set for 90 s or longer. Broker 2 leads a topic on which 40 consumers wait.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record.memory_records import MemoryRecordsBuilder

from tests.jmx_agent import jmx_agent, jmx_endpoints
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.sources.jmx.source import JmxSource
from tidemark.core.codec import decode_batch
from tidemark.core.jmx import NodeJmx
from tidemark.core.records import Alert, decode_record
from tidemark.detect.default_thresholds import Detection, Thresholds
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.settings import Cluster, Collect, JmxEndpoint
from tidemark_lab.brokers.broker_socket import BrokerSocket
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

OVERRIDES = {"replica.lag.time.max.ms": "90000", "broker.session.timeout.ms": "240000"}
CONSUMERS = 40
WAIT_MS = 10_000


@dataclass
class Watch:
    """A collector with JMX endpoints, and the reducer behind it."""

    passes: PassRunner
    fold: Fold
    alerts: list[Alert] = field(default_factory=list)
    # (broker, whether its endpoint was read)
    notes: list[tuple[int, bool]] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        async def work() -> None:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                for record in await self.passes.run(set()):
                    self.fold.batch(decode_batch(record.payload))
                values = [row.value for row in self.fold.rows if row.destination == "alerts"]
                self.fold.rows.clear()
                records = [decode_record(value) for value in values if value is not None]
                self.alerts += [record for record in records if isinstance(record, Alert)]
                await self.passes.loop.sleep(0.5)

        self.passes.loop.run(work)

    def named(self, name: str, state: str = "firing") -> list[Alert]:
        return [a for a in self.alerts if (a.labels["alertname"], a.state) == (name, state)]

    def jmx(self, node: int) -> NodeJmx:
        known = self.fold.state.clusters["c"].nodes[node].jmx
        assert known is not None
        return known


@pytest.fixture
def endpoints() -> list[JmxEndpoint]:
    return jmx_endpoints()


@pytest.fixture
def brokers(endpoints: list[JmxEndpoint]) -> Iterator[LocalCluster]:
    flags = {each.broker: [jmx_agent(each.url)] for each in endpoints}
    with LocalCluster(overrides=OVERRIDES, jvm_flags=flags) as cluster:
        cluster.create_topic("written", {0: [1, 2, 3]}, {"min.insync.replicas": "1"})
        cluster.create_topic("idle", {0: [2, 1]})
        unclean = {"unclean.leader.election.enable": "true"}
        cluster.create_topic("unclean", {0: [1, 3]}, unclean)
        yield cluster


@pytest.fixture
def watch(brokers: LocalCluster, endpoints: list[JmxEndpoint]) -> Iterator[Watch]:
    cluster = Cluster(name="c", bootstrap_servers=brokers.bootstrap_servers, jmx=endpoints)
    settings = Collect(collector="k")
    notes: list[tuple[int, bool]] = []
    source = JmxSource(cluster, settings, lambda broker, ok: notes.append((broker, ok)))
    passes = PassRunner(cluster, settings, 1, 1, [source])
    fold = Fold(GroupState(), Detection(thresholds=Thresholds(purgatory_operations=30)), 0, 1)
    yield Watch(passes, fold, notes=notes)
    passes.close()


def write(address: tuple[str, int], topic: str) -> None:
    """One record with acks=all, on a connection of its own: a broker reads no request behind one
    that waits.
    """
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=4096)
    builder.append(timestamp=None, key=None, value=b"x", headers=[])
    builder.close()
    data = ProduceRequest.TopicProduceData
    partition = data.PartitionProduceData(index=0, records=builder.buffer())
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=200_000,
        topic_data=[data(name=topic, partition_data=[partition])],
    )
    with contextlib.suppress(OSError), BrokerSocket(address, 200.0) as broker:
        broker.send(request, ProduceResponse, 9)


def wait_for_records(address: tuple[str, int], stopped: threading.Event) -> None:
    """Long polls of a consumer at the end of a log that does not grow."""
    topic = FetchRequest.FetchTopic
    partition = topic.FetchPartition(
        partition=0, fetch_offset=0, current_leader_epoch=-1, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[topic(topic="idle", partitions=[partition])],
    )
    with contextlib.suppress(OSError), BrokerSocket(address, 60.0) as broker:
        while not stopped.is_set():
            broker.send(request, FetchResponse, 11)


def test_a_paused_follower_by_jmx_and_by_samples(brokers: LocalCluster, watch: Watch) -> None:
    stopped = threading.Event()

    def spawn(work: object, *given: object) -> None:
        threading.Thread(target=work, args=given, daemon=True).start()  # type: ignore[arg-type]

    for _ in range(CONSUMERS):
        spawn(wait_for_records, brokers.address(2), stopped)
    write(brokers.address(1), "unclean")
    watch.run(12.0)

    brokers.pause_broker(3)
    write_until = time.monotonic() + 84.0

    def keep_writing() -> None:
        while time.monotonic() < write_until:
            spawn(write, brokers.address(1), "written")
            time.sleep(0.7)

    spawn(keep_writing)
    spawn(write, brokers.address(1), "unclean")
    watch.run(84.0)
    (growing,) = watch.named("KafkaPurgatoryGrowing")
    assert (growing.labels["broker"], growing.evidence["growing"]) == ("1", ["produce"])
    assert [ok for broker, ok in watch.notes if broker == 3][-1] is False
    waiting = watch.fold.state.clusters["c"].nodes[2].purgatories
    assert all(s.fetch is not None and s.fetch >= CONSUMERS // 2 for s in waiting[2:])

    # The leader, which looks every 45 s, removes broker 3 from the in-sync sets of both topics.
    wait_until(
        lambda: watch.jmx(1).figures.under_replicated_partitions == 2,
        75.0,
        "broker 3 is out of both in-sync sets",
        check=lambda: watch.run(5.0),
    )
    watch.run(15.0)
    assert len(watch.named("KafkaPurgatoryGrowing", "resolved")) == 1
    assert watch.jmx(1).produce_purgatory == 0
    comparison = watch.jmx(1).comparison
    assert comparison is not None
    assert (comparison.sampled, comparison.of_absent) == (2, 2)
    # Kafka ignores the response of AlterPartition, and does not count the shrink, where the leader
    # has read the change from the metadata log before.
    assert comparison.by_jmx == watch.jmx(1).figures.isr_shrinks
    assert comparison.by_jmx <= 2
    assert not comparison.differs

    # Broker 3 leads `unclean` without the records that only broker 1 has.
    stopped.set()
    brokers.stop_broker(1)
    brokers.resume_broker(3)
    watch.run(30.0)
    controller = watch.jmx(CONTROLLER)
    assert controller.unclean_leader_elections is not None
    unclean = {a.labels["topic"] for a in watch.named("KafkaUncleanElection")}
    assert unclean == {"unclean"}
    assert controller.unclean_leader_elections.total == 1

"""`tidemark salvage` after real losses: every acknowledged lost record is back, byte for byte."""

from __future__ import annotations

import base64
import json
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cluster.producing import connection, producer_of
from tests.verbs.run import tidemark
from tidemark.core.codec import encode_batch
from tidemark.core.errors import ClusterError
from tidemark.core.records import Alert
from tidemark.detect.default_thresholds import Detection
from tidemark.kafka.client import make_consumer
from tidemark.observations.alerts import alerts_of_file
from tidemark.observations.few_passes import few_passes
from tidemark.settings import Cluster, Collect
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = (*(f"kind-{codec}" for codec in CODECS), "transactions")
COPIED, LOST = 60, 300
SECONDS = 60.0
UNCLEAN = 1


class Written(NamedTuple):
    """An acknowledged record."""

    key: bytes
    value: bytes
    timestamp_ms: int
    headers: tuple[tuple[str, bytes], ...]


def until(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, SECONDS, what)


class Truth:
    """What producers wrote: topic -> offset -> record; aborted ones apart."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, dict[int, Written]] = {topic: {} for topic in TOPICS}
        self.aborted: dict[str, dict[int, Written]] = {topic: {} for topic in TOPICS}
        self._chance = random.Random(17)

    def write(self, cluster: LocalCluster, topic: str, count: int) -> None:
        with producer_of(cluster, linger_ms=20) as producer:
            sent = [self._send(producer, topic) for _ in range(count)]
            self._wait(sent, self.acknowledged[topic])

    def transact(self, cluster: LocalCluster, topic: str, count: int) -> None:
        with producer_of(cluster, transactional_id="salvage", linger_ms=5) as producer:
            producer.init_transactions()
            for number in range(count // 10):
                producer.begin_transaction()
                sent = [self._send(producer, topic) for _ in range(10)]
                if number % 3:
                    producer.commit_transaction()
                else:
                    producer.flush(SECONDS)
                    producer.abort_transaction()
                self._wait(sent, (self.acknowledged if number % 3 else self.aborted)[topic])

    def _send(self, producer: Any, topic: str) -> tuple[Any, Written]:
        size = self._chance.choice((0, 3, 200, 5_000))
        words = (b"tide", b"mark", self._chance.randbytes(7))
        value = b" ".join(self._chance.choice(words) for _ in range(size // 5))
        headers = (("trace", self._chance.randbytes(4)),) * self._chance.randrange(3)
        record = Written(
            b"key-%d" % self._chance.randrange(99), value, int(time.time() * 1000), headers
        )
        future = producer.send(
            topic,
            key=record.key,
            value=record.value,
            headers=list(headers),
            timestamp_ms=record.timestamp_ms,
            partition=0,
        )
        return future, record

    def _wait(self, sent: list[tuple[Any, Written]], into: dict[int, Written]) -> None:
        for future, record in sent:
            into[future.get(timeout=SECONDS).offset] = record


class Watch:
    """Records what passes see, as `tidemark collect` would, into a file."""

    def __init__(self, cluster: LocalCluster, path: Path) -> None:
        self._stop = threading.Event()
        self._cluster, self._path = cluster, path
        self.passes = 0
        self.errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        watched = Cluster(name="main", bootstrap_servers=self._cluster.bootstrap_servers)
        try:
            with self._path.open("wb") as file:
                for finished in few_passes(watched, Collect(), list(TOPICS)):
                    for batch in finished.batches:
                        file.write(encode_batch(batch) + b"\n")
                    file.flush()
                    self.passes += 1
                    if self._stop.is_set():
                        return
        except BaseException as error:
            self.errors.append(error)

    def two_passes(self) -> None:
        before = self.passes
        until(lambda: bool(self.errors) or self.passes >= before + 3, "no pass ended")
        assert self.errors == []

    def close(self) -> None:
        self._stop.set()
        self._thread.join(SECONDS)
        assert self.errors == []


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    overrides = {
        "broker.session.timeout.ms": "4000",
        "replica.lag.time.max.ms": "60000",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "offsets.topic.num.partitions": "1",
    }
    with LocalCluster(overrides=overrides) as brokers:
        for topic in TOPICS:
            codec = topic.removeprefix("kind-") if topic.startswith("kind-") else "producer"
            codec = {"none": "uncompressed"}.get(codec, codec)
            configs = {"min.insync.replicas": "1", "compression.type": codec}
            brokers.create_topic(topic, {0: [1, 2]}, configs)
        brokers.create_topic("recovered", {0: [3], 1: [3]}, {"max.message.bytes": "10000000"})
        yield brokers


def in_sync(cluster: LocalCluster, broker: int) -> bool:
    return all(
        cluster.all_partitions(topic, lambda found: found.isr_nodes == [broker]) for topic in TOPICS
    )


def lose(cluster: LocalCluster, truth: Truth, watch: Watch, saved: Path) -> None:
    """Records that only broker 1 has are committed; it dies, and broker 2 is elected uncleanly."""

    def write(count: int) -> None:
        for topic in TOPICS:
            if topic == "transactions":
                truth.transact(cluster, topic, count)
            else:
                truth.write(cluster, topic, count)

    write(COPIED)
    watch.two_passes()
    cluster.kill_broker(2)
    until(lambda: in_sync(cluster, 1), "broker 2 stays in sync")
    write(LOST)
    watch.two_passes()
    cluster.kill_broker(1)
    shutil.copytree(cluster.log_directory(1), saved)
    cluster.start_broker(2)
    until(lambda: cluster.is_ready(2), "broker 2 is not ready")

    def elect() -> bool:
        places = {topic: [0] for topic in TOPICS}
        try:
            cluster.administer(
                lambda admin: admin.elect_leaders(UNCLEAN, places, raise_errors=False),
                "elect uncleanly",
            )
        except ClusterError:
            # The metadata still names the dead broker.
            return False
        return all(
            cluster.all_partitions(topic, lambda found: found.leader_id == 2) for topic in TOPICS
        )

    until(elect, "broker 2 does not lead")
    for topic in TOPICS:
        with producer_of(cluster) as producer:
            producer.send(topic, b"after the loss", partition=0).get(timeout=SECONDS)


def data(record: dict[str, Any], name: str) -> bytes:
    return base64.b64decode(record[name])


def test_every_acknowledged_lost_record_is_back(cluster: LocalCluster, tmp_path: Path) -> None:
    truth, events, saved = Truth(), tmp_path / "events.jsonl", tmp_path / "saved"
    watch = Watch(cluster, events)
    lose(cluster, truth, watch, saved)

    def lost_topics() -> set[str]:
        alerts: Iterator[Alert] = alerts_of_file(str(events), Detection(), "salvage")
        return {
            a.labels["topic"] for a in alerts if a.labels["alertname"] == "KafkaCommittedDataLoss"
        }

    until(lambda: lost_topics() == set(TOPICS), "not every loss is proven")
    watch.close()

    out = tidemark("salvage", str(saved), "--alerts", str(events), "--format", "jsonl").out
    found: dict[str, dict[int, dict[str, Any]]] = {topic: {} for topic in TOPICS}
    for line in out.splitlines():
        record = json.loads(line)
        found[record["topic"]][record["offset"]] = record
    for topic in TOPICS:
        first = min(found[topic])
        wanted = {o: r for o, r in truth.acknowledged[topic].items() if o >= first}
        others = {o: r for o, r in truth.aborted[topic].items() if o >= first}
        back = {
            offset: Written(
                data(r, "key"),
                data(r, "value"),
                r["timestamp_ms"],
                tuple((name, base64.b64decode(text)) for name, text, _ in r["headers"]),
            )
            for offset, r in found[topic].items()
        }
        print(
            f"{topic}: {len(wanted)} acknowledged from {first} on, {len(others)} aborted, all back"
        )
        # The follower had everything up to its death, so the loss begins where it ended.
        assert first >= COPIED
        assert len(wanted) >= LOST // 2
        assert back == wanted | others
        states = {o: r["transaction"] for o, r in found[topic].items()}
        assert {o for o, state in states.items() if state == "aborted"} == others.keys()
        assert set(states.values()) <= (
            {None} if topic != "transactions" else {"committed", "aborted"}
        )

    send(cluster, saved, events, truth, found)


def send(
    cluster: LocalCluster,
    saved: Path,
    events: Path,
    truth: Truth,
    found: dict[str, dict[int, dict[str, Any]]],
) -> None:
    """To another topic: nothing without --execute, then every record with its origin."""
    arguments = (
        *("salvage", str(saved), "--alerts", str(events), "--produce-to", "recovered"),
        *("--bootstrap", ",".join(cluster.bootstrap_servers)),
    )
    wanted = {
        (topic, offset)
        for topic in TOPICS
        for offset in found[topic]
        if offset in truth.acknowledged[topic]
    }
    assert "Nothing was sent." in tidemark(*arguments).out
    assert received(cluster, 0) == []
    out = tidemark(*arguments, "--execute").out
    assert f"{len(wanted)} records sent to recovered and acknowledged" in out
    origin = "tidemark.origin."
    back = {}
    for record in received(cluster, len(wanted)):
        headers = dict(record.headers)
        topic, offset = headers[f"{origin}topic"].decode(), int(headers[f"{origin}offset"])
        own = tuple((k, v) for k, v in record.headers if not k.startswith(origin))
        back[topic, offset] = Written(record.key, record.value, record.timestamp, own)
    assert back == {place: truth.acknowledged[place[0]][place[1]] for place in wanted}
    # The original topic is refused; one without that partition, too.
    refused = tidemark(*arguments[:5], "kind-gzip", *arguments[6:], "--execute", code=2)
    assert "add --to-original" in refused.err
    print(out)


def received(cluster: LocalCluster, count: int) -> list[Any]:
    consumer = make_consumer(connection(cluster), "recovered", auto_offset_reset="earliest")
    found: list[Any] = []
    deadline = time.monotonic() + (SECONDS if count else 3)
    while (not count or len(found) < count) and time.monotonic() < deadline:
        found += [each for many in consumer.poll(timeout_ms=500).values() for each in many]
    consumer.close()
    return found

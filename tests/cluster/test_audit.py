"""`tidemark audit` against real brokers: silent under load, and no planted difference is missed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from tests.cluster.producing import connection, producer_of
from tests.cluster.verification_tool import unmatched_partitions
from tests.verbs.audit.plant import change_batch, change_byte
from tests.verbs.run import tidemark
from tidemark.kafka.client import make_admin
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

KINDS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = [
    *(f"kind-{kind}" for kind in KINDS),
    "alone",
    "transactions",
    "cleaned",
    "deleted",
    "twin",
]
SMALL = {"segment.bytes": "1048576", "min.insync.replicas": "1"}


@pytest.fixture(scope="module")
def brokers() -> Iterator[LocalCluster]:
    overrides = {
        "log.cleaner.backoff.ms": "500",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "1",
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "1000",
    }
    # Cleaners that run at other times: the copies of a compacted log differ.
    cleaners = {2: {"log.cleaner.backoff.ms": "7000"}, 3: {"log.cleaner.backoff.ms": "60000"}}
    with LocalCluster(overrides=overrides, broker_overrides=cleaners) as cluster:
        for kind in KINDS:
            compression = "uncompressed" if kind == "none" else kind
            configs = {**SMALL, "compression.type": compression}
            cluster.create_topic(f"kind-{kind}", {0: [1, 2, 3], 1: [2, 3, 1]}, configs)
        cluster.create_topic("alone", {0: [1, 2, 3], 1: [3, 1, 2]}, SMALL)
        cluster.create_topic("transactions", {0: [1, 2, 3]}, SMALL)
        cleaning = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": "1000",
            "segment.ms": "1500",
            "delete.retention.ms": "500",
        }
        cluster.create_topic("cleaned", {0: [1, 2, 3]}, {**SMALL, **cleaning})
        cluster.create_topic("deleted", {0: [2, 3, 1]}, SMALL)
        cluster.create_topic("twin", {0: [1, 2, 3], 1: [1, 2, 3]}, SMALL)
        yield cluster


class Load:
    """Writes to every topic until it is closed: acks=all, acks=1 and transactions; deletes."""

    def __init__(self, brokers: LocalCluster) -> None:
        self._stop = threading.Event()
        self._brokers = brokers
        self.errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(work,), daemon=True)
            for work in (self._plain, self._transactions, self._delete)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)

    def _plain(self) -> None:
        number = 0
        with (
            producer_of(self._brokers, linger_ms=5) as strong,
            producer_of(self._brokers, acks=1, linger_ms=5, enable_idempotence=False) as weak,
        ):
            while not self._stop.wait(0.01):
                for _ in range(20):
                    number += 1
                    value = b"record %d " % number * 10
                    for kind in KINDS:
                        strong.send(f"kind-{kind}", value, partition=number % 2)
                    weak.send("alone", value, partition=number % 2)
                    strong.send("cleaned", value, key=b"%d" % (number % 50), partition=0)
                    strong.send("deleted", value, partition=0)

    def _transactions(self) -> None:
        number = 0
        with producer_of(self._brokers, transactional_id="audit", linger_ms=1) as producer:
            producer.init_transactions()
            while not self._stop.wait(0.05):
                number += 1
                producer.begin_transaction()
                for _ in range(5):
                    producer.send("transactions", b"transaction %d" % number, partition=0)
                if number % 3:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()

    def _delete(self) -> None:
        admin = make_admin(connection(self._brokers))
        place, offset = TopicPartition("deleted", 0), 0
        while not self._stop.wait(0.3):
            offset += 40
            try:
                admin.delete_records({place: offset})
            except Exception:
                offset -= 40
        admin.close()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


@contextmanager
def load(brokers: LocalCluster, *, may_fail: bool = False) -> Iterator[None]:
    """`may_fail`: a producer may give up while its broker is down."""
    work = Load(brokers)
    try:
        yield
    finally:
        work.close()
    assert may_fail or work.errors == []


def run(brokers: LocalCluster, *arguments: str, code: int = 0) -> dict[str, Any]:
    servers = ("--bootstrap", ",".join(brokers.bootstrap_servers))
    options = ("--json", "--rate-limit", "0", *arguments, *servers)
    found: dict[str, Any] = json.loads(tidemark("audit", *TOPICS, *options, code=code).out)
    return found


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{p['topic']}-{p['partition']}": p for p in found["partitions"]}


def test_a_healthy_cluster_under_load_has_no_difference(brokers: LocalCluster) -> None:
    with load(brokers):
        time.sleep(12)
        absent = 0
        for arguments in (["--whole"], ["--sample", "20"], ["--whole"]):
            found = run(brokers, *arguments)
            assert found["differences"] == 0, found
            for name, partition in by_name(found).items():
                assert not partition["not_compared"], (name, partition)
                assert partition["changed"] == 0, (name, partition)
            absent += by_name(found)["cleaned-0"]["absent_records"]
            offsets = sum(p["compared_offsets"] for p in found["partitions"])
            print(f"{arguments}: {offsets} offsets, {absent} absent after cleaning")
            assert offsets > 10_000
            time.sleep(3)
        assert absent > 0
        assert by_name(found)["deleted-0"]["start_offset"] > 0


def test_elections_and_truncations_are_no_difference(brokers: LocalCluster) -> None:
    with load(brokers, may_fail=True):
        time.sleep(3)
        for broker in (1, 3):
            threading.Timer(0.3, brokers.kill_broker, [broker]).start()
            for number in range(6):
                if number == 3:
                    brokers.start_broker(broker)
                found = run(brokers, "--whole" if number % 2 else "--sample=20")
                assert found["differences"] == 0, found
            wait_until(lambda: brokers.is_whole(TOPICS), 60.0, "every replica is in sync")


def segments(brokers: LocalCluster, broker: int, name: str) -> list[Path]:
    return sorted((brokers.directory / f"data-{broker}" / name).glob("*.log"))


def test_each_planted_difference_is_found_as_kafkas_own_tool_does(
    brokers: LocalCluster, tmp_path: Path
) -> None:
    with load(brokers):
        time.sleep(2)
    with producer_of(brokers, linger_ms=0) as producer:
        for number in range(30):
            for partition in (0, 1):
                producer.send("twin", b"twin %d of %d" % (number, partition), partition=partition)
            producer.flush(10)
    brokers.elect_preferred_leaders({"alone": [0, 1], "twin": [0, 1]})
    wait_until(lambda: brokers.is_whole(TOPICS), 60.0, "every replica is in sync")
    # The followers learn the last high watermark.
    time.sleep(2)
    others = "kind-.*|alone|transactions|deleted|twin"
    run(brokers, "--whole")
    assert unmatched_partitions(brokers.bootstrap_servers, others, 60, tmp_path) == {}

    planted: dict[str, list[int]] = {}

    def plant(name: str, broker: int, number: int) -> None:
        path = segments(brokers, broker, name)[-1]
        planted.setdefault(name, []).append(change_batch(path, number).base_offset)

    for index, kind in enumerate(KINDS):
        plant(f"kind-{kind}-0", 1 + index % 3, 3)
        plant(f"kind-{kind}-1", 2, 5)
    for number in (0, 4, 9):
        plant("alone-1", 1, number)
    plant("transactions-0", 3, 2)
    plant("transactions-0", 2, 7)
    plant("deleted-0", 1, 1)
    # A log with the records of another partition, from offset 0 on.
    (source,), (target,) = segments(brokers, 3, "twin-0"), segments(brokers, 3, "twin-1")
    brokers.stop_broker(3)
    target.write_bytes(source.read_bytes())
    brokers.start_broker(3)
    planted["twin-1"] = [0]
    wait_until(lambda: brokers.is_whole(TOPICS), 60.0, "every replica is in sync")
    time.sleep(2)
    seen = set(unmatched_partitions(brokers.bootstrap_servers, others, 60, tmp_path))
    assert seen == set(planted)

    # Those that its comparison of checksums or its topics leave out.
    path = segments(brokers, 2, "cleaned-0")[-1]
    planted["cleaned-0"] = [change_batch(path, 0).base_offset]
    path = segments(brokers, 3, "alone-0")[-1]
    planted["alone-0"] = [
        change_byte(path, 2, -2).base_offset,
        change_byte(path, 6, 15).base_offset,
    ]
    assert sum(map(len, planted.values())) == 20

    found = run(brokers, "--whole", code=3)
    results = {
        name: [
            min(batch["base_offset"] for batch in finding["batches"]) for finding in p["findings"]
        ]
        for name, p in by_name(found).items()
        if p["findings"]
    }
    assert results.pop("twin-1")[0] == planted.pop("twin-1")[0]
    assert results == {name: sorted(offsets) for name, offsets in planted.items()}
    findings = {n: p["findings"] for n, p in by_name(found).items()}
    damaged = [f for f in findings["alone-0"] if any(b["damaged"] for b in f["batches"])]
    assert len(damaged) == 1

    # The same folders, offline.
    for broker in (1, 2, 3):
        brokers.stop_broker(broker)
    flags = [
        part for b in (1, 2, 3) for part in ("--log-dirs", str(brokers.directory / f"data-{b}"))
    ]
    offline = by_name(
        json.loads(tidemark("audit", *TOPICS, "--whole", "--json", *flags, code=3).out)
    )
    assert {n: len(p["findings"]) for n, p in offline.items()} == {
        n: len(f) for n, f in findings.items()
    }

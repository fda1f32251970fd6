"""Groups with known reads, an unclean election, and what is said about each.

The truth is what each consumer got before the election, and what it gets when it goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.cluster.producing import producer_of
from tests.verbs.inspect.test_losses import alert
from tests.verbs.run import tidemark
from tidemark.core.records import encode_record
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PLACE: Final = TopicPartition("orders", 0)
SAFE, LOST, AGAIN = 20, 10, 6
# Group -> how many records it reads before the election, and whether it commits their epoch.
READS: Final = {"all": (30, True), "inside": (25, True), "old": (28, False), "behind": (15, True)}
UNCLEAN: Final = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}


@contextmanager
def reader(brokers: LocalCluster, group: str) -> Iterator[Any]:
    consumer = KafkaConsumer(
        bootstrap_servers=brokers.bootstrap_servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    with closing(consumer):
        consumer.assign([PLACE])
        yield consumer


def read(consumer: Any, most: int, timeout_ms: int = 10_000) -> list[Any]:
    found: list[Any] = []
    while len(found) < most:
        polled = consumer.poll(timeout_ms, max_records=most - len(found)).get(PLACE, [])
        if not polled:
            break
        found += polled
    return found


def produce(brokers: LocalCluster, values: list[str]) -> None:
    with producer_of(brokers, acks="all") as producer:
        for value in values:
            producer.send(PLACE.topic, value=value.encode(), partition=0).get(30)


def leader(brokers: LocalCluster) -> tuple[int, int]:
    partition = brokers.partitions([PLACE.topic])[PLACE.topic, 0]
    return partition.leader_id, partition.leader_epoch


def test_what_is_said_of_each_group_is_what_it_read(tmp_path: Path) -> None:
    with LocalCluster() as brokers:
        brokers.create_topic(PLACE.topic, {0: [1, 2]}, UNCLEAN)
        produce(brokers, [f"safe {n}" for n in range(SAFE)])
        brokers.stop_broker(2)
        produce(brokers, [f"lost {n}" for n in range(LOST)])
        epoch_before = leader(brokers)[1]
        got = {}
        for group, (count, with_epoch) in READS.items():
            with reader(brokers, group) as consumer:
                records = read(consumer, count)
                epoch = records[-1].leader_epoch if with_epoch else -1
                consumer.commit({PLACE: OffsetAndMetadata(records[-1].offset + 1, "", epoch)})
                got[group] = {record.value.decode() for record in records}
        brokers.kill_broker(1)
        brokers.start_broker(2)
        wait_until(lambda: leader(brokers)[0] == 2, 60, "broker 2 leads, uncleanly")
        produce(brokers, [f"new {n}" for n in range(AGAIN)])
        range_of = [SAFE, SAFE + LOST]
        evidence = {
            "proven": range_of,
            "leader_epoch_before": epoch_before,
            "leader_epoch_after": leader(brokers)[1],
        }
        path = tmp_path / "alerts.jsonl"
        path.write_bytes(encode_record(alert(topic=PLACE.topic, partition="0", evidence=evidence)))
        flags = ("--from", str(path), "--bootstrap", ",".join(brokers.bootstrap_servers))
        shown = tidemark("inspect", "--losses", "--groups", "--json", *flags, code=3).out
        said = {each["group"]: each for each in json.loads(shown)["groups"]}
        assert said.keys() == READS.keys()
        for group, (count, with_epoch) in READS.items():
            read_lost = {f"lost {n}" for n in range(LOST)} & got[group]
            standing = said[group]["standing"]
            assert standing == (
                "before" if not read_lost else "read" if with_epoch else "may_have_read"
            )
            covered = f"[{SAFE}, {min(count, SAFE + LOST)})"
            assert (covered in said[group]["text"]) == bool(read_lost)
            assert len(read_lost) == max(0, count - SAFE)
        # The log ends at 26, so only this one goes on within it, and skips what is new below it.
        with reader(brokers, "inside") as consumer:
            values = {record.value.decode() for record in read(consumer, 9, 5_000)}
        assert f"may skip the new records [{SAFE}, 25)" in said["inside"]["text"]
        assert {f"new {n}" for n in range(AGAIN)} - values in (
            set(),
            {f"new {n}" for n in range(25 - SAFE)},
        )
        assert f"the log ends at {SAFE + AGAIN}" in said["all"]["text"]

"""The operator's verbs against real brokers: one cluster, one pause."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.cluster.producing import connection, producer_of
from tests.verbs.audit.plant import change_batch
from tests.verbs.inspect.test_losses import alert
from tests.verbs.recordings import trace
from tests.verbs.run import tidemark
from tidemark.assess.risky_configuration import MEANINGS
from tidemark.core.codec import decode_batch
from tidemark.core.events import Ack, Audit
from tidemark.core.identity import group_of
from tidemark.core.records import encode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.detect.internal_topics import coordinating_partition
from tidemark.kafka.client import make_admin, make_consumer
from tidemark.kafka.topic_reader import TopicReader, values
from tidemark.kafka.topics import ensure_topics
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark.settings import Topics
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

TOPICS = Topics()


@pytest.fixture(scope="module")
def brokers() -> Iterator[LocalCluster]:
    overrides = {
        "replica.lag.time.max.ms": "60000",
        "broker.session.timeout.ms": "9000",
        "offsets.topic.num.partitions": "3",
    }
    with LocalCluster(overrides=overrides) as cluster:
        cluster.create_topic("wide", {0: [1, 2, 3], 1: [2, 3, 1]}, {"min.insync.replicas": "2"})
        cluster.create_topic("pair", {0: [1, 2]}, {"min.insync.replicas": "1"})
        cluster.create_topic("lone", {0: [3]})
        ensure_topics(connection(cluster), TOPICS)
        yield cluster


def run(brokers: LocalCluster, *arguments: str, code: int = 0) -> str:
    """What the verb prints."""
    return tidemark(*arguments, "--bootstrap", ",".join(brokers.bootstrap_servers), code=code).out


def impacts(brokers: LocalCluster, broker: int) -> dict[str, str]:
    answer = json.loads(run(brokers, "safe-to-stop", str(broker), "--json", code=3))
    assert not answer["safe"]
    assert answer["partitions"] >= 4 + TOPICS.partitions
    return {
        f"{impact['topic']}-{impact['partition']}": impact["effect"] for impact in answer["impacts"]
    }


def test_what_stopping_each_broker_takes_away(brokers: LocalCluster) -> None:
    assert impacts(brokers, 1) == {"pair-0": "last_copy"}
    assert impacts(brokers, 3) == {"lone-0": "offline"}


def test_check_config_lists_risky_configuration(brokers: LocalCluster, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    kafka = f"bootstrap_servers: {json.dumps(brokers.bootstrap_servers)}"
    path.write_text(
        f"kafka: {{{kafka}}}\nclusters: [{{name: c, topics_allow: [wide, pair, lone], {kafka}}}]"
    )
    lines = tidemark("check-config", "--config", str(path), "--reach").out.splitlines()
    assert "ok: cluster c answers" in lines
    assert not [line for line in lines if line.startswith("  refused: ")]
    # After them: Tidemark's own topics, which nobody watches here.
    assert lines[-3:-1] == [
        f"  One replica: 1 partition (lone-0): {MEANINGS['single_replica'].text}",
        f"  Min ISR 1: 1 partition (pair-0): {MEANINGS['min_isr_1'].text}",
    ]


def test_losses_and_their_acknowledgement(brokers: LocalCluster) -> None:
    loss = alert()
    none = "no committed record is known to be lost.\n"
    assert run(brokers, "inspect", "--losses") == none
    with producer_of(brokers, enable_idempotence=False) as producer:
        for _ in range(2):
            producer.send(TOPICS.alerts, value=encode_record(loss))
    out = run(brokers, "inspect", "--losses", "--csv", code=3)
    assert out.splitlines()[1][:22] == "main,orders,3,5,12,197"
    out = run(brokers, "ack", loss.fingerprint, "--by", "ada", "--wait", "0.5")
    assert out.startswith(
        f"sent: KafkaCommittedDataLoss main/orders-3 ({loss.fingerprint}), by ada."
    )
    with TopicReader(connection(brokers), TOPICS.replica_state) as log:
        events = [decode_batch(record).events for record in values(log.read_to_end())]
    assert len(events) == TOPICS.partitions
    assert all(
        isinstance(event, Ack) and event.fingerprint == loss.fingerprint for (event,) in events
    )


def test_an_audit_finds_the_changed_batch_and_publishes_it(brokers: LocalCluster) -> None:
    with producer_of(brokers, linger_ms=0) as producer:
        for number in range(20):
            producer.send("pair", b"value %d" % number).get(10)
    out = run(brokers, "audit", "pair", "wide:0", "--whole")
    assert out.splitlines()[-1].startswith("no difference in ")
    batch = change_batch(brokers.directory / "data-2" / "pair-0" / f"{0:020}.log", 7)
    out = run(brokers, "audit", "pair", "--sample", "3", "--publish", "--json", code=3)
    (partition,) = json.loads(out)["partitions"]
    (finding,) = partition["findings"]
    assert (finding["offset"], finding["differing_records"]) == (batch.base_offset, 1)
    assert [(b["broker"], b["crc"] == batch.crc) for b in finding["batches"]] == [
        (1, True),
        (2, False),
    ]
    with TopicReader(connection(brokers), TOPICS.replica_state) as log:
        batches = [decode_batch(record) for record in values(log.read_to_end())]
    (event,) = [e for b in batches for e in b.events if isinstance(e, Audit)]
    assert (event.topic, event.brokers, event.offset) == ("pair", [1, 2], batch.base_offset)
    assert event.topic_id is not None


def test_the_groups_that_a_partition_coordinates_are_named(brokers: LocalCluster) -> None:
    consumer = make_consumer(
        connection(brokers), "wide", group_id="orders-service", enable_auto_commit=False
    )
    consumer.poll(timeout_ms=5000)
    consumer.commit({TopicPartition("wide", 0): OffsetAndMetadata(0, "", -1)})
    admin = make_admin(connection(brokers))
    (offsets,) = admin.describe_topics(["__consumer_offsets"])
    admin.close()
    partition = coordinating_partition("orders-service", len(offsets["partitions"]))
    out = run(brokers, "inspect", "__consumer_offsets", str(partition))
    consumer.close(autocommit=False)
    assert "consumer groups coordinated here: orders-service\n" in out
    another = (partition + 1) % len(offsets["partitions"])
    out = run(brokers, "inspect", "__consumer_offsets", str(another))
    assert "consumer groups coordinated here: none now\n" in out


def test_the_transaction_that_holds_the_last_stable_offset_is_named(brokers: LocalCluster) -> None:
    held = r"LSO 0: Producer \d+, epoch 0, holds it, .* Coordinator \d knows it as `held`"
    with producer_of(brokers, transactional_id="held") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("lone", b"open", partition=0).get(30)
        assert re.search(held, run(brokers, "inspect", "lone", "0"))
        producer.abort_transaction()
    wait_until(lambda: "holds" not in run(brokers, "inspect", "lone", "0"), 30.0, "it ends")


def test_a_silent_follower_does_not_count_although_it_is_in_sync(
    brokers: LocalCluster,
) -> None:
    brokers.pause_broker(3)
    try:
        found = impacts(brokers, 2)
    finally:
        brokers.resume_broker(3)
    assert {name: found[name] for name in ("pair-0", "wide-0", "wide-1")} == {
        "pair-0": "last_copy",
        "wide-0": "under_min_isr",
        "wide-1": "under_min_isr",
    }
    assert "lone-0" not in found


@pytest.mark.soak
def test_a_time_line_from_the_topics_is_that_of_the_recording(
    brokers: LocalCluster, tmp_path: Path
) -> None:
    lines = trace("unclean")
    reducer = LineReducer(Detection())
    group = group_of("trace", "trace", 0, TOPICS.partitions)
    with producer_of(brokers, enable_idempotence=False) as producer:
        for number, line in enumerate(lines):
            producer.send(TOPICS.replica_state, value=line, partition=group)
            for record in reducer.records(Line(0, number + 1, line), "alerts"):
                producer.send(TOPICS.alerts, value=encode_record(record))
    place = ("timeline", "trace", "0", "--json")
    since = ("--since", "2001-09-09T00:00:00Z")
    found = json.loads(run(brokers, *place, "--cluster", "trace", *since))
    recorded = tmp_path / "events.jsonl"
    recorded.write_bytes(b"\n".join(lines))
    expected = json.loads(tidemark(*place, "--cluster", "trace", "--from", str(recorded)).out)
    assert (found["steps"], found["observations"]) == (
        expected["steps"],
        expected["observations"],
    )
    # Without a name, all partitions of the topic are read.
    assert json.loads(run(brokers, *place, *since)) == found
    # The records are of today, the observations are not.
    servers = ",".join(brokers.bootstrap_servers)
    refused = tidemark("timeline", "trace", "0", "--bootstrap", servers, code=1).err
    assert "trace-0 was not observed there" in refused

"""The operator's verbs against real brokers: one cluster, one pause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.verbs.audit.plant import change_batch
from tests.verbs.inspect.test_losses import alert
from tests.verbs.recordings import trace
from tidemark.assess.risky_configuration import MEANINGS
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ClusterError
from tidemark.core.events import Ack, Audit
from tidemark.core.identity import group_of
from tidemark.core.records import encode_record
from tidemark.detect.internal_topics import coordinating_partition
from tidemark.detect.thresholds import Detection
from tidemark.kafka.client import make_admin, make_consumer, make_producer
from tidemark.kafka.topic_reader import TopicReader, values
from tidemark.kafka.topics import ensure_topics
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark.settings import Connection, Topics
from tidemark.verbs.ack.command import ack
from tidemark.verbs.audit.command import audit
from tidemark.verbs.check_config.command import check_config
from tidemark.verbs.inspect.command import inspect
from tidemark.verbs.safe_to_stop.command import safe_to_stop
from tidemark.verbs.timeline.command import timeline
from tidemark_lab.brokers.cluster import LocalCluster

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


def connection(brokers: LocalCluster) -> Connection:
    return Connection(bootstrap_servers=brokers.bootstrap_servers)


def run(command: click.Command, brokers: LocalCluster, *arguments: str) -> tuple[object, str]:
    """What the verb returned (its exit code) and printed."""
    result = CliRunner().invoke(
        command,
        [*arguments, "--bootstrap", ",".join(brokers.bootstrap_servers)],
        standalone_mode=False,
    )
    assert result.exception is None, result.exception
    return result.return_value, result.stdout


def impacts(brokers: LocalCluster, broker: int) -> dict[str, str]:
    code, out = run(safe_to_stop, brokers, str(broker), "--json")
    answer = json.loads(out)
    assert code == (0 if answer["safe"] else 3)
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
    result = CliRunner().invoke(
        check_config, ["--config", str(path), "--reach"], standalone_mode=False
    )
    assert result.exception is None, result.exception
    lines = result.stdout.splitlines()
    assert "ok: cluster c answers" in lines
    assert not [line for line in lines if line.startswith("  refused: ")]
    assert lines[-2:] == [
        f"  One replica: 1 partition (lone-0): {MEANINGS['single_replica'].text}",
        f"  Min ISR 1: 1 partition (pair-0): {MEANINGS['min_isr_1'].text}",
    ]


def test_losses_and_their_acknowledgement(brokers: LocalCluster) -> None:
    loss = alert()
    assert run(inspect, brokers, "--losses") == (0, "no committed record is known to be lost.\n")
    producer = make_producer(connection(brokers), acks="all", enable_idempotence=False)
    for _ in range(2):
        producer.send(TOPICS.alerts, value=encode_record(loss))
    producer.flush(10)
    producer.close(timeout=1)
    code, out = run(inspect, brokers, "--losses", "--csv")
    assert (code, out.splitlines()[1][:22]) == (3, "main,orders,3,5,12,197")
    _, out = run(ack, brokers, loss.fingerprint, "--by", "ada", "--wait", "0.5")
    assert out.startswith(
        f"sent: KafkaCommittedDataLoss main/orders/3 ({loss.fingerprint}), by ada."
    )
    with TopicReader(connection(brokers), TOPICS.replica_state) as log:
        events = [decode_batch(record).events for record in values(log.read_to_end())]
    assert len(events) == TOPICS.partitions
    assert all(
        isinstance(event, Ack) and event.fingerprint == loss.fingerprint for (event,) in events
    )


def test_an_audit_finds_the_changed_batch_and_publishes_it(brokers: LocalCluster) -> None:
    producer = make_producer(connection(brokers), acks="all", linger_ms=0)
    for number in range(20):
        producer.send("pair", b"value %d" % number).get(10)
    producer.close(timeout=1)
    code, out = run(audit, brokers, "pair", "wide:0", "--whole")
    assert code == 0
    assert out.splitlines()[-1].startswith("no difference in ")
    batch = change_batch(brokers.directory / "data-2" / "pair-0" / f"{0:020}.log", 7)
    code, out = run(audit, brokers, "pair", "--sample", "3", "--publish", "--json")
    (partition,) = json.loads(out)["partitions"]
    (finding,) = partition["findings"]
    assert (code, finding["offset"], finding["differing_records"]) == (3, batch.base_offset, 1)
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
    _, out = run(inspect, brokers, "__consumer_offsets", str(partition))
    consumer.close(autocommit=False)
    assert "consumer groups coordinated here: orders-service\n" in out
    _, out = run(
        inspect, brokers, "__consumer_offsets", str((partition + 1) % len(offsets["partitions"]))
    )
    assert "consumer groups coordinated here: none now\n" in out


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
    producer = make_producer(connection(brokers), acks="all", enable_idempotence=False)
    for number, line in enumerate(lines):
        producer.send(TOPICS.replica_state, value=line, partition=group)
        for record in reducer.records(Line(0, number + 1, line), "alerts"):
            producer.send(TOPICS.alerts, value=encode_record(record))
    producer.flush(10)
    producer.close(timeout=1)
    place = ("trace", "0", "--cluster", "trace", "--json")
    since = ("--since", "2001-09-09T00:00:00Z")
    _, out = run(timeline, brokers, *place, *since)
    found, recorded = json.loads(out), tmp_path / "events.jsonl"
    recorded.write_bytes(b"\n".join(lines))
    result = CliRunner().invoke(timeline, [*place, "--from", str(recorded)], standalone_mode=False)
    expected = json.loads(result.stdout)
    assert (found["steps"], found["observations"]) == (
        expected["steps"],
        expected["observations"],
    )
    # Without a name, all partitions of the topic are read.
    assert json.loads(run(timeline, brokers, "trace", "0", "--json", *since)[1]) == found
    # The records are of today, the observations are not.
    with pytest.raises(ClusterError, match="trace-0 was not observed there"):
        CliRunner().invoke(
            timeline,
            ["trace", "0", "--bootstrap", ",".join(brokers.bootstrap_servers)],
            standalone_mode=False,
            catch_exceptions=False,
        )

"""No verb creates a topic on a watched cluster, also where asking for one by name creates it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.producing import connection
from tests.verbs.run import outcome
from tidemark.core.errors import TidemarkError
from tidemark.kafka.client import make_admin
from tidemark.kafka.topics import ensure_topics, topic_specifications
from tidemark.observations.few_passes import few_passes
from tidemark.settings import Cluster, Collect, Topics
from tidemark.verbs.salvage.produce import Sender, Target
from tidemark_lab.brokers.cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

OWN = Topics(partitions=2, replication_factor=1, min_in_sync_replicas=1)


@pytest.fixture(scope="module")
def brokers() -> Iterator[LocalCluster]:
    """Kafka 0.10.2.2: Metadata has no field that forbids the creation."""
    overrides = {"auto.create.topics.enable": "true", "delete.topic.enable": "true"}
    with LocalCluster(overrides=overrides, version="0.10.2.2") as cluster:
        cluster.create_topic("orders", {0: [1, 2, 3]})
        yield cluster


def listed(brokers: LocalCluster) -> dict[str, int]:
    """Topic -> partitions."""
    admin = make_admin(connection(brokers))
    try:
        return {topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics()}
    finally:
        admin.close()


def test_verbs_on_topics_that_are_not_there(brokers: LocalCluster, tmp_path: Path) -> None:
    servers = ",".join(brokers.bootstrap_servers)
    file = tmp_path / "tidemark.yaml"
    kafka = f"bootstrap_servers: [{servers}]"
    file.write_text(f"kafka: {{{kafka}}}\nclusters: [{{name: old, {kafka}}}]", encoding="utf-8")
    for arguments in (
        ("check-config", "--reach", "--config", str(file)),
        ("inspect", "nosuch", "--bootstrap", servers),
        ("inspect", "--losses", "--bootstrap", servers),
        ("safe-to-stop", "1", "--bootstrap", servers),
        ("choose-leader", "nosuch", "0", "--bootstrap", servers),
        ("audit", "nosuch", "--bootstrap", servers),
        ("timeline", "nosuch", "0", "--bootstrap", servers),
        ("top", "--bootstrap", servers, "--passes", "2"),
        ("collect", "--bootstrap", servers, "--to", "-", "--passes", "2"),
    ):
        status, output = outcome(*arguments)
        print(arguments[0], status, output.err)
        assert listed(brokers) == {"orders": 1}, arguments
    with pytest.raises(TidemarkError):
        Sender(connection(brokers), Target("nosuch", None, False)).count_partitions()
    assert listed(brokers) == {"orders": 1}


def test_a_topic_that_is_deleted_under_a_collector_stays_deleted(brokers: LocalCluster) -> None:
    brokers.create_topic("gone", {0: [1, 2, 3]})
    cluster = Cluster(name="old", bootstrap_servers=brokers.bootstrap_servers)
    asked_at = None
    for done in few_passes(cluster, Collect(metadata_seconds=1e-6), [".*"]):
        assert done.seconds < 60.0
        if asked_at is None and "gone" in done.topics:
            admin = make_admin(connection(brokers))
            admin.delete_topics(["gone"])
            admin.close()
            asked_at = done.seconds
        elif asked_at is not None and "gone" not in done.topics and done.seconds > asked_at + 5.0:
            break
    assert listed(brokers) == {"orders": 1}


def test_own_topics_are_created_as_they_are_specified(brokers: LocalCluster) -> None:
    ensure_topics(connection(brokers), OWN)
    wanted = {name: number for name, (number, _) in topic_specifications(OWN).items()}
    assert {name: listed(brokers).get(name) for name in wanted} == wanted

"""Tidemark's own topics: their configuration, and their creation."""

from __future__ import annotations

from typing import Any, Final

from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import explain, make_admin
from tidemark.settings import Connection, Topics

DAY_MS: Final = 24 * 3_600_000

# name -> (partitions, configuration)
Specifications = dict[str, tuple[int, dict[str, str]]]


def topic_specifications(topics: Topics) -> Specifications:
    """The four topics. Replication and min.insync.replicas are explicit.

    The event topic and the views have the same number of partitions. Alerts and dead letters have
    one partition, so that their order is total.
    """
    common = {
        "min.insync.replicas": str(topics.min_in_sync_replicas),
        "unclean.leader.election.enable": "false",
        "compression.type": "producer",
    }
    day = {**common, "cleanup.policy": "delete", "retention.ms": str(DAY_MS)}
    week = {**common, "cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS)}
    compacted = {
        **common,
        "cleanup.policy": "compact",
        "segment.ms": str(600_000),
        "min.cleanable.dirty.ratio": "0.1",
    }
    return {
        topics.replica_state: (topics.partitions, day),
        topics.partition_views: (topics.partitions, compacted),
        topics.alerts: (1, week),
        topics.dead_letters: (1, week),
    }


def ensure_topics(connection: Connection, topics: Topics) -> None:
    """Creates missing topics, and checks the number of partitions of those that exist.

    Raises ClusterError when a topic exists with another number of partitions or cannot be created.
    """
    wanted = topic_specifications(topics)
    admin = make_admin(connection)
    try:
        existing = {
            topic["name"]: len(topic["partitions"])
            for topic in admin.describe_topics(None)
            if not topic["error_code"]
        }
        for name, (partitions, _) in wanted.items():
            if existing.get(name, partitions) != partitions:
                raise ClusterError(
                    f"topic {name} has {existing[name]} partitions, but the configuration says "
                    f"{partitions}. Set topics.partitions to {existing[name]}, or choose another "
                    "topics.prefix (the checkpoint of `tidemark stream` is bound to the number "
                    "too)."
                )
        missing = {name: wanted[name] for name in wanted if name not in existing}
        if missing:
            _create(admin, missing, topics)
    except kafka_errors.KafkaError as error:
        raise ClusterError(f"cannot prepare Tidemark's topics: {explain(error)}.") from None
    finally:
        admin.close()


def _create(admin: Any, missing: Specifications, topics: Topics) -> None:
    request = {
        name: {
            "num_partitions": partitions,
            "replication_factor": topics.replication_factor,
            "configs": configuration,
        }
        for name, (partitions, configuration) in missing.items()
    }
    answer = admin.create_topics(request, raise_errors=False)
    for topic in answer["topics"]:
        code = topic["error_code"]
        if code in {0, kafka_errors.TopicAlreadyExistsError.errno}:
            continue
        if code == kafka_errors.InvalidReplicationFactorError.errno:
            raise ClusterError(
                f"cannot create {topic['name']} with replication factor "
                f"{topics.replication_factor}: the cluster has fewer brokers. Lower "
                "topics.replication_factor and topics.min_in_sync_replicas."
            )
        name = kafka_errors.for_code(code).__name__.removesuffix("Error")
        raise ClusterError(
            f"cannot create topic {topic['name']}: {name}. Create it as the docs describe, or "
            "grant the user the right to create topics."
        )
    admin.wait_for_topics(list(missing))

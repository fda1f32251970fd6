"""Tidemark's own topics: their configuration, and their creation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import explain, make_admin
from tidemark.settings import Connection, Topics

# Kafka's default. Written down: it bounds a record also where the brokers' default was raised.
MAX_MESSAGE_BYTES: Final = 1_048_588
_DENIED: Final = kafka_errors.TopicAuthorizationFailedError.errno
# A topic that is being created has no leader yet.
_NOT_THERE: Final = (
    kafka_errors.UnknownTopicOrPartitionError.errno,
    kafka_errors.LeaderNotAvailableError.errno,
)
DAY_MS: Final = 24 * 3_600_000
# How the number of partitions of the event topic is changed.
PROCEDURE: Final = 'docs/operations.md, "Change the number of groups"'

# name -> (partitions, configuration)
Specifications = dict[str, tuple[int, dict[str, str]]]


def topic_specifications(topics: Topics) -> Specifications:
    """The four topics. Replication and min.insync.replicas are explicit.

    The event topic and the views are created with the same number of partitions; the views keep
    theirs when that of the event topic changes. Alerts and dead letters have one partition, so that
    their order is total.
    """
    common = {
        "min.insync.replicas": str(topics.min_in_sync_replicas),
        "unclean.leader.election.enable": "false",
        "compression.type": "producer",
        "max.message.bytes": str(MAX_MESSAGE_BYTES),
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


class TopicMismatchError(ClusterError):
    """A topic exists with another number of partitions: waiting does not mend it."""


def ensure_topics(
    connection: Connection, topics: Topics, needed: Collection[str] | None = None
) -> None:
    """Creates missing topics, and checks the number of partitions of those that exist.

    `needed`: the topics that the verb uses (default: all). Another one that the user may neither
    describe nor create is left to the verb that uses it. Raises TopicMismatchError when a topic
    exists with another number of partitions, ClusterError when a needed one cannot be used.
    """
    wanted = topic_specifications(topics)
    needed = wanted.keys() if needed is None else needed
    admin = make_admin(connection)
    try:
        states = topic_states(admin, wanted)
        for name, (partitions, _) in wanted.items():
            exist = states[name].partitions
            if exist not in (None, partitions) and name != topics.partition_views:
                raise TopicMismatchError(_mismatch(name, exist, partitions, topics))
            if states[name].denied and name in needed:
                raise ClusterError(denial(name))
        missing = {
            name: wanted[name]
            for name, state in states.items()
            if state.partitions is None and not state.denied
        }
        if missing:
            _create(admin, missing, topics, needed)
    except kafka_errors.KafkaError as error:
        raise ClusterError(f"cannot prepare Tidemark's topics: {explain(error)}.") from None
    finally:
        admin.close()


def _mismatch(name: str, exist: int, wanted: int, topics: Topics) -> str:
    if name != topics.replica_state:
        return (
            f"topic {name} has {exist} partitions; its order needs exactly {wanted}. Delete it, "
            "which loses its records: the next start creates it."
        )
    return (
        f"topic {name} has {exist} partitions, but the configuration says {wanted}. Set "
        f"topics.partitions to {exist} if the topic was created with that. If partitions were "
        f"added to it, or for another number, follow {PROCEDURE}."
    )


class TopicState(NamedTuple):
    """`partitions` is None where the topic does not exist, and where it may not be described.

    `topic_id` is None there too, and before Kafka 2.8.
    """

    partitions: int | None
    denied: bool
    topic_id: str | None = None


def topic_states(admin: Any, names: Iterable[str]) -> dict[str, TopicState]:
    """Raises KafkaError. Asked by name, a broker tells "not permitted" from "not there"."""
    states = {}
    for topic in admin.describe_topics(list(names)):
        code, exists = topic["error_code"], not topic["error_code"]
        if code not in {0, _DENIED, *_NOT_THERE}:
            raise kafka_errors.for_code(code)(topic["name"])
        partitions = len(topic["partitions"]) if exists else None
        states[topic["name"]] = TopicState(partitions, code == _DENIED, topic.get("topic_id"))
    return states


def describe_topic(connection: Connection, name: str) -> TopicState:
    """The state of one topic. Raises ClusterError."""
    admin = make_admin(connection)
    try:
        return topic_states(admin, [name])[name]
    except kafka_errors.KafkaError as error:
        raise ClusterError(f"cannot describe topic {name}: {explain(error)}.") from None
    finally:
        admin.close()


def absence(connection: Connection, name: str) -> str:
    """Why a topic cannot be seen, as a sentence with the cure. Raises ClusterError."""
    if describe_topic(connection, name).denied:
        return denial(name)
    return (
        f"topic {name} does not exist. Start `tidemark collect` once, which creates "
        "it, or check topics.prefix and kafka.bootstrap_servers (or --bootstrap)."
    )


def denial(name: str) -> str:
    return (
        f"the user may not describe topic {name}, so it is not known whether it exists. "
        "Grant the rights of docs/permissions.md, or check topics.prefix."
    )


def _create(admin: Any, missing: Specifications, topics: Topics, needed: Collection[str]) -> None:
    request = {
        name: {
            "num_partitions": partitions,
            "replication_factor": topics.replication_factor,
            "configs": configuration,
        }
        for name, (partitions, configuration) in missing.items()
    }
    answer = admin.create_topics(request, raise_errors=False)
    created = []
    for topic in answer["topics"]:
        code = topic["error_code"]
        if code in {0, kafka_errors.TopicAlreadyExistsError.errno}:
            created.append(topic["name"])
            continue
        if code == kafka_errors.InvalidReplicationFactorError.errno:
            raise ClusterError(
                f"cannot create {topic['name']} with replication factor "
                f"{topics.replication_factor}: the cluster has fewer brokers. Lower "
                "topics.replication_factor and topics.min_in_sync_replicas."
            )
        if code == _DENIED and topic["name"] not in needed:
            continue
        name = kafka_errors.for_code(code).__name__.removesuffix("Error")
        raise ClusterError(
            f"cannot create topic {topic['name']}: {name}. Create it as the docs describe, or "
            "grant the user the right to create topics."
        )
    if created:
        admin.wait_for_topics(created)

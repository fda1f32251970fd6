"""Tidemark's own topics: their configuration, and their creation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

import structlog
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.metadata import MetadataRequest

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import administration
from tidemark.settings import Connection, Topics

# Kafka's default. Written down: it bounds a record also where the brokers' default was raised.
MAX_MESSAGE_BYTES: Final = 1_048_588
_DENIED: Final = kafka_errors.TopicAuthorizationFailedError.errno
# A topic that is being created has no leader yet.
_NOT_THERE: Final = (
    kafka_errors.UnknownTopicOrPartitionError.errno,
    kafka_errors.LeaderNotAvailableError.errno,
)
# Of the event topic: no writer chooses the time of its records.
TIMESTAMP_OPTION: Final = "message.timestamp.type"
TIMESTAMP_TYPE: Final = "LogAppendTime"
# Of Metadata, Kafka 0.11: a request may say that no topic is created.
FIRST_WITHOUT_CREATION: Final = 4
DAY_MS: Final = 24 * 3_600_000
# How the number of partitions of the event topic is changed.
PROCEDURE: Final = 'docs/operations.md of `tidemark assets`, "Change the number of groups"'

log = structlog.get_logger()

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
        topics.replica_state: (topics.partitions, {**day, TIMESTAMP_OPTION: TIMESTAMP_TYPE}),
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
    with administration(connection, "prepare Tidemark's topics") as admin:
        states = topic_states(admin, wanted)
        for name, (partitions, _) in wanted.items():
            exist = states[name].partitions
            if exist not in (None, partitions) and name != topics.partition_views:
                raise TopicMismatchError(mismatch(name, exist, partitions, topics))
            if states[name].denied and name in needed:
                raise ClusterError(denial(name))
        missing = {
            name: wanted[name]
            for name, state in states.items()
            if state.partitions is None and not state.denied
        }
        create_topics(admin, missing, topics, needed)
        for line in time_lines(admin, topics.replica_state, connection.bootstrap_servers):
            log.warning(line.strip())


def mismatch(name: str, exist: int | None, wanted: int, topics: Topics) -> str:
    """What to do about a topic with another number of partitions than the configuration says."""
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


def describe_topics(admin: Any, names: Iterable[str]) -> list[dict[str, Any]]:
    """As KafkaAdminClient has it, of topics that may not be there; creates none. Raises KafkaError.

    Asked by name, a broker tells "not permitted" from "not there"; one before 0.11 creates the
    topic (auto.create.topics.enable), and so is asked for all.
    """
    if not _creates_topics(admin):
        return list(admin.describe_topics(list(names)))
    known = {topic["name"]: topic for topic in admin.describe_topics()}
    return [
        known.get(name, {"name": name, "error_code": _NOT_THERE[0], "partitions": []})
        for name in names
    ]


def _creates_topics(admin: Any) -> bool:
    """Whether Metadata by name creates a topic. Raises KafkaError."""
    try:
        newest = admin.api_versions()[MetadataRequest.API_KEY][1]
    except ValueError:
        # The brokers offer an API that kafka-python does not know, as those of Kafka 4.4 do.
        return False
    return bool(newest < FIRST_WITHOUT_CREATION)


def topic_states(admin: Any, names: Iterable[str]) -> dict[str, TopicState]:
    """Raises KafkaError."""
    states = {}
    for topic in describe_topics(admin, names):
        code, exists = topic["error_code"], not topic["error_code"]
        if code not in {0, _DENIED, *_NOT_THERE}:
            raise kafka_errors.for_code(code)(topic["name"])
        partitions = len(topic["partitions"]) if exists else None
        states[topic["name"]] = TopicState(partitions, code == _DENIED, topic.get("topic_id"))
    return states


def describe_topic(connection: Connection, name: str) -> TopicState:
    """The state of one topic. Raises ClusterError."""
    with administration(connection, f"describe topic {name}") as admin:
        return topic_states(admin, [name])[name]


def topic_option(admin: Any, topic: str, option: str) -> str | None:
    """An option of a topic; None where brokers do not say it, such as without DescribeConfigs."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {option: None})
    try:
        answer = admin.describe_configs([resource], config_filter="all")
    except kafka_errors.KafkaError:
        return None
    value = answer.get("topic", {}).get(topic, {}).get(option, {}).get("value")
    return None if value is None else str(value)


def option_command(servers: Iterable[str], topic: str, option: str, value: object) -> str:
    """The command that sets an option of a topic."""
    return (
        f"kafka-configs.sh --bootstrap-server {','.join(servers)} --alter --entity-type topics "
        f"--entity-name {topic} --add-config {option}={value}"
    )


def time_lines(admin: Any, topic: str, servers: Iterable[str]) -> Iterator[str]:
    """The risk and its cure where writers choose the timestamps of the event topic's records."""
    found = topic_option(admin, topic, TIMESTAMP_OPTION)
    if found not in (None, TIMESTAMP_TYPE):
        yield (
            f"risk: who writes to {topic} chooses the times of its records, and may take one that "
            "Spark cannot carry or that retention never reaches; set:"
        )
        yield f"  {option_command(servers, topic, TIMESTAMP_OPTION, TIMESTAMP_TYPE)}"


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
        "Grant the rights of docs/permissions.md (`tidemark assets`), or check topics.prefix."
    )


def create_topics(
    admin: Any, missing: Specifications, topics: Topics, needed: Collection[str]
) -> None:
    """Creates those `missing`, and waits for them.

    One that this user may not create is left out where it is not `needed`. Raises ClusterError,
    KafkaError.
    """
    request = {
        name: {
            "num_partitions": partitions,
            "replication_factor": topics.replication_factor,
            "configs": configuration,
        }
        for name, (partitions, configuration) in missing.items()
    }
    created = []
    for topic in admin.create_topics(request, raise_errors=False)["topics"] if missing else ():
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

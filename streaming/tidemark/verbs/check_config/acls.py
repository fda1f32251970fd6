"""The rights that Tidemark needs, as commands of kafka-acls.sh: those of docs/permissions.md."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

from tidemark.settings import Connection, Settings

# Principals of these mechanisms are the user's name; others have a name that only brokers know.
WITH_USER: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
UNKNOWN_PRINCIPAL: Final = "User:PRINCIPAL"


class Grant(NamedTuple):
    """Operations on one resource, in the words of kafka-acls.sh."""

    operations: tuple[str, ...]
    # Such as ("--topic", "*").
    resource: tuple[str, ...]


TOPICS: Final = ("--topic", "*")
CLUSTER: Final = ("--cluster",)
FULL: Final = (
    Grant(("Describe", "Read", "DescribeConfigs"), TOPICS),
    Grant(("Describe", "DescribeConfigs"), CLUSTER),
)
DESCRIBE_ONLY: Final = (Grant(("Describe",), TOPICS),)


def principal(connection: Connection) -> str:
    """`User:name`, or a placeholder where the brokers map a certificate or a token to a name."""
    client = connection.client
    user = client.get("sasl_plain_username")
    if client.get("sasl_mechanism") in WITH_USER and isinstance(user, str):
        return f"User:{user}"
    return UNKNOWN_PRINCIPAL


def command(connection: Connection, grant: Grant) -> str:
    """One line for a shell."""
    words = ["kafka-acls.sh", "--bootstrap-server", ",".join(connection.bootstrap_servers)]
    words += ["--add", "--allow-principal", principal(connection)]
    for operation in grant.operations:
        words += ["--operation", operation]
    return shlex.join([*words, *grant.resource])


def verb_grants(settings: Settings) -> dict[str, tuple[Grant, ...]]:
    """Verb -> its rights on Tidemark's own topics, which exist. Other verbs need none there."""
    topics = settings.topics
    read = [topics.partition_views, topics.alerts, topics.dead_letters]
    alerts = _on(topics.alerts, "Read")
    return {
        "collect": (_on(topics.replica_state, "Write"),),
        "stream": (
            _on(topics.replica_state, "Read"),
            *(_on(topic, "Write") for topic in read),
            _group("tidemark-stream"),
        ),
        "export": (*(_on(topic, "Read") for topic in read), _group(f"{topics.prefix}.notify.")),
        "ack": (alerts, _on(topics.replica_state, "Write")),
        "audit --publish": (_on(topics.replica_state, "Write"),),
        "timeline": (_on(topics.replica_state, "Read"), alerts),
        "choose-leader": (_on(topics.partition_views, "Read"),),
        "inspect --losses": (alerts,),
        "salvage --losses": (alerts,),
    }


class OptionalGrant(NamedTuple):
    """A right of some deployments: which verbs use it, what for, and the right itself."""

    verbs: tuple[str, ...]
    purpose: str
    grant: Grant


def optional_grants(settings: Settings) -> tuple[OptionalGrant, ...]:
    """Rights without which every verb works, but for what their purpose says."""
    topics = settings.topics
    all_topics = Grant(("DescribeConfigs",), _prefixed("--topic", f"{topics.prefix}."))
    return (
        OptionalGrant(
            ("collect", "stream", "ack", "audit --publish"),
            "with Kafka before 2.8",
            Grant(("IdempotentWrite",), CLUSTER),
        ),
        OptionalGrant(
            ("stream",),
            "deletes a record that would end it; also permits the topic's deletion",
            Grant(("Delete",), ("--topic", topics.replica_state)),
        ),
        OptionalGrant(
            ("export",),
            "tidemark_event_records_total",
            Grant(("Describe",), ("--topic", topics.replica_state)),
        ),
        OptionalGrant(
            ("check-config --reach", "stream"),
            "max.message.bytes and message.timestamp.type of the topics",
            all_topics,
        ),
    )


def escrow_grants(settings: Settings) -> tuple[Grant, ...]:
    """Of `escrow`, printed where it keeps any topic."""
    topics = settings.topics
    kept = ("Create", "Describe", "Read", "Write", "Alter", "Delete")
    return (
        _on(topics.partition_views, "Read"),
        _on(topics.replica_state, "Write"),
        Grant(kept, _prefixed("--topic", topics.escrow)),
    )


def creation(settings: Settings) -> Grant:
    """For the first start, unless the topics are created by hand."""
    return Grant(("Create", "Describe"), _prefixed("--topic", f"{settings.topics.prefix}."))


def all_commands(settings: Settings) -> Iterator[str]:
    """What `check-config --acls` prints."""
    for cluster in settings.clusters:
        yield f"# cluster {cluster.name}: everything"
        yield from (command(cluster, grant) for grant in FULL)
        yield (
            f"# cluster {cluster.name}: Describe only; docs/permissions.md of `tidemark assets` "
            "has what is unknown then"
        )
        yield from (command(cluster, grant) for grant in DESCRIBE_ONLY)
    yield "# Tidemark's own topics: creation, at the first start"
    yield command(settings.kafka, creation(settings))
    for verb, grants in verb_grants(settings).items():
        yield f"# Tidemark's own topics: {verb}"
        yield from (command(settings.kafka, grant) for grant in grants)
    for verbs, purpose, grant in optional_grants(settings):
        yield f"# Tidemark's own topics: {', '.join(verbs)}, optional: {purpose}"
        yield command(settings.kafka, grant)
    if settings.escrow.topics:
        yield (
            "# Tidemark's own topics: escrow; docs/escrow.md of `tidemark assets` says who can "
            "read the copies"
        )
        yield from (command(settings.kafka, grant) for grant in escrow_grants(settings))
    connections = (settings.kafka, *settings.clusters)
    if any(principal(connection) == UNKNOWN_PRINCIPAL for connection in connections):
        yield (
            f"# {UNKNOWN_PRINCIPAL}: the name that the brokers give the user, such as "
            "User:CN=tidemark of a certificate; a broker's authorizer log has it."
        )


def _on(topic: str, operation: str) -> Grant:
    """Read and Write imply Describe; it is named, so that `--reach` shows what is missing."""
    return Grant(("Describe", operation), ("--topic", topic))


def _group(prefix: str) -> Grant:
    return Grant(("Read",), _prefixed("--group", prefix))


def _prefixed(option: str, prefix: str) -> tuple[str, ...]:
    return (option, prefix, "--resource-pattern-type", "prefixed")

"""What a principal may do, by cluster and API, for `tidemark check-config --reach`.

"ok" is only what brokers answered. An API that a broker does not have, or that was not asked, is
neither ok nor refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kafka import errors as kafka_errors

from tidemark.collect.metadata.refusals import (
    ASKED,
    CONFIGURATION,
    LOG_DIRECTORIES,
    QUORUM,
    REASSIGNMENTS,
    RECORDS,
    TOPIC_CONFIGURATION,
    TOPICS,
)
from tidemark.core.events import Batch, BrokerState, Observation, Pass
from tidemark.kafka.client import administration
from tidemark.kafka.topics import (
    MAX_MESSAGE_BYTES,
    describe_topics,
    option_command,
    time_lines,
    topic_option,
)
from tidemark.settings import Cluster, Settings
from tidemark.verbs.check_config.acls import CLUSTER, FULL, Grant, command, verb_grants
from tidemark.verbs.check_config.acls import TOPICS as ALL_TOPICS

# Metadata of a topic that is not there: "unknown topic" to who may describe it, else "denied".
ABSENT_TOPIC: Final = "tidemark-asks-for-its-rights"
OPTION: Final = "max.message.bytes"
# What is asked -> APIs, operation, resource.
APIS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    TOPICS: ("Metadata, ListOffsets", "Describe", ALL_TOPICS),
    RECORDS: ("Fetch", "Read", ALL_TOPICS),
    TOPIC_CONFIGURATION: ("DescribeConfigs of topics", "DescribeConfigs", ALL_TOPICS),
    QUORUM: ("DescribeQuorum", "Describe", CLUSTER),
    REASSIGNMENTS: ("ListPartitionReassignments", "Describe", CLUSTER),
    LOG_DIRECTORIES: ("DescribeLogDirs", "Describe", CLUSTER),
    CONFIGURATION: ("DescribeConfigs of brokers", "DescribeConfigs", CLUSTER),
}


def answered(batches: Iterable[Batch]) -> set[str]:
    """What brokers answered, by the events that show it."""
    found: set[str] = set()
    for batch in batches:
        for event in batch.events:
            found.update(_shown(event))
    return found


def _shown(event: Any) -> Iterator[str]:
    if isinstance(event, Observation):
        yield TOPICS
        if any(sample.high_watermark is not None for sample in event.samples):
            yield RECORDS
        if event.effective_min_in_sync_replicas is not None:
            yield TOPIC_CONFIGURATION
    elif isinstance(event, Pass):
        if event.quorum_leader is not None:
            yield QUORUM
        if event.reassigning is not None:
            yield REASSIGNMENTS
    elif isinstance(event, BrokerState):
        if event.offline_log_dirs is not None:
            yield LOG_DIRECTORIES
        if event.configuration is not None:
            yield CONFIGURATION


def api_lines(
    cluster: Cluster,
    shown: Collection[str],
    refused: Mapping[str, tuple[str, ...]],
    has_topics: bool = True,
) -> Iterator[str]:
    """A line for each API, then the commands that grant what is refused."""
    if not has_topics:
        shown = {TOPICS, *shown}
        refused = {what: reasons for what, reasons in refused.items() if what != TOPICS}
    for what, (api, operation, resource) in APIS.items():
        place = "topics" if resource == ALL_TOPICS else "the cluster"
        if what in refused:
            reasons = ", ".join(refused[what])
            yield f"refused: {api} ({operation} on {place}): {reasons}: {ASKED[what]}"
        elif what in shown:
            yield f"ok: {api} ({operation} on {place})"
        else:
            is_unasked = resource == ALL_TOPICS and not has_topics
            why = "the cluster has no topic" if is_unasked else "no broker answered it in this time"
            yield f"not known: {api} ({operation} on {place}): {why}"
    missing = [
        Grant(operations, grant.resource)
        for grant in FULL
        if (
            operations := tuple(
                dict.fromkeys(
                    APIS[what][1]
                    for what in APIS
                    if what in refused and APIS[what][2] == grant.resource
                )
            )
        )
    ]
    if missing:
        yield "to grant what is refused:"
        yield from (f"  {command(cluster, grant)}" for grant in missing)


def sees_all_topics(cluster: Cluster) -> bool:
    """Whether a cluster that lists no topic has none: this principal may describe any name.

    Raises ClusterError where no broker answers.
    """
    with administration(cluster, "describe a topic") as admin:
        answers = describe_topics(admin, [ABSENT_TOPIC])
    return [_state(answer) for answer in answers] == ["absent"]


def own_topic_lines(settings: Settings) -> Iterator[str]:
    """Whether this principal may run each verb, by what the brokers say about its rights.

    Raises ClusterError where no broker answers. Brokers before 2.3 do not say it.
    """
    names = {grant.resource[1] for grants in verb_grants(settings).values() for grant in grants}
    topics = sorted(name for name in names if name.startswith(f"{settings.topics.prefix}."))
    with administration(settings.kafka, "describe Tidemark's topics") as admin:
        described = {topic["name"]: topic for topic in describe_topics(admin, topics)}
        visible = [name for name in topics if isinstance(_state(described.get(name)), frozenset)]
        options = list(size_lines(admin, visible, settings.kafka.bootstrap_servers))
        if settings.topics.replica_state in visible:
            options += time_lines(
                admin, settings.topics.replica_state, settings.kafka.bootstrap_servers
            )
    states = {name: _state(described.get(name)) for name in topics}
    absent = [name for name in topics if states[name] == "absent"]
    if absent:
        yield f"not there yet: {', '.join(absent)}; the first start creates what is missing"
    yield from options
    for verb, grants in verb_grants(settings).items():
        yield from _verb_lines(settings, verb, grants, states)


def _verb_lines(
    settings: Settings, verb: str, grants: Iterable[Grant], states: Mapping[str, Any]
) -> Iterator[str]:
    missing, unknown = [], []
    for grant in grants:
        state = states.get(grant.resource[1])
        if isinstance(state, frozenset):
            left = tuple(o for o in grant.operations if o.upper() not in state)
            missing += [Grant(left, grant.resource)] if left else []
        elif state == "denied":
            missing.append(grant)
        elif state == "unknown":
            unknown.append(grant.resource[1])
    if missing:
        words = "; ".join(f"{', '.join(g.operations)} on {g.resource[1]}" for g in missing)
        yield f"refused: {verb} needs {words}"
        yield from (f"  {command(settings.kafka, grant)}" for grant in missing)
    elif unknown:
        names = ", ".join(unknown)
        yield f"not known: {verb}: the brokers do not say what may be done with {names}"
    elif not any(isinstance(states.get(g.resource[1]), frozenset) for g in grants):
        yield f"not known: {verb}: its topics are not there"
    else:
        yield f"ok: {verb} (topics; rights on groups are not asked)"


def _state(topic: Mapping[str, Any] | None) -> frozenset[str] | str:
    """The operations that are allowed; else why they are not known."""
    if topic is None or topic["error_code"] == kafka_errors.UnknownTopicOrPartitionError.errno:
        return "absent"
    if topic["error_code"] == kafka_errors.TopicAuthorizationFailedError.errno:
        return "denied"
    allowed = topic.get("authorized_operations")
    if topic["error_code"] or not isinstance(allowed, list):
        return "unknown"
    return frozenset(str(name) for name in allowed)


def size_lines(admin: Any, topics: Iterable[str], servers: Sequence[str]) -> Iterator[str]:
    """A line and its cure for each topic that takes larger records than those that Tidemark makes.

    A compressed record of 10 MB may unpack to 10 GB.
    """
    for topic in topics:
        found = topic_option(admin, topic, OPTION)
        if found is None:
            yield f"not known: {OPTION} of {topic} (DescribeConfigs on it shows it)"
        elif int(found) > MAX_MESSAGE_BYTES:
            yield f"risk: {topic} takes records of up to {int(found):,} bytes ({OPTION}); bound it:"
            yield f"  {option_command(servers, topic, OPTION, MAX_MESSAGE_BYTES)}"

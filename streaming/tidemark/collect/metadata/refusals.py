"""What brokers refuse to answer, and what is unknown without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOG_DIRECTORIES: Final = "log directories"
CONFIGURATION: Final = "configuration"
TOPICS: Final = "topics"
RECORDS: Final = "records"
TOPIC_CONFIGURATION: Final = "topic configuration"
QUORUM: Final = "quorum"
REASSIGNMENTS: Final = "reassignments"
# What is asked -> what is unknown without an answer, and the right that the request needs.
ASKED: Final = {
    TOPICS: "no topic is visible and nothing is watched; "
    "Metadata lists the topics on which the user has DESCRIBE",
    RECORDS: "high watermarks of followers, starts of logs and lineages are unknown; "
    "Fetch needs READ on the topic",
    TOPIC_CONFIGURATION: "minimums of in-sync replicas, cleanup policies, unclean elections and "
    "throttled replicas are unknown; DescribeConfigs needs DESCRIBE_CONFIGS on the topic",
    QUORUM: "the metadata quorum is unknown; DescribeQuorum needs DESCRIBE on the cluster",
    REASSIGNMENTS: "reassignments are unknown; "
    "ListPartitionReassignments needs DESCRIBE on the cluster",
    LOG_DIRECTORIES: "offline directories, free space and sizes of replicas are unknown; "
    "DescribeLogDirs needs DESCRIBE on the cluster",
    CONFIGURATION: "the configuration of brokers and their throttles are unknown; "
    "DescribeConfigs needs DESCRIBE_CONFIGS on the cluster",
}
# Errors.java: the user lacks a right on a topic, or on the cluster.
AUTHORIZATION_ERRORS: Final = {
    29: "TOPIC_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
}
# For answers that any broker gives.
ANY_BROKER: Final = -1
MAX_NAMES: Final = 3
# The metadata of a cluster without topics, and of one that hides them all, is the same.
NO_TOPIC: Final = "no topic in the metadata"


class RefusedError(Exception):
    """The broker answered with an error, such as a missing right. The text is Kafka's name."""


class Refusals:
    """Why the last question of each kind was refused, by broker. Bounded: ASKED times brokers."""

    def __init__(self) -> None:
        self._reasons: dict[str, dict[int, str]] = {}

    def note(self, what: str, reason: str | None, broker: int = ANY_BROKER) -> None:
        """Null: it was answered."""
        if reason is None:
            self._reasons.get(what, {}).pop(broker, None)
        else:
            self._reasons.setdefault(what, {})[broker] = reason

    def forget(self, broker: int) -> None:
        for reasons in self._reasons.values():
            reasons.pop(broker, None)

    def reasons(self) -> dict[str, tuple[str, ...]]:
        """What is refused -> the different reasons."""
        return {
            what: tuple(sorted(set(reasons.values())))
            for what, reasons in self._reasons.items()
            if reasons
        }


def refusal_line(what: str, reasons: tuple[str, ...]) -> str:
    """What is unknown, and the right that it needs. Without a topic nothing may be refused."""
    why = ", ".join(reasons)
    return f"{why if reasons == (NO_TOPIC,) else f'{what} refused ({why})'}: {ASKED[what]}."


def refusal_summary(refused: Mapping[str, tuple[str, ...]]) -> str:
    """The same of all, in a few words."""
    names = [what for what, reasons in refused.items() if reasons != (NO_TOPIC,)]
    parts = [NO_TOPIC] if len(names) < len(refused) else []
    parts += [f"refused: {', '.join(names)}"] if names else []
    return f"{'; '.join(parts)} (docs/permissions.md of `tidemark assets`)"


def check_authorized(error: int) -> None:
    """Raises RefusedError for the error of a missing right."""
    if error in AUTHORIZATION_ERRORS:
        raise RefusedError(AUTHORIZATION_ERRORS[error])


def denied_topics(names: set[str]) -> str | None:
    """The reason of topics on which a right is missing; null without any."""
    if not names:
        return None
    first = sorted(names)[:MAX_NAMES]
    more = ", …" if len(names) > MAX_NAMES else ""
    return f"{AUTHORIZATION_ERRORS[29]} ({', '.join(first)}{more})"

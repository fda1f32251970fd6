"""The groups or transactions that a partition of Kafka's own topics coordinates, asked of the broker that leads it."""

from __future__ import annotations

from typing import Any, Final

from kafka import errors as kafka_errors

from tidemark.detect.internal_topics import AT_RISK, GROUPS, coordinating_partition
from tidemark.kafka.client import make_admin
from tidemark.settings import Connection

# Names shown; a partition may coordinate thousands.
MAX_NAMES: Final = 50


def coordinated(
    connection: Connection, topic: str, partition: int, partitions: int, leader: int | None
) -> str | None:
    """A line that names them; null for an ordinary topic. `partitions` is how many the topic has.

    What the coordinator has forgotten, because its records are lost, it cannot name.
    """
    risk = AT_RISK.get(topic)
    if risk is None:
        return None
    if leader is None:
        return f"{risk.owners} coordinated here: unknown, for nobody leads the partition"
    admin = make_admin(connection)
    try:
        names = _names(admin, topic, leader)
    except (kafka_errors.KafkaError, KeyError) as error:
        return f"{risk.owners} coordinated here: could not be listed ({type(error).__name__}); it takes DESCRIBE on them"
    finally:
        admin.close()
    return line(
        risk.owners,
        [name for name in names if coordinating_partition(name, partitions) == partition],
    )


def line(who: str, names: list[str]) -> str:
    """The names in order, at most MAX_NAMES of them."""
    found = sorted(set(names))
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    return f"{who} coordinated here: {', '.join(found[:MAX_NAMES]) or 'none now'}{more}"


def _names(admin: Any, topic: str, leader: int) -> list[str]:
    if topic == GROUPS:
        return [group["group_id"] for group in admin.list_groups([leader])]
    return [
        listing.transactional_id
        for listings in admin.list_transactions([leader]).values()
        for listing in listings
    ]

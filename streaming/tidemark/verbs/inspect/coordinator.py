"""The consumer groups or transactional ids that a partition of an internal topic coordinates.

The broker that leads the partition is their coordinator and lists them.
"""

from __future__ import annotations

from typing import Any, Final

from kafka import errors as kafka_errors

from tidemark.detect.internal_topics import (
    AT_RISK,
    GROUPS,
    LISTED,
    coordinating_partition,
)
from tidemark.kafka.client import make_admin
from tidemark.settings import Connection

# A partition may coordinate thousands.
MAX_NAMES: Final = 50


def list_coordinated(
    connection: Connection, topic: str, partition: int, partitions: int, leader: int | None
) -> str | None:
    """A line with their names; null for other topics. `partitions` is the topic's number.

    The coordinator does not know, and cannot list, names with lost records.
    """
    if topic not in LISTED:
        return None
    subject = f"{AT_RISK[topic].owners} coordinated here"
    if leader is None:
        return f"{subject}: unknown, the partition has no leader"
    admin = make_admin(connection)
    try:
        names = set(_ask(admin, topic, leader))
    except (kafka_errors.KafkaError, KeyError) as error:
        return f"{subject}: cannot be listed ({type(error).__name__}); this needs DESCRIBE on them"
    finally:
        admin.close()
    found = sorted(name for name in names if coordinating_partition(name, partitions) == partition)
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    return f"{subject}: {', '.join(found[:MAX_NAMES]) or 'none now'}{more}"


def _ask(admin: Any, topic: str, broker: int) -> list[str]:
    if topic == GROUPS:
        return [group["group_id"] for group in admin.list_groups([broker])]
    listings = admin.list_transactions([broker]).values()
    return [listing.transactional_id for found in listings for listing in found]

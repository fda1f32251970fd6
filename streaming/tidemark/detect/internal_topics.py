"""Kafka's own topics: what depends on one of their partitions.

An id belongs to partition abs(hash of the id) mod the number of partitions
(GroupMetadataManager.partitionFor, TransactionStateManager.partitionFor). The hash is Java's
String.hashCode, its absolute value Utils.abs. The state of a share group in a partition that it
reads belongs to the partition of a text (SharePartitionKey.asCoordinatorKey), the segments of a
partition in remote storage to that of its topic id and number (RemoteLogMetadataTopicPartitioner).
"""

from __future__ import annotations

from typing import Final, NamedTuple

GROUPS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
SHARE_GROUPS: Final = "__share_group_state"
REMOTE_LOG: Final = "__remote_log_metadata"
# Their owners can be listed by name.
LISTED: Final = (GROUPS, TRANSACTIONS)


class Risk(NamedTuple):
    """What owns the records of a topic, what a loss of some of them causes, and by which `key` an
    owner belongs to a partition.
    """

    owners: str
    consequence: str
    key: str = "an id"


AT_RISK: Final = {
    GROUPS: Risk(
        "consumer groups",
        "their committed offsets may have gone back, so they read again or skip records",
    ),
    TRANSACTIONS: Risk(
        "transactional ids",
        "the outcomes of their transactions may be lost, so these may hang or end the other way",
    ),
    SHARE_GROUPS: Risk(
        "share groups",
        "they may get records again that they had acknowledged",
        "a text group id:topic id:partition",
    ),
    REMOTE_LOG: Risk(
        "partitions with segments in remote storage",
        "brokers may not find some of these segments, and may never delete them",
        "a topic id and a partition",
    ),
}


def coordinating_partition(name: str, partitions: int) -> int:
    """The partition, of `partitions`, with the records of a group.id or transactional.id."""
    # Over UTF-16 code units, in 32 bits with sign.
    value = 0
    for unit in memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def sentence(topic: str, partition: int) -> str:
    """What a loss or truncation puts at risk, with a leading space; empty for ordinary topics."""
    risk = AT_RISK.get(topic)
    if risk is None:
        return ""
    listing = f" (`tidemark inspect {topic}-{partition}` lists them)" if topic in LISTED else ""
    return (
        f" At risk are all {risk.owners} that {topic}-{partition} coordinates, that is, those "
        f"with {risk.key} that hashes to {partition} modulo the number of partitions{listing}: "
        f"{risk.consequence}."
    )

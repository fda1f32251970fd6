"""Kafka's own topics: the groups or transactions that depend on one of their partitions.

An id belongs to partition abs(hash of the id) mod the number of partitions
(GroupMetadataManager.partitionFor, TransactionStateManager.partitionFor). The hash is Java's
String.hashCode, its absolute value Utils.abs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

GROUPS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"


class Risk(NamedTuple):
    """What owns the records of a topic, and what a loss of some of them causes."""

    owners: str
    consequence: str


AT_RISK: Final = {
    GROUPS: Risk(
        "consumer groups",
        "their committed offsets may have gone back, so they read again or skip records",
    ),
    TRANSACTIONS: Risk(
        "transactional ids",
        "the outcomes of their transactions may be lost, so these may hang or end the other way",
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
    return (
        f" At risk are all {risk.owners} that {topic}-{partition} coordinates, that is, those "
        f"with an id that hashes to {partition} modulo the number of partitions "
        f"(`tidemark inspect {topic} {partition}` lists them): {risk.consequence}."
    )

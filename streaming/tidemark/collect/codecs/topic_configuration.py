"""The options of a topic that bear on replication (DescribeConfigs)."""

from __future__ import annotations

from typing import Final, NamedTuple

MIN_IN_SYNC: Final = "min.insync.replicas"
CLEANUP_POLICY: Final = "cleanup.policy"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
THROTTLED: Final = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)
TOPIC_OPTIONS: Final = (MIN_IN_SYNC, CLEANUP_POLICY, UNCLEAN_ELECTION, *THROTTLED)
ALL_REPLICAS: Final = "*"
BOOLEANS: Final = {"true": True, "false": False}


class TopicConfiguration(NamedTuple):
    """The options read from a topic's configuration; null where the broker did not report them."""

    min_in_sync: int | None = None
    compacted: bool | None = None
    unclean_leader_election: bool | None = None
    # (partition, broker) of each throttled replica, of leaders and followers; or ALL_REPLICAS.
    throttled: frozenset[tuple[int, int]] | str | None = None
    # Whether the replicas of a partition bound min_in_sync: since Kafka 3.7 (KAFKA-15583).
    min_is_bounded: bool = True


def decode_configuration(
    values: dict[str, str | None], *, min_is_bounded: bool = True
) -> TopicConfiguration:
    """A value that is missing or malformed is unknown."""
    minimum, policy = values.get(MIN_IN_SYNC), values.get(CLEANUP_POLICY)
    return TopicConfiguration(
        int(minimum) if minimum is not None and minimum.isdigit() else None,
        None if policy is None else "compact" in policy.split(","),
        BOOLEANS.get((values.get(UNCLEAN_ELECTION) or "").lower()),
        decode_throttled([values.get(name) for name in THROTTLED]),
        min_is_bounded,
    )


def decode_throttled(lists: list[str | None]) -> frozenset[tuple[int, int]] | str | None:
    """Lists of `partition:broker`, as ThrottledReplicaListValidator allows; null: not known."""
    found = set()
    for value in lists:
        if value is None:
            return None
        if value.strip() == ALL_REPLICAS:
            return ALL_REPLICAS
        for entry in value.split(",") if value.strip() not in ("", "none") else ():
            partition, _, broker = entry.strip().partition(":")
            if not _is_id(partition) or not _is_id(broker):
                return None
            found.add((int(partition), int(broker)))
    return frozenset(found)


def _is_id(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) <= 10

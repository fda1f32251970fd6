"""Configuration that costs records or availability at the next fault: one list per cluster.

Nothing here is a fault yet, so nothing here is an alert. A partition whose configuration was not
read is in no count: it is counted as unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from tidemark.core.records import View

Kind = Literal[
    "single_replica",
    "min_isr_equals_replicas",
    "min_isr_1",
    "unclean_leader_election",
    "one_rack",
    "elr_off",
    "leftover_throttle",
]


class Meaning(NamedTuple):
    """The label of a kind of risk, and what it means."""

    label: str
    text: str


MEANINGS: Final[dict[Kind, Meaning]] = {
    "single_replica": Meaning(
        "One replica", "the partition is offline with its broker, and lost with its disk"
    ),
    "min_isr_equals_replicas": Meaning(
        "Min ISR equals replicas", "one replica out of sync stops writes with acks=all"
    ),
    "min_isr_1": Meaning(
        "Min ISR 1", "a write with acks=all may be on the leader alone when it is acknowledged"
    ),
    "unclean_leader_election": Meaning(
        "Unclean elections on", "a replica without all committed records may become leader"
    ),
    "one_rack": Meaning(
        "In sync on one rack", "all in-sync replicas are on one rack, and the cluster has others"
    ),
    "elr_off": Meaning(
        "Eligible leader replicas off",
        "the brokers support them (KIP-966) and the cluster has them off, as after an upgrade: a "
        "crash of the last replica in sync may lose records",
    ),
    "leftover_throttle": Meaning(
        "Throttle left behind", "replication is throttled, and no reassignment is under way"
    ),
}
KINDS: Final = tuple(MEANINGS)


class PartitionRisks(NamedTuple):
    """The kinds that a partition has, and those of which it is not known.

    A throttle counts here whether or not a reassignment is under way.
    """

    found: tuple[Kind, ...]
    unknown: tuple[Kind, ...]


class RiskCount(NamedTuple):
    """One kind in one cluster: the partitions and the brokers that have it, and how many are not
    known.
    """

    kind: Kind
    partitions: int
    brokers: list[int]
    unknown: int

    @property
    def found(self) -> int:
        return self.partitions + len(self.brokers)


def partition_risks(view: View) -> PartitionRisks:
    """The risks of a partition's own configuration and placement."""
    throttled = view.throttled_replicas
    return _judge(
        len(set(view.assigned).difference(view.removing)),
        view.effective_min_in_sync_replicas,
        view.unclean_leader_election,
        view.in_sync_on_one_rack,
        None if throttled is None else bool(throttled),
    )


@lru_cache(maxsize=1024)
def _judge(
    replicas: int,
    minimum: int | None,
    unclean: bool | None,
    one_rack: bool | None,
    throttled: bool | None,
) -> PartitionRisks:
    several = replicas > 1
    judged: dict[Kind, bool | None] = {
        "single_replica": replicas == 1 if replicas else None,
        # Of a single replica, the first kind says it all.
        "min_isr_equals_replicas": several and (None if minimum is None else minimum >= replicas),
        "min_isr_1": several and (None if minimum is None else minimum == 1),
        "unclean_leader_election": several and unclean,
        "one_rack": several and one_rack,
        "leftover_throttle": throttled,
    }
    return PartitionRisks(
        tuple(kind for kind, risk in judged.items() if risk),
        tuple(kind for kind, risk in judged.items() if risk is None),
    )


def count_risks(
    found: Mapping[Kind, int],
    unknown: Mapping[Kind, int],
    brokers: Iterable[View],
    reassigning: int | None,
) -> list[RiskCount]:
    """Every kind of one cluster, from the sums over its partitions and the views of its brokers.

    `reassigning`: partitions under reassignment; None: not known, so neither is whether a throttle
    is left behind.
    """
    of_brokers: dict[Kind, list[int]] = {
        "unclean_leader_election": [],
        "elr_off": [],
        "leftover_throttle": [],
    }
    unknown_brokers = 0
    for view in brokers:
        configuration = view.configuration
        if configuration is None or view.broker is None:
            unknown_brokers += 1
            continue
        if configuration.unclean_leader_election:
            of_brokers["unclean_leader_election"].append(view.broker)
        if configuration.eligible_leader_replicas is False:
            of_brokers["elr_off"].append(view.broker)
        if configuration.replication_throttles:
            of_brokers["leftover_throttle"].append(view.broker)
    counts = []
    for kind in KINDS:
        with_it = sorted(of_brokers.get(kind, []))
        missing = unknown.get(kind, 0) + unknown_brokers * (kind in of_brokers)
        count = RiskCount(kind, found.get(kind, 0), with_it, missing)
        if kind == "leftover_throttle" and reassigning is None:
            count = RiskCount(kind, 0, [], count.found + missing)
        elif kind == "leftover_throttle" and reassigning:
            count = RiskCount(kind, 0, [], missing)
        counts.append(count)
    return counts


def list_risks(views: Iterable[View]) -> list[RiskCount]:
    """Every kind, from all views of one cluster: of partitions, brokers and the cluster."""
    found, unknown = Counter[Kind](), Counter[Kind]()
    brokers, reassigning = [], None
    for view in views:
        if view.scope == "partition":
            risks = partition_risks(view)
            found.update(risks.found)
            unknown.update(risks.unknown)
        elif view.scope == "broker":
            brokers.append(view)
        else:
            reassigning = view.reassigning
    return count_risks(found, unknown, brokers, reassigning)

"""COLLECTOR_CONFLICT: two collectors watch one share of a cluster, or two clusters have one name.

The newer process owns the share; events of the other one are refused. Of two clusters, each pass
may show another one.
"""

from __future__ import annotations

from itertools import combinations
from math import gcd
from typing import Final

from tidemark.core import activity
from tidemark.core.cluster import OWNER_SILENT_SECONDS, ClusterState, CollectorClock
from tidemark.core.partition import PartitionState
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Context, Detector

# A new process often starts a little before the old one ends.
HANDOVER_SECONDS: Final = 10.0
HANDOVER_PASSES: Final = 3
# For so long a change of the cluster's id is told.
CHANGED_SECONDS: Final = 600.0
# A broker may show an old image for a moment.
RETURNS: Final = 3


def evaluate(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """At most one condition per cluster, about the newest pair."""
    former, newest = cluster.former_cluster_id, cluster.cluster_id
    changed_ago = context.now - cluster.cluster_changed_at
    if former is not None and 0.0 <= changed_ago <= CHANGED_SECONDS:
        ids = sorted(map(str, (former, newest)))
        yield _condition(
            (ids[0], ids[1]),
            f"Two clusters answered as {context.kafka_cluster}: their ids are {ids[0]} and "
            f"{ids[1]}. Partitions of both are taken for one. Check clusters[].bootstrap_servers "
            "of every collector, and give each cluster a name of its own.",
            {"cluster_ids": ids, "changed_at": cluster.cluster_changed_at},
        )
        return
    alive = [
        (name, clock)
        for name, clock in cluster.collectors.items()
        if not cluster.is_silent(name, cluster.judged_by)
    ]
    newest_first = sorted(alive, key=lambda item: (item[1].collector_epoch, item[0]), reverse=True)
    for name, clock in newest_first:
        overlap = clock.older_at - clock.began_at
        older_age = abs(context.now - clock.older_at)
        if overlap >= HANDOVER_SECONDS and older_age <= OWNER_SILENT_SECONDS:
            yield _condition(
                (name, name),
                f"Two processes with the collector name {name} watch {context.kafka_cluster}. "
                "The one that started later owns it; events of the other are refused. Stop one "
                "of them, or give it its own name and share.",
                {
                    "older_pass_at": clock.older_at,
                    "newer_began_at": clock.began_at,
                    "shards": [clock.shard, clock.shard],
                },
            )
            return
    for (newer, new), (older, old) in combinations(newest_first, 2):
        if not shares_overlap(new.shard, old.shard) or not _outlived_handover(old):
            continue
        difference = _clock_difference(old, new)
        yield _condition(
            (older, newer),
            f"Collectors {older} and {newer} both watch {_share(old, new)} "
            f"{context.kafka_cluster}. {newer} started later and owns it; events of {older} are "
            f"refused. Stop {older}, or give each collector its own share (shard, shards)."
            f"{_clocks_text(older, newer, difference)}",
            {
                "refused_passes": old.refused,
                "newer_began_at": new.began_at,
                "shards": [old.shard, new.shard],
                "clock_difference_seconds": difference,
            },
        )
        return


def _outlived_handover(old: CollectorClock) -> bool:
    """Whether the older process ran beside the newer one for longer than a handover takes.

    Passes count in their order of arrival. The clocks of two machines are not compared.
    """
    longest = max(HANDOVER_SECONDS, HANDOVER_PASSES * old.period_ms / 1000.0)
    beside = old.monotonic - old.contested_from
    return old.contested >= HANDOVER_PASSES and beside >= longest


def _clock_difference(old: CollectorClock, new: CollectorClock) -> float | None:
    """By about how many seconds the newer process's clock is ahead; None where it may be a pause.

    Both have given a pass within OWNER_SILENT_SECONDS.
    """
    difference = new.ended_at - old.ended_at
    return round(difference) if abs(difference) > 2 * OWNER_SILENT_SECONDS else None


def _clocks_text(older: str, newer: str, difference: float | None) -> str:
    if difference is None:
        return ""
    ahead, behind = (newer, older) if difference > 0 else (older, newer)
    return (
        f" The clock of {ahead} is about {abs(difference) / 60:,.0f} minutes ahead of that of "
        f"{behind}: synchronize their clocks."
    )


def _condition(names: tuple[str, str], description: str, evidence: dict[str, object]) -> Condition:
    older, newer = names
    return Condition(
        severity="warning",
        description=description,
        evidence={"older": older, "newer": newer, **evidence},
        revision=f"{older} {newer}",
    )


def _share(old: CollectorClock, new: CollectorClock) -> str:
    if old.shard == new.shard:
        return "all of" if old.shard is None else f"shard {old.shard} of"
    if None in (old.shard, new.shard):
        return f"shard {old.shard or new.shard} of"
    return "some of the same partitions of"


def shares_overlap(one: str | None, other: str | None) -> bool:
    """Whether a partition can be in both shares.

    "1/4" has the numbers that are 1 modulo 4; None has all.
    """
    if one is None or other is None or one == other:
        return True
    try:
        (a, m), (b, n) = ([int(part) for part in share.split("/")] for share in (one, other))
        common = gcd(m, n)
    except ValueError:
        return False
    return common == 0 or (a - b) % common == 0


def evaluate_partition(state: PartitionState, context: Context) -> Conditions:
    """Brokers show the id of the topic before, again and again: a deleted topic's never returns."""
    former = state.former_topic
    if former is None or former.returned < RETURNS or context.now - former.at > CHANGED_SECONDS:
        return
    yield Condition(
        severity="warning",
        description=f"{context.name} is shown with two topic ids in turn, {state.topic_id} and "
        f"{former.topic_id}. Either two clusters answer as {context.kafka_cluster}: check "
        "clusters[].bootstrap_servers, and where the listeners of its brokers lead. Or a broker "
        "has metadata from before the topic was created again: restart it.",
        evidence={
            "topic_ids": [state.topic_id, former.topic_id],
            "returned": former.returned,
            "returned_at": former.at,
        },
    )


DETECTOR = Detector(
    "COLLECTOR_CONFLICT",
    "state",
    "Two collectors watch the same partitions, or two clusters have one name.",
    severities=("warning",),
    wakes_on=activity.SPARSE,
    state=evaluate_partition,
    cluster=evaluate,
)

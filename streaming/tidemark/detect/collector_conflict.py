"""COLLECTOR_CONFLICT: two collectors watch the same share of a cluster. The newer process owns it, the other works in vain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import gcd
from typing import Final

from tidemark.core.cluster import OWNER_SILENT_SECONDS, Clock, ClusterState
from tidemark.detect.context import ClusterContext
from tidemark.detect.detector import Condition, Detector

# A new process often starts a little before the old one has ended.
HANDOVER_SECONDS: Final = 10.0
HANDOVER_PASSES: Final = 3


def evaluate(cluster: ClusterState, context: ClusterContext) -> Iterator[Condition]:
    """One condition a cluster, about the newest pair."""
    present = {
        name: clock
        for name, clock in cluster.collectors.items()
        if abs(context.now - clock.ended_at) <= OWNER_SILENT_SECONDS
    }
    ranked = sorted(
        present.items(), key=lambda item: (item[1].collector_epoch, item[0]), reverse=True
    )
    for name, clock in ranked:
        if (
            clock.older_at - clock.began_at >= HANDOVER_SECONDS
            and context.now - clock.older_at <= OWNER_SILENT_SECONDS
        ):
            yield _condition(
                (name, name),
                f"Two processes call themselves collector {name} and watch {context.kafka_cluster}; the one that started later owns it, what "
                "the other sends is refused. Stop one of them, or give it a name and a share of its own.",
                {
                    "older_pass_at": clock.older_at,
                    "newer_began_at": clock.began_at,
                    "shards": [clock.shard, clock.shard],
                },
            )
            return
    for (newer, new), (older, old) in combinations(ranked, 2):
        if not shares_overlap(new.shard, old.shard) or not _outlived(old, new):
            continue
        yield _condition(
            (older, newer),
            f"Collectors {older} and {newer} both watch {_share(old, new)} {context.kafka_cluster}; {newer} started later and owns it, what {older} "
            f"sends is refused. Stop {older}, or give each a share of its own (shard, shards).",
            {
                "refused_passes": old.refused,
                "newer_began_at": new.began_at,
                "shards": [old.shard, new.shard],
            },
        )
        return


def _outlived(old: Clock, new: Clock) -> bool:
    """Whether the older process went on beside the newer one for longer than a handover takes.

    Passes are counted as they came: the clocks of two machines are not compared to tell that they overlap at all.
    """
    longest = max(HANDOVER_SECONDS, HANDOVER_PASSES * old.period_ms / 1000.0)
    return old.contested >= HANDOVER_PASSES and old.ended_at - new.began_at >= longest


def _condition(names: tuple[str, str], description: str, evidence: dict[str, object]) -> Condition:
    return Condition(
        severity="warning",
        description=description,
        evidence={"older": names[0], "newer": names[1], **evidence},
        revision=" ".join(names),
    )


def _share(old: Clock, new: Clock) -> str:
    if old.shard == new.shard:
        return "all of" if old.shard is None else f"shard {old.shard} of"
    return (
        f"shard {old.shard or new.shard} of"
        if None in (old.shard, new.shard)
        else "some of the same partitions of"
    )


def shares_overlap(one: str | None, other: str | None) -> bool:
    """Whether a partition can be in both shares: "1/4" holds the numbers that leave 1 modulo 4; null holds all."""
    if one is None or other is None or one == other:
        return True
    try:
        (a, m), (b, n) = ([int(part) for part in share.split("/")] for share in (one, other))
        common = gcd(m, n)
    except ValueError:
        return False
    return common == 0 or (a - b) % common == 0


COLLECTOR_CONFLICT = Detector(
    "COLLECTOR_CONFLICT", "state", "Two collectors watch the same partitions.", cluster=evaluate
)

"""The risky configurations of a live cluster, for `tidemark check-config --reach`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tidemark.assess.risky_configuration import MEANINGS, RiskCount, list_risks, partition_risks
from tidemark.collect.cluster_choice import without_own_topics
from tidemark.collect.metadata.refusals import ASKED
from tidemark.core.broker_outcomes import BrokerFinding
from tidemark.core.records import View
from tidemark.core.text import counted
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.few_passes import MIN_PASSES, few_passes
from tidemark.settings import Cluster, Settings
from tidemark.verbs.check_config.rights import answered

# A configuration may be unreadable for lack of a right: stop waiting for it.
MAX_SECONDS: Final = 6.0
MAX_NAMES: Final = 3


class Examined(NamedTuple):
    """A cluster after a few passes."""

    # Of the cluster, its brokers and its watched partitions.
    views: list[View]
    # What brokers answered and what they refused: `tidemark.collect.metadata.refusals.ASKED`.
    answered: set[str]
    refused: dict[str, tuple[str, ...]]
    # Of the last pass.
    findings: list[BrokerFinding]
    # All topics of the cluster that its answers list.
    topics: set[str]


def examine(cluster: Cluster, settings: Settings) -> Examined:
    """Observes a cluster for a few passes."""
    shown: set[str] = set()
    found = ClusterViews(settings.detect)
    watched = without_own_topics(cluster, settings.topics)
    for done in few_passes(cluster, settings.collect, watched.topics_allow, watched.topics_deny):
        for batch in done.batches:
            found.add(batch)
        shown |= answered(done.batches)
        views = [*found.views(cluster.name), *found.cluster_views(cluster.name)]
        # Some answers come with a later pass; an old broker never gives them.
        is_asked = shown | done.refused.keys() >= ASKED.keys()
        if done.seconds > MAX_SECONDS or (
            done.number > MIN_PASSES and is_asked and _is_complete(views)
        ):
            break
    return Examined(views, shown, done.refused, done.findings, done.topics)


def _is_complete(views: list[View]) -> bool:
    return all(
        not partition_risks(view).unknown
        if view.scope == "partition"
        else view.scope == "cluster" or view.configuration is not None or view.outcome != "ok"
        for view in views
    )


def risk_lines(views: list[View]) -> list[str]:
    """One line per kind that the cluster has, or of which something is unknown."""
    partitions = [view for view in views if view.scope == "partition"]
    if not partitions:
        return ["risky configuration: unknown; no partition was observed"]
    lines = [_line(risk, partitions) for risk in list_risks(views) if risk.found or risk.unknown]
    return lines or [f"no risky configuration in {counted(len(partitions), 'partition')}"]


def _line(risk: RiskCount, partitions: Iterable[View]) -> str:
    label, text = MEANINGS[risk.kind]
    parts = []
    if risk.partitions:
        names = [
            f"{view.topic}-{view.partition}"
            for view in partitions
            if risk.kind in partition_risks(view).found
        ]
        more = ", …" if len(names) > MAX_NAMES else ""
        named = f"{', '.join(names[:MAX_NAMES])}{more}"
        parts.append(f"{counted(risk.partitions, 'partition')} ({named})")
    if risk.brokers:
        parts.append(f"brokers {', '.join(map(str, risk.brokers))}")
    if risk.unknown:
        parts.append(f"{risk.unknown} unknown")
    return f"{label}: {'; '.join(parts)}: {text}"

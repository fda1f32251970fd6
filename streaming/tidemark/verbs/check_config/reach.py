"""`tidemark check-config --reach`: what answers, what may be done there, and what is risky."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from tidemark.assess.risky_configuration import MEANINGS, RiskCount, list_risks, partition_risks
from tidemark.collect.cluster_choice import unwatched_line, without_own_topics
from tidemark.collect.metadata.refusals import ASKED, TOPICS
from tidemark.collect.sources.jmx.endpoint import scrape
from tidemark.collect.sources.jmx.figures import ScrapeError
from tidemark.core.broker_outcome_texts import WARNINGS, BrokerFinding
from tidemark.core.errors import TidemarkError
from tidemark.core.records import View
from tidemark.core.text import counted
from tidemark.kafka.client import check_reachable
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.few_passes import MIN_PASSES, few_passes
from tidemark.settings import Cluster, Settings
from tidemark.verbs.check_config.rights import answered, api_lines, own_topic_lines, sees_all_topics

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


class Reached(msgspec.Struct):
    """A Kafka or JMX endpoint: `error` is None where it answers. `details` are rights and risks."""

    kind: str
    name: str
    error: str | None = None
    details: list[str] = []

    def lines(self) -> list[str]:
        """For standard output where it answers, else for standard error."""
        if self.error is not None:
            return [*(f"  {line}" for line in self.details), f"{self.name}: {self.error}"]
        done = "answers" if self.kind == "kafka" else "is read"
        return [f"ok: {self.name} {done}", *(f"  {line}" for line in self.details)]


def reach(settings: Settings) -> Iterator[Reached]:
    """Connects to each Kafka in turn, then reads each JMX endpoint once."""
    connections = [("kafka (Tidemark's own topics)", settings.kafka)]
    connections += [(f"cluster {cluster.name}", cluster) for cluster in settings.clusters]
    for name, connection in connections:
        found = Reached("kafka", name)
        try:
            check_reachable(connection)
            if isinstance(connection, Cluster):
                found.details, found.error = _examined(connection, settings)
            else:
                found.details = list(own_topic_lines(settings))
        except TidemarkError as error:
            found.error = str(error)
        yield found
    for cluster in settings.clusters:
        for endpoint in cluster.jmx:
            found = Reached("jmx", f"JMX of broker {endpoint.broker} of cluster {cluster.name}")
            try:
                reader = scrape(endpoint, settings.collect.jmx_timeout_seconds)
                reader.event(endpoint.broker, 0.0)
            except ScrapeError as error:
                found.error = str(error)
            yield found


def raise_failures(found: Sequence[Reached]) -> None:
    """Raises TidemarkError where a connection failed."""
    kafka = [each for each in found if each.kind == "kafka"]
    if failed := sum(each.error is not None for each in kafka):
        raise TidemarkError(f"{failed} of {len(kafka)} Kafka connections failed.")
    if unread := sum(each.error is not None for each in found):
        raise TidemarkError(f"{unread} JMX endpoints cannot be read.")


def _examined(cluster: Cluster, settings: Settings) -> tuple[list[str], str | None]:
    """The rights on a cluster and its risky configurations, which are no error; and the brokers
    that do not answer at the addresses that they give to clients.
    """
    found = examine(cluster, settings)
    has_topics = TOPICS not in found.refused or not sees_all_topics(cluster)
    rights = api_lines(cluster, found.answered, found.refused, has_topics)
    silent = [str(each) for each in found.findings if each.outcome not in WARNINGS]
    warnings = [str(each) for each in found.findings if each.outcome in WARNINGS]
    details = [*warnings, *rights, *risk_lines(found.views)]
    if not cluster.watch_own_topics and not found.topics.isdisjoint(settings.topics.names):
        details.append(unwatched_line(cluster, settings.topics))
    return details, "; ".join(silent) or None

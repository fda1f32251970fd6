"""`tidemark check-config --reach`: what answers, what may be done there, and what is risky."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidemark.collect.cluster_choice import unwatched_line
from tidemark.collect.metadata.refusals import TOPICS
from tidemark.collect.sources.jmx.endpoint import scrape
from tidemark.collect.sources.jmx.figures import ScrapeError
from tidemark.core.broker_outcomes import WARNINGS
from tidemark.core.errors import TidemarkError
from tidemark.kafka.client import check_reachable
from tidemark.settings import Cluster, Settings
from tidemark.verbs.check_config.rights import api_lines, own_topic_lines, sees_all_topics
from tidemark.verbs.check_config.risks import examine, risk_lines


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

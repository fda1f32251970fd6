"""`tidemark check-config --reach`: what answers, what may be done there, and what is risky."""

from __future__ import annotations

import click

from tidemark.collect.jmx.endpoint import scrape
from tidemark.collect.jmx.figures import ScrapeError
from tidemark.core.errors import TidemarkError
from tidemark.kafka.client import check_reachable
from tidemark.settings import Cluster, Settings
from tidemark.verbs.rights import api_lines, own_topic_lines
from tidemark.verbs.risks import examine, risk_lines


def check_reach(settings: Settings) -> None:
    """Connects to each Kafka in turn and reports on all of them.

    Raises TidemarkError where a connection fails.
    """
    connections = [("kafka (Tidemark's own topics)", settings.kafka)]
    connections += [(f"cluster {cluster.name}", cluster) for cluster in settings.clusters]
    failed = 0
    for name, connection in connections:
        try:
            check_reachable(connection)
            click.echo(f"ok: {name} answers")
            if isinstance(connection, Cluster):
                _report_cluster(connection, settings)
            else:
                for line in own_topic_lines(settings):
                    click.echo(f"  {line}")
        except TidemarkError as error:
            failed += 1
            click.echo(f"{name}: {error}", err=True)
    unread = _unread_endpoints(settings)
    if failed:
        raise TidemarkError(f"{failed} of {len(connections)} Kafka connections failed.")
    if unread:
        raise TidemarkError(f"{unread} JMX endpoints cannot be read.")


def _unread_endpoints(settings: Settings) -> int:
    """Reads each JMX endpoint once and reports on all of them."""
    unread = 0
    for cluster in settings.clusters:
        for endpoint in cluster.jmx:
            name = f"JMX of broker {endpoint.broker} of cluster {cluster.name}"
            try:
                reader = scrape(endpoint, settings.collect.jmx_timeout_seconds)
                reader.event(endpoint.broker, 0.0)
                click.echo(f"ok: {name} is read")
            except ScrapeError as error:
                unread += 1
                click.echo(f"{name}: {error}", err=True)
    return unread


def _report_cluster(cluster: Cluster, settings: Settings) -> None:
    """Prints the rights on a cluster, and its risky configurations. They are no error."""
    found = examine(cluster, settings)
    for line in api_lines(cluster, found.answered, found.refused):
        click.echo(f"  {line}")
    for line in risk_lines(found.views):
        click.echo(f"  {line}")

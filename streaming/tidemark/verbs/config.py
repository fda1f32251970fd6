"""`tidemark check-config` and `tidemark version`."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Final

import click

import tidemark.settings
from tidemark import __version__
from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.settings import Cluster, Settings, load_settings, misspelt_variables
from tidemark.verbs.options import config_option

SCHEMA: Final = Path(tidemark.settings.__file__).with_name("tidemark.schema.json")


@click.command("check-config")
@config_option
@click.option(
    "--reach",
    is_flag=True,
    help="Also connect to every Kafka and JMX endpoint in it, and list risky configurations of "
    "the clusters.",
)
@click.option(
    "--schema",
    is_flag=True,
    help="Print the JSON Schema of the configuration, for editors, and exit.",
)
@click.option(
    "--test-receiver", metavar="NAME", help="Also send a test notification to this receiver."
)
def check_config(config: Path | None, reach: bool, schema: bool, test_receiver: str | None) -> None:
    """Check the configuration file, the environment variables and the client options.

    Exit status: 0 valid, 2 invalid, 1 no connection or no delivery.
    """
    if schema:
        click.echo(SCHEMA.read_text(encoding="utf-8"), nl=False)
        return
    # `tidemark version` also works without kafka-python.
    from tidemark.verbs.check_files import check_files

    settings = load_settings(config)
    check_files(settings)
    if test_receiver is not None:
        _require_receiver(settings, test_receiver)
    for name, option in misspelt_variables(os.environ):
        click.echo(f"{name} is no option and is ignored; did you mean {option}?", err=True)
    watched = ", ".join(cluster.name for cluster in settings.clusters) or "none"
    click.echo(f"ok: {config or 'defaults and environment'}; watched clusters: {watched}")
    if reach:
        _reach(settings)
    if test_receiver is not None:
        _test_receiver(settings, test_receiver)


def _reach(settings: Settings) -> None:
    """Connects to each Kafka in turn and reports on all of them."""
    from tidemark.kafka.client import check_reachable

    connections = [("kafka (Tidemark's own topics)", settings.kafka)]
    connections += [(f"cluster {cluster.name}", cluster) for cluster in settings.clusters]
    failed = 0
    for name, connection in connections:
        try:
            check_reachable(connection)
            click.echo(f"ok: {name} answers")
            if isinstance(connection, Cluster):
                _report_risks(connection, settings)
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
    from tidemark.collect.jmx.endpoint import scrape
    from tidemark.collect.jmx.figures import ScrapeError

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


def _report_risks(cluster: Cluster, settings: Settings) -> None:
    """Prints the risky configurations of a cluster, and missing rights. They are no error."""
    from tidemark.verbs.risks import find_risks, risk_lines

    views, refused = find_risks(cluster, settings)
    for line in [*risk_lines(views), *refused]:
        click.echo(f"  {line}")


def _require_receiver(settings: Settings, name: str) -> None:
    names = sorted(route.name for route in settings.notify.routes)
    if name not in names:
        raise ConfigError(
            f"--test-receiver: there is no receiver `{name}`; "
            f"there are: {', '.join(names) or 'none'}."
        )


def _test_receiver(settings: Settings, name: str) -> None:
    # The exporters are installed only where they run.
    from tidemark_exporters.notify.receiver_check import send_test_notification

    success, lines = send_test_notification(settings, name)
    for line in lines:
        click.echo(line, err=not line.startswith("ok: "))
    if not success:
        raise TidemarkError(f"receiver `{name}` did not take the test notification.")


@click.command("version")
def version() -> None:
    """Print the versions that a bug report needs."""
    click.echo(f"tidemark {__version__}")
    click.echo(f"python {platform.python_version()}")
    for package in ("pyspark", "kafka-python"):
        try:
            found = version_of(package)
        except PackageNotFoundError:
            found = "not installed"
        click.echo(f"{package} {found}")

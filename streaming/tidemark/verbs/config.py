"""`tidemark check-config` and `tidemark version`: what would run here, before it runs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path

import click

from tidemark import __version__
from tidemark.core.errors import TidemarkError
from tidemark.settings import Settings, client_options, load_settings


@click.command(
    "check-config",
    help="Check the configuration file, the environment and the client options; exit 2 when they are wrong.",
)
@click.option(
    "--config",
    "config",
    type=click.Path(path_type=Path),
    envvar="TIDEMARK_CONFIG",
    help="The YAML file; without one, defaults and environment.",
)
@click.option(
    "--reach",
    is_flag=True,
    help="Also connect to every Kafka named there; exit 1 when one does not answer.",
)
@click.option(
    "--test-receiver",
    metavar="NAME",
    help="Also send one test notification to this receiver; exit 1 when it is not taken.",
)
def check_config(config: Path | None, reach: bool, test_receiver: str | None) -> None:
    settings = load_settings(config)
    for connection in (settings.kafka, *settings.clusters):
        client_options(connection)
    watched = ", ".join(cluster.name for cluster in settings.clusters) or "none"
    click.echo(f"ok: {config or 'defaults and environment'}; watched clusters: {watched}")
    if reach:
        _reach(settings)
    if test_receiver is not None:
        _test_receiver(settings, test_receiver)


def _reach(settings: Settings) -> None:
    """Connects to each Kafka in turn and tells of all of them; ends with 1 if any did not answer."""
    from tidemark.kafka.client import check_reachable

    failed = 0
    named = [
        ("kafka (Tidemark's own topics)", settings.kafka),
        *((f"cluster {c.name}", c) for c in settings.clusters),
    ]
    for name, connection in named:
        try:
            check_reachable(connection)
        except TidemarkError as error:
            failed += 1
            click.echo(f"{name}: {error}", err=True)
        else:
            click.echo(f"ok: {name} answers")
    if failed:
        raise TidemarkError(f"{failed} of {len(named)} Kafka connections failed.")


def _test_receiver(settings: Settings, name: str) -> None:
    from tidemark_exporters.notify.test_notification import send_test_notification

    success, lines = send_test_notification(settings, name)
    for line in lines:
        click.echo(line, err=not line.startswith("ok: "))
    if not success:
        raise TidemarkError(f"receiver `{name}` did not take the test notification.")


@click.command("version", help="Print the versions that matter in a bug report.")
def version() -> None:
    click.echo(f"tidemark {__version__}")
    click.echo(f"python {platform.python_version()}")
    for package in ("pyspark", "kafka-python"):
        try:
            found = version_of(package)
        except PackageNotFoundError:
            found = "not installed"
        click.echo(f"{package} {found}")

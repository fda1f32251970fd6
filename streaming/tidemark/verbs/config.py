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
from tidemark.settings import Settings, load_settings, misspelt_variables
from tidemark.verbs.options import config_option

SCHEMA: Final = Path(tidemark.settings.__file__).with_name("tidemark.schema.json")


@click.command("check-config")
@config_option
@click.option(
    "--reach",
    is_flag=True,
    help="Also connect to every Kafka and JMX endpoint in it, and list what the user may do there, "
    "by API, and risky configurations of the clusters.",
)
@click.option(
    "--acls",
    is_flag=True,
    help="Print the kafka-acls.sh commands that grant the rights of each cluster and verb.",
)
@click.option(
    "--schema",
    is_flag=True,
    help="Print the JSON Schema of the configuration, for editors, and exit.",
)
@click.option(
    "--test-receiver", metavar="NAME", help="Also send a test notification to this receiver."
)
def check_config(
    config: Path | None, reach: bool, acls: bool, schema: bool, test_receiver: str | None
) -> None:
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
    if acls:
        from tidemark.verbs.acls import all_commands

        for line in all_commands(settings):
            click.echo(line)
    if reach:
        from tidemark.verbs.reach import check_reach

        check_reach(settings)
    if test_receiver is not None:
        _test_receiver(settings, test_receiver)


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

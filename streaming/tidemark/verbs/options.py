"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, load_settings

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="TIDEMARK_CONFIG",
    help="YAML configuration file. Default: $TIDEMARK_CONFIG.",
)
bootstrap_option = click.option(
    "--bootstrap",
    metavar="HOST:PORT,…",
    help="Bootstrap servers to use instead of the configured ones.",
)
cluster_option = click.option(
    "--cluster", "name", metavar="NAME", help="Cluster to use, by its configured name."
)
command_config_option = click.option(
    "--command-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Security options as a properties file of Kafka's own tools, in place of the configured "
    "ones.",
)


def load_with(config: Path | None, command_config: Path | None) -> Settings:
    """The settings, with the client options of `--command-config` for every connection."""
    settings = load_settings(config)
    if command_config is None:
        return settings
    from tidemark.kafka.command_config import read_command_config

    client = read_command_config(command_config)
    settings.kafka = replace(settings.kafka, client=client)
    settings.clusters = [replace(cluster, client=client) for cluster in settings.clusters]
    return settings


def refuse_both(source: str | None, bootstrap: str | None) -> None:
    """Raises ConfigError where both a recording and brokers are given."""
    if source is not None and bootstrap is not None:
        raise ConfigError("--from reads a recording; leave out --bootstrap.")

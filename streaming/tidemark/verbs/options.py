"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path

import click

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

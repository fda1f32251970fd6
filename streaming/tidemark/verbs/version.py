"""`tidemark version`."""

from __future__ import annotations

import json
import platform
from importlib import metadata

import click

from tidemark import __version__
from tidemark.command_line.output import echo


@click.command("version")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def version(as_json: bool) -> None:
    """Print the versions that a bug report needs."""
    found: dict[str, str | None] = {"tidemark": __version__, "python": platform.python_version()}
    for package in ("pyspark", "kafka-python"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    if as_json:
        echo(json.dumps(found))
        return
    for name, number in found.items():
        echo(f"{name} {number or 'not installed'}")

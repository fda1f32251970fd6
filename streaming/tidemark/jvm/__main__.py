"""`python -m tidemark.jvm FOLDER` puts Spark's Kafka connector into a folder, for TIDEMARK_JARS.

For images and for machines without a way to a registry.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from tidemark.core.errors import TidemarkError
from tidemark.jvm.jars import connector_jars


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        click.echo("usage: python -m tidemark.jvm FOLDER", err=True)
        return 2
    folder = Path(arguments[0])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for jar in connector_jars():
            shutil.copy(jar, folder)
    except TidemarkError as error:
        click.echo(f"tidemark.jvm: {error}", err=True)
        return error.exit_code
    except OSError as error:
        click.echo(f"tidemark.jvm: cannot write {error.filename}: {error.strerror}.", err=True)
        return 1
    click.echo(f"{len(list(folder.glob('*.jar')))} jars in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

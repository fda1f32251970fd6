"""`python -m tidemark.jvm FOLDER` puts Spark's Kafka connector into a folder, for TIDEMARK_JARS.

For images and for machines without a way to a registry. `--java-home` prints the JAVA_HOME of the
Java that Tidemark uses.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

import click

from tidemark.core.errors import TidemarkError
from tidemark.jvm.jars import connector_jars
from tidemark.jvm.java import find_java

USAGE: Final = "usage: python -m tidemark.jvm FOLDER | --java-home"


def main(arguments: list[str]) -> int:
    is_folder = len(arguments) == 1 and not arguments[0].startswith("-")
    if not is_folder and arguments != ["--java-home"]:
        click.echo(USAGE, err=True)
        return 2
    folder = Path(arguments[0])
    try:
        if not is_folder:
            click.echo(find_java().home)
            return 0
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

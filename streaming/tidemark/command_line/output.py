"""What verbs print: names and texts of records, brokers and files are never codes of a terminal."""

from __future__ import annotations

from typing import IO, Any

import click

from tidemark.core.text import printable_lines


def echo(
    message: str | bytes = "", file: IO[Any] | None = None, *, nl: bool = True, err: bool = False
) -> None:
    """As click's, with escapes for what does not print; in JSON they are JSON's own."""
    if isinstance(message, bytes):
        click.echo(printable_lines(message.decode()).encode(), file, nl, err)
    else:
        click.echo(printable_lines(message), file, nl, err)

"""What verbs print: names and texts of records, brokers and files are never codes of a terminal."""

from __future__ import annotations

import re
from typing import IO, Any, Final

import click

from tidemark.core.text import printable_lines

# Bold, dim and colours, as verbs set them by click.style; a name that has them moves nothing.
_STYLE: Final = re.compile(r"(\x1b\[(?:[0-2]|3[0-7]|9[0-7])m)")


def echo(
    message: str | bytes = "", file: IO[Any] | None = None, *, nl: bool = True, err: bool = False
) -> None:
    """As click's, with escapes for what does not print; in JSON they are JSON's own."""
    if isinstance(message, bytes):
        click.echo(_shown(message.decode()).encode(), file, nl, err)
    else:
        click.echo(_shown(message), file, nl, err)


def _shown(text: str) -> str:
    parts = _STYLE.split(text)
    return "".join(part if at % 2 else printable_lines(part) for at, part in enumerate(parts))

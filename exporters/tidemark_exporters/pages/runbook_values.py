"""The values of an alert in the commands of its runbook, so that a shell reads each as one word."""

from __future__ import annotations

import re
import shlex
from typing import Final

from tidemark.core.links import MAX_CHARACTERS
from tidemark_exporters.pages.query import BadRequestError, Query

# Parameters of the address, each the name of a variable in lower case.
TEXTS: Final = ("cluster", "topic", "holders")
NUMBERS: Final = ("partition", "broker", "old_leader", "lost_from", "lost_to")
VARIABLE: Final = re.compile(r"\$([A-Z_]+)")
_SET: Final = re.compile(r"^export ([A-Z_]+)=\S+", re.MULTILINE)
# Of a script: a string, a comment, an escaped character, a variable.
_PIECE: Final = re.compile(
    r"""'[^']*'|"(?:[^"\\]|\\.)*"|(?<!\S)\#.*|\\.|\$(?P<name>[A-Z_]+)""", re.VERBOSE
)

Values = tuple[tuple[str, str], ...]


def read_values(raw_query: str) -> Values:
    """(parameter, value) of each that is given. Raises BadRequestError."""
    query = Query(raw_query, (*TEXTS, *NUMBERS))
    for name in NUMBERS:
        query.number(name)
    for name in TEXTS:
        value = query.given.get(name, "")
        # A terminal acts on control characters that are pasted.
        if len(value) > MAX_CHARACTERS or not value.isprintable():
            raise BadRequestError(
                f"{name} must have at most {MAX_CHARACTERS} characters, all of them printable."
            )
    return tuple(query.given.items())


def fill_for_each(script: str, values: dict[str, str]) -> str:
    """As `fill`; what saves a log, for each broker that has the records."""
    holders = values.get("holders", "").split(",")
    if len(holders) < 2 or not script.startswith("grep") or "mkdir" not in script:
        return fill(script, values)
    return "".join(fill(script, values | {"old_leader": holder}) for holder in holders)


def fill(script: str, values: dict[str, str]) -> str:
    """The script with the values. A shell refuses a command that needs one which is not known."""

    def outside(piece: re.Match[str]) -> str:
        if piece[0].startswith('"'):
            return VARIABLE.sub(inside, piece[0])
        if piece["name"] is None:
            return piece[0]
        value = values.get(piece["name"].lower())
        return f'"${{{piece["name"]}:?}}"' if value is None else shlex.quote(value)

    def inside(variable: re.Match[str]) -> str:
        value = values.get(variable[1].lower())
        if value is None:
            return f"${{{variable[1]}:?}}"
        return value if shlex.quote(value) == value else f'"{shlex.quote(value)}"'

    def setting(line: re.Match[str]) -> str:
        value = values.get(line[1].lower())
        return f"# {line[0]}" if value is None else f"export {line[1]}={shlex.quote(value)}"

    return _PIECE.sub(outside, _SET.sub(setting, script))

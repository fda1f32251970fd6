"""Messages without the values of environment variables, in which orchestrators put secrets.

A structured variable, such as TIDEMARK_NOTIFY_RECEIVERS, has many values. Its keys are hidden too:
where the space after a colon is missing, a key contains the value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from tidemark.core.errors import ConfigError
from tidemark.detect import DETECTORS
from tidemark.settings.expressions import ALERTS
from tidemark.settings.schema import Settings
from tidemark.settings.yaml_file import parse_yaml

# Shorter texts are hidden only in backquotes: in a sentence they would be found in other words.
MIN_BARE: Final = 4
# From here on a text is hidden in the middle of a word too.
MIN_INSIDE: Final = 7
# Of messages: they say nothing of a value.
_OF_MESSAGES: Final = frozenset({"spark.", "kafka.", "tidemark", "Basic", "true", "false", "null"})


class Variable(NamedTuple):
    """A variable that gives an option. `is_structured`: its text is YAML."""

    name: str
    text: str
    is_structured: bool


class _Hidden(NamedTuple):
    text: str
    label: str
    is_number: bool = False
    is_name: bool = False


def without_values(
    message: str,
    variables: Iterable[Variable],
    known: Collection[str] = (),
    *,
    names_are_public: bool = False,
) -> str:
    """The message as one line, with the names of variables in place of what they contain.

    Names of options and words of enumerations are shown, and the words of `known`.
    `names_are_public`: so are the names of clusters, receivers and windows, which logs, metrics and
    pages have once the settings are loaded.
    """
    parts = [part for variable in variables for part in _parts(variable)]
    public = {each.text for each in parts if each.is_name} if names_are_public else set()
    shown = known_words() | {*known} | public
    found = {
        part: each
        for each in parts
        for part in (each.text, " ".join(each.text.split()), each.text.rpartition("@")[2])
        if part.strip() and part not in shown
    }
    longest_first = sorted(found, key=len, reverse=True)
    # One pass, so that no text is found in the name of a variable.
    patterns = [
        *(f"`{re.escape(text)}`" for text in longest_first),
        *(_bare(text) for text in longest_first if not _is_only_quoted(found[text], text)),
    ]
    message = " ".join(message.split())
    if patterns:
        message = re.sub("|".join(patterns), lambda match: _label(found, match[0]), message)

    def of_part(quoted: re.Match[str]) -> str:
        """A quotation that is a part of a value, such as the beginning of a URL."""
        inner = quoted[1]
        labels = (found[text].label for text in longest_first if inner in text)
        return next(labels, quoted[0]) if inner and inner not in shown else quoted[0]

    return re.sub(r"`([^`]*)`", of_part, message)


def _is_only_quoted(each: _Hidden, text: str) -> bool:
    """Whether it is hidden in backquotes only."""
    return len(text) < (MIN_INSIDE if each.is_number else MIN_BARE)


def _bare(text: str) -> str:
    escaped = re.escape(text)
    return escaped if len(text) >= MIN_INSIDE else rf"(?<!\w){escaped}(?!\w)"


def _label(found: Mapping[str, _Hidden], text: str) -> str:
    return found[text if text in found else text[1:-1]].label


def _parts(variable: Variable) -> Iterator[_Hidden]:
    name, text, is_structured = variable
    if not is_structured:
        # A list of strings, or one text.
        yield _Hidden(text, f"the value of {name}")
        for word in text.split(","):
            yield _Hidden(word.strip(), f"the value of {name}", word.strip().isdecimal())
        return
    try:
        document = parse_yaml(text, name)
    except ConfigError:
        # The message may still name a key.
        for word in re.findall(r"[^\s{}\[\],:\"'`]+", text):
            yield _Hidden(word, f"a value of {name}")
        return
    yield from _leaves(document, name)


def _leaves(value: Any, name: str, is_name: bool = False) -> Iterator[_Hidden]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield _Hidden(str(key), f"a key of {name}")
            yield from _leaves(inner, name, key == "name")
    elif isinstance(value, list | tuple | set):
        for inner in value:
            yield from _leaves(inner, name)
    elif isinstance(value, str):
        yield _Hidden(value, f"a value of {name}", value.isdecimal(), is_name)
    elif value is not None and not isinstance(value, bool):
        yield _Hidden(str(value), f"a value of {name}", is_number=True)


@cache
def known_words() -> frozenset[str]:
    """Names of options, words of enumerations and defaults: documented, and so no secrets."""
    words = {*_OF_MESSAGES, *DETECTORS, *ALERTS, *_names(inspect.type_info(Settings))}
    defaults = msgspec.to_builtins(Settings())
    return frozenset(words | {each.text for each in _leaves(defaults, "")})


def _names(kind: inspect.Type) -> Iterator[str]:
    if isinstance(kind, inspect.Metadata):
        yield from _names(kind.type)
    elif isinstance(kind, inspect.StructType):
        for option in kind.fields:
            yield option.name
            yield from _names(option.type)
    elif isinstance(kind, inspect.ListType):
        yield from _names(kind.item_type)
    elif isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _names(each)
    elif isinstance(kind, inspect.LiteralType):
        yield from map(str, kind.values)

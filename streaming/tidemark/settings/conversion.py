"""A document as `Settings`, and messages that name the option, its source, and the near word.

No message shows a value of an environment variable: orchestrators put secrets there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec
from msgspec import Struct, inspect

from tidemark.core.errors import ConfigError
from tidemark.settings.limits import BEYOND, limits
from tidemark.settings.schema import Settings

_PATH: Final = re.compile(
    r"^(?P<problem>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?$", re.DOTALL
)
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")
# Of `{password:secret}`, which is one key in YAML.
SPACE_CURE: Final = "write a space after the colon"
# The beginning of msgspec's message -> what to write instead.
CURES: Final = (
    (re.compile(r"Expected `str(?: \| null)?`, got"), "write it in quotes"),
    (re.compile(r"Expected `array[^`]*`, got"), "write a list: [a, b]"),
    (re.compile(r"Expected `object[^`]*`, got"), "write a mapping, one `key: value` a line"),
    (re.compile(r"Expected `bool`"), "write true or false"),
    (re.compile(r"Expected `(int|float)[^`]*`, got"), "write a number without a unit"),
)


def convert(document: Mapping[str, Any], file: str | None, names: Mapping[str, str]) -> Settings:
    """The settings of a document, unchecked. `names`: dotted path -> variable that gave the value.

    Raises ConfigError with the first wrong option, by `$.section.option`.
    """
    # A section that the file leaves empty has its defaults.
    given = {section: value for section, value in document.items() if value is not None}
    try:
        return msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        text = str(error)
    except RecursionError:
        text = "it is nested too deeply"
    raise ConfigError(" ".join(_message(text, file, names).split()))


def near_word(word: str, known: Iterator[str] | Any) -> str:
    """`; did you mean …?`, or nothing where no known word is near."""
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def with_stop(text: str) -> str:
    """A sentence with its end; a question, such as that for the near word, has it."""
    return text if text.endswith("?") else f"{text}."


def shown_key(key: str) -> str:
    """A key up to a colon or an equals sign: what follows may be a value, and a secret."""
    return re.split("[:=]", key, maxsplit=1)[0]


def _message(text: str, file: str | None, names: Mapping[str, str]) -> str:
    path = _path(_parts(text))
    variable = next((names[key] for key in _prefixes(path) if key in names), None)
    text = explain(text, Settings, hides_value=variable is not None)
    where = f" in {file}" if file is not None else ""
    where = f", variable {variable}" if variable is not None else where
    return f"configuration{where}: {with_stop(text)} docs/reference-config.yaml lists every option."


def explain(text: str, kind: type[Struct], *, hides_value: bool = False) -> str:
    """A message of msgspec about a document of a type, with the cure and the near word.

    A value that is not in its enumeration is shown, unless `hides_value`.
    """
    match = _parts(text)
    problem, path = match["problem"], _path(match)
    enumeration = re.match(r"Invalid enum value (.*)$", problem, re.DOTALL)
    unknown = re.search(r"unknown field `(.*)`$", problem, re.DOTALL)
    if enumeration is not None:
        found = _type_at(kind, path)
        if match["key"] and isinstance(found, inspect.DictType):
            found = _plain(found.key_type)
        choices = _choices(found)
        if hides_value:
            text = text.replace(problem, "Invalid value")
        value = enumeration[1].strip("'\"")
        return f"{text}; it is one of {', '.join(choices)}{near_word(value, choices)}"
    if unknown is not None:
        key = shown_key(unknown[1])
        if key != unknown[1]:
            return f"{text.replace(unknown[1], key)}; {SPACE_CURE}"
        return text + _near_option(kind, key, path)
    if BEYOND.match(problem):
        cure = limits(_type_at(kind, path))
        # A regular expression is no help to read.
        shown = text.replace(problem, re.sub(r" matching regex .*", " of another form", problem))
        return shown if cure is None else f"{shown}; {cure}"
    cures = [cure for pattern, cure in CURES if pattern.match(problem)]
    return f"{text}; {cures[0]}" if cures else text


def _parts(text: str) -> re.Match[str]:
    match = _PATH.match(text)
    assert match is not None
    return match


def _path(match: re.Match[str]) -> list[str]:
    return [name or index for name, index in _STEP.findall(match["path"] or "")]


def _prefixes(path: list[str]) -> Iterator[str]:
    for length in range(len(path), 0, -1):
        yield ".".join(path[:length])


def _near_option(kind: type[Struct], name: str, path: list[str]) -> str:
    """An option of the same section; else one of this name elsewhere."""
    fields = [field.name for field in _fields(_type_at(kind, path))]
    near = near_word(name, fields)
    if near:
        return near
    same = [".".join(found) for found in _options(kind) if found[-1] == name]
    # A section of this name is another thing than an entry's option.
    return f"; did you mean `{same[0]}`?" if len(same) == 1 and same[0] != name else ""


def _options(kind: type[Struct], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for option in msgspec.structs.fields(kind):
        yield (*path, option.name)
        if isinstance(option.type, type) and issubclass(option.type, Struct):
            yield from _options(option.type, (*path, option.name))


def _type_at(kind: type[Struct], path: list[str]) -> inspect.Type:
    """The type of the value at a path of names and indexes."""
    found: inspect.Type = inspect.type_info(kind)
    for step in path:
        found = _plain(found)
        if isinstance(found, inspect.ListType):
            found = found.item_type
            continue
        found = next((f.type for f in _fields(found) if f.name == step), inspect.AnyType())
    return _plain(found)


def _plain(kind: inspect.Type) -> inspect.Type:
    """Without metadata, and without the null of an option that may be null."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        return _plain(next(t for t in kind.types if not isinstance(t, inspect.NoneType)))
    return kind


def _fields(kind: inspect.Type) -> tuple[inspect.Field, ...]:
    return kind.fields if isinstance(kind, inspect.StructType) else ()


def _choices(kind: inspect.Type) -> list[str]:
    return [str(value) for value in kind.values] if isinstance(kind, inspect.LiteralType) else []

"""msgspec's errors as an option, a problem and its cure, without the value.

A value may be a secret, and a key contains one where the colon or the space after it is missing.
So a key is shown only near an option's name, without what follows.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from msgspec import Struct, ValidationError, inspect

from tidemark.settings.environment import variables

_MESSAGE: Final = re.compile(r"(.*?)(?: - at (`key` in )?`\$(.*)`)?", re.DOTALL)
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
# What msgspec says -> what to write instead.
_CURES: Final = (
    (r"Expected `str(?: \| null)?`, got `(array|object)`", "write one text"),
    (r"Expected `str`, got `null`", "write a text, or leave it out for the default"),
    (r"Expected `str(?: \| null)?`, got", "write it in quotes"),
    (r"Expected `array[^`]*`, got", "write a list: [a, b]"),
    (r"Expected `array[^`]*` of length >= 1", "write an entry, or leave it out for the default"),
    (r"Expected `object[^`]*`, got", "write a mapping, one `key: value` a line"),
    (r"Expected `bool", "write true or false"),
    (r"Expected `(int|float)[^`]*`, got", "write a number without a unit"),
)


def explain(error: ValidationError, kind: type[Struct]) -> tuple[str, str]:
    """(dotted path of the option, problem and cure) of an error about a document of a type."""
    match = _MESSAGE.fullmatch(str(error))
    assert match is not None
    problem, path = match[1], match[3] or ""
    option, found = _locate(kind, path)
    if enumeration := re.fullmatch(r"Invalid enum value '?(.*?)'?", problem, re.DOTALL):
        if match[2] is not None and isinstance(found, inspect.DictType):
            found = found.key_type
        values = found.values if isinstance(found, inspect.LiteralType) else ()
        choices = [str(value) for value in values]
        return option, f"it must be one of {', '.join(choices)}{near_word(enumeration[1], choices)}"
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        return option, _unknown_field(unknown[1], kind, found)
    if "matching regex" in problem and isinstance(found, inspect.Metadata):
        return option, f"write {(found.extra_json_schema or {})['description']}"
    cure = next((f"; {cure}" for start, cure in _CURES if re.match(start, problem)), "")
    return option, problem + cure


def near_word(word: str, known: Collection[str]) -> str:
    """`; did you mean …?`, in any case of letters; nothing where no known word is near."""
    names = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), names, n=1)
    return f"; did you mean `{names[close[0]]}`?" if close else ""


def near_key(key: str, known: Collection[str]) -> str:
    """The key and its cure, where it is nearly a known one; else nothing: it may be anything."""
    name = re.split(r"[^\w.-]", key, maxsplit=1)[0]
    if name != key and name in known:
        return f" `{name}`; write a colon and a space after it"
    close = get_close_matches(name, list(known), n=1)
    # The end of a longer one may be a value.
    shown = f" `{name}`" if close and len(name) <= len(close[0]) + 2 else ""
    return shown + near_word(name, known)


def sentence(problem: str, option: str = "") -> str:
    """One line with its end; a question, such as that for the near word, has it."""
    text = " ".join(f"{option}: {problem}".removeprefix(": ").split())
    return text if text.endswith("?") else f"{text}."


def _unknown_field(key: str, kind: type[Struct], section: inspect.Type) -> str:
    """Near an option of the section; else that of the same name elsewhere, else all of them."""
    assert isinstance(section, inspect.StructType)
    fields = [each.name for each in section.fields]
    if near := near_key(key, fields):
        return f"unknown field{near}"
    same = [".".join(path) for _, path, _ in variables(kind) if path[1:] and path[-1] == key]
    if len(same) == 1:
        return f"unknown field `{key}`; did you mean `{same[0]}`?"
    return f"unknown field; there are {', '.join(fields)}"


def _locate(kind: type[Struct], path: str) -> tuple[str, inspect.Type]:
    """As much of a path as the type has, and the type there."""
    found, shown = inspect.type_info(kind), ""
    for name, index in _STEP.findall(path):
        if isinstance(found, inspect.StructType):
            fields = {option.name: option.type for option in found.fields}
            if name not in fields:
                break
            found, shown = fields[name], f"{shown}.{name}"
        elif isinstance(found, inspect.ListType):
            found, shown = found.item_type, f"{shown}[{index}]"
        else:
            break
        if isinstance(found, inspect.UnionType):
            found = next(each for each in found.types if not isinstance(each, inspect.NoneType))
    return shown.removeprefix("."), found

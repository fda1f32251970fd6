"""Control characters: no option needs one, and the system's calls refuse a path with a NUL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from tidemark.core.errors import ConfigError
from tidemark.core.text import has_control_character
from tidemark.settings.schema import Settings

# Values with several lines: options of a JVM may be folded.
_FOLDED: Final = "stream.spark"


def check_characters(settings: Settings) -> None:
    """Raises ConfigError for the first text with a control character, without the text."""
    for option, text in _texts(settings):
        plain = re.sub(r"[\t\r\n]", "", text) if option.startswith(f"{_FOLDED}.") else text
        if has_control_character(plain):
            raise ConfigError(
                f"configuration: {option} contains a control character, such as a line end or "
                "NUL; remove it."
            )


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(option, text) of every text below a value; of a mapping, also the keys."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _texts(getattr(value, name), f"{path}.{name}" if path else name)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(key, str):
                yield f"{path}: a key", key
            yield from _texts(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{number}]")

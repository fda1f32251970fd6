"""YAML as configuration: plain data, unique keys, bounded size, and errors that show no value.

The parser's own messages quote lines, passwords included. Here they give a place and a kind.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import yaml

from tidemark.core.errors import ConfigError

MAX_BYTES: Final = 4 * 1024 * 1024
# Of the document with its aliases expanded: a few lines of aliases can stand for billions.
MAX_VALUES: Final = 500_000
# Of brackets in brackets: PyYAML's time grows with the square of the depth.
MAX_DEPTH: Final = 64
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class _Loader(yaml.SafeLoader):
    """Refuses a key that occurs twice, where PyYAML takes the last one, and bounds the depth."""

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803 PyYAML's name
        if self.flow_level >= MAX_DEPTH:
            raise RecursionError
        super().fetch_flow_collection_start(TokenClass)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
                continue
            if key.value in seen:
                name = f" `{key.value}`" if _KEY.fullmatch(key.value) else ""
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key{name} occurs twice; remove one of them", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_document(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, {} for an empty file. Raises ConfigError with file and reason."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration {path}: {error.strerror}. "
            "Give an existing file with --config."
        ) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"{path} is longer than {MAX_BYTES >> 20} MiB. Give a configuration file with --config."
        )
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not YAML: it is not UTF-8 text.") from None
    document = parse_yaml(text, str(path))
    if not isinstance(document, dict | None):
        raise ConfigError(
            f"{path}: the top level must be a mapping, found {type(document).__name__}. "
            "Begin with a section, such as `clusters:`."
        )
    return document or {}


def parse_yaml(text: str, source: str) -> Any:
    """The value of a YAML document. Raises ConfigError with `source` and the place."""
    try:
        # The class derives from SafeLoader.
        document = yaml.load(text, _Loader)  # noqa: S506
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not YAML: {_problem(error)}.") from None
    except RecursionError:
        raise ConfigError(f"{source} is not YAML: it is nested too deeply.") from None
    except Exception:
        # Constructors of dates, numbers and tags raise what they like.
        raise ConfigError(
            f"{source} is not YAML: a date, a number or a tag in it has no value. "
            "Write text in quotes."
        ) from None
    _check_size(document, source)
    return document


def _check_size(document: Any, source: str) -> None:
    rest, count = [document], 0
    while rest:
        value = rest.pop()
        count += 1
        if count > MAX_VALUES:
            raise ConfigError(
                f"{source} has more than {MAX_VALUES} values with its aliases expanded. "
                "Remove aliases."
            )
        if isinstance(value, str) and not _is_text(value):
            raise ConfigError(
                f"{source} is not YAML: an escape in it is half of a character. "
                "Write the character."
            )
        if isinstance(value, dict):
            rest += value.keys()
            rest += value.values()
        elif isinstance(value, list | tuple | set):
            rest += value


def _is_text(value: str) -> bool:
    """Whether it can be written again: half of a surrogate pair can not."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _problem(error: yaml.YAMLError) -> str:
    """The place and the kind of the error."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
    return f"{where}{_without_values(problem) if problem else type(error).__name__}"


def _without_values(problem: str) -> str:
    """PyYAML names undefined aliases, tags and anchors in its text: any of them may be a secret."""
    if "occurs twice" in problem:
        return problem
    return re.sub(r"(alias|anchor|tag|handle|directive) (['\"]).*\2", r"\1", problem)

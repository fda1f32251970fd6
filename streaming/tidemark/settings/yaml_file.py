"""YAML as configuration: plain data, unique keys, bounded size, and errors that show no value."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from tidemark.core.errors import ConfigError
from tidemark.settings.files import read_bounded

MAX_BYTES: Final = 4 * 1024 * 1024
# Of the document with its aliases expanded: a few lines of aliases can stand for billions.
MAX_VALUES: Final = 500_000
# Of brackets in brackets: PyYAML's time grows with the square of the depth.
MAX_DEPTH: Final = 64
_REPEATED: Final = "a key occurs twice; remove one of them"


class _Loader(yaml.SafeLoader):
    """Refuses a key that occurs twice, where PyYAML takes the last one, and bounds the depth."""

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803 PyYAML's name
        if self.flow_level >= MAX_DEPTH:
            raise RecursionError
        super().fetch_flow_collection_start(TokenClass)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and not key.tag.endswith(":merge"):
                if key.value in seen:
                    raise ConstructorError(None, None, _REPEATED, key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_document(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, {} for an empty file. Raises ConfigError with file and reason."""
    try:
        document = parse_yaml(read_bounded(path, MAX_BYTES), str(path))
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration {path}: {error.strerror}. "
            "Give an existing file with --config."
        ) from None
    if not isinstance(document, dict | None):
        raise ConfigError(
            f"{path}: the top level must be a mapping, found {type(document).__name__}. "
            "Begin with a section, such as `clusters:`."
        )
    return document or {}


def parse_yaml(data: str | bytes, source: str) -> Any:
    """The value of a YAML document. Raises ConfigError with `source` and the place."""
    try:
        text = data.decode() if isinstance(data, bytes) else data
        # The class derives from SafeLoader.
        document = yaml.load(text, _Loader)  # noqa: S506
        problem = _excess(document)
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except UnicodeEncodeError:
        problem = "an escape in it is half of a character; write the character"
    except yaml.YAMLError as error:
        problem = _problem(error)
    except RecursionError:
        problem = "it is nested too deeply"
    except Exception:
        # Constructors of dates, numbers and tags raise what they like.
        problem = (
            "a date, a number or a tag in it cannot be read; write text in quotes, without a tag"
        )
    if problem is not None:
        raise ConfigError(f"{source} is not YAML: {problem}.")
    return document


def _excess(document: Any) -> str | None:
    """The problem of a document with too many values. Raises UnicodeEncodeError."""
    rest, count = [document], 0
    while rest:
        value = rest.pop()
        count += 1
        if count > MAX_VALUES:
            return f"it has more than {MAX_VALUES} values with its aliases expanded; remove aliases"
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, dict):
            rest += value.keys()
            rest += value.values()
        elif isinstance(value, list | tuple | set):
            rest += value
    return None


def _problem(error: yaml.YAMLError) -> str:
    """The place and the kind. PyYAML's text names aliases and tags, which may be secrets."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if isinstance(error, ComposerError):
        problem = "an undefined alias, or an anchor that is given twice"
    elif problem is None or (isinstance(error, ConstructorError) and problem != _REPEATED):
        problem = "a character or a tag that has no value"
    elif "tag handle" in problem:
        problem = "a tag that is not known"
    return problem if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {problem}"

"""Where settings come from: a YAML file and environment variables, laid over one another as one plain document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct, inspect

from tidemark.core.errors import ConfigError

PREFIX = "TIDEMARK"


def read_document(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; an empty file is an empty one. Raises ConfigError naming the file and what is wrong."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration {path}: {error.strerror}. Give an existing file by --config."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {one_line(error)}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(
            f"{path}: the top level must be a mapping, found {type(document).__name__}."
        )
    return document


def variables(
    kind: type[Struct], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...], inspect.Type]]:
    """(variable, path, type) of every option: stream.trigger_ms is TIDEMARK_STREAM_TRIGGER_MS."""
    for option in msgspec.structs.fields(kind):
        here = (*path, option.name)
        if isinstance(option.type, type) and issubclass(option.type, Struct):
            yield from variables(option.type, here)
        else:
            yield "_".join((PREFIX, *here)).upper(), here, inspect.type_info(option.type)


def from_environment(
    kind: type[Struct], environ: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of every option that a variable sets. Other variables are left alone: orchestrators inject theirs.

    Lists of words are separated by commas; lists of structures and mappings are written as YAML (or JSON) in one line.
    """
    for name, path, kind_of_value in variables(kind):
        if name in environ:
            yield path, _value(name, environ[name], kind_of_value)


def put(document: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Sets one option in the document; raises ConfigError where a section of the file is no mapping."""
    for step in path[:-1]:
        inner = document.setdefault(step, {})
        if inner is None:
            inner = document[step] = {}
        if not isinstance(inner, dict):
            raise ConfigError(
                f"configuration: `{step}` must be a mapping, found {type(inner).__name__}."
            )
        document = inner
    document[path[-1]] = value


def one_line(error: Exception) -> str:
    """An error's text without line breaks."""
    return " ".join(str(error).split())


def _value(name: str, text: str, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.ListType) and isinstance(kind.item_type, inspect.StrType):
        return [word.strip() for word in text.split(",") if word.strip()]
    if isinstance(kind, inspect.ListType | inspect.DictType):
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{name} is not YAML: {one_line(error)}") from None
    return None if text == "" and isinstance(kind, inspect.UnionType) else text

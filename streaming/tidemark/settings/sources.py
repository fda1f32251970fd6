"""Sources of settings: flags > environment variables > YAML file > defaults.

An option's variable is its path in capitals: kafka.bootstrap_servers is
`TIDEMARK_KAFKA_BOOTSTRAP_SERVERS=a:9092,b:9092`. An unknown key in the file is an error. Unknown
variables are ignored but for those of `environment`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidemark.core.errors import ConfigError
from tidemark.settings.checks import mistakes
from tidemark.settings.conversion import explain, sentence
from tidemark.settings.environment import check_variables, variables
from tidemark.settings.schema import Settings
from tidemark.settings.yaml_file import parse_yaml, read_document


def load_settings(
    path: str | Path | None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Merges all sources and checks the result. `flags` maps dotted paths to values; None is unset.

    Raises ConfigError with the wrong option and what it accepts, without its value: orchestrators
    put secrets into variables.
    """
    environ = os.environ if environ is None else environ
    document = read_document(Path(path)) if path is not None else {}
    check_variables(environ)
    # Dotted path -> variable that gave the value.
    given: dict[str, str] = {}
    for name, option, kind in variables():
        if name in environ:
            _set(document, option, _parse_variable(name, environ[name], kind))
            given[".".join(option)] = name
    for dotted, value in (flags or {}).items():
        if value is not None:
            _set(document, dotted.split("."), value)
            given.pop(dotted, None)
    where = "configuration" if path is None else f"configuration in {path}"
    settings = _convert(document, where, given)
    for mistake, problem in mistakes(settings):
        raise ConfigError(_located(where, given, mistake, problem))
    return settings


def _convert(document: dict[str, Any], where: str, given: Mapping[str, str]) -> Settings:
    # A section that the file leaves empty has its defaults.
    filled = {section: value for section, value in document.items() if value is not None}
    try:
        return msgspec.convert(filled, Settings, strict=False)
    except msgspec.ValidationError as error:
        option, problem = explain(error, Settings)
    except RecursionError:
        option, problem = "", "it is nested too deeply"
    text = _located(where, given, option, problem)
    raise ConfigError(f"{text} docs/reference-config.yaml lists every option.")


def _located(where: str, given: Mapping[str, str], option: str, problem: str) -> str:
    """The problem after the option, and the file or the variable that gives it."""
    for path, name in given.items():
        if option == path or option.startswith((f"{path}.", f"{path}[", f"{path}:")):
            where = f"configuration, variable {name}"
    return f"{where}: {sentence(problem, option)}"


def _parse_variable(name: str, text: str, kind: msgspec.inspect.Type) -> Any:
    """Lists of strings are separated by commas, other lists and mappings are YAML in one line."""
    if isinstance(kind, msgspec.inspect.ListType) and isinstance(
        kind.item_type, msgspec.inspect.StrType
    ):
        return [word.strip() for word in text.split(",") if word.strip()]
    if isinstance(kind, msgspec.inspect.ListType | msgspec.inspect.DictType):
        return parse_yaml(text, name)
    return None if text == "" and isinstance(kind, msgspec.inspect.UnionType) else text


def _set(document: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Sets one option. Raises ConfigError where the file has a section that is not a mapping."""
    *sections, option = path
    for section in sections:
        if document.get(section) is None:
            document[section] = {}
        document = document[section]
        if not isinstance(document, dict):
            raise ConfigError(
                f"configuration: `{section}` must be a mapping, found {type(document).__name__}."
            )
    document[option] = value

"""Sources of settings: flags > environment variables > YAML file > defaults.

An option's variable is its path in capitals: kafka.bootstrap_servers is
`TIDEMARK_KAFKA_BOOTSTRAP_SERVERS=a:9092,b:9092`. An unknown key in the file is an error. Unknown
variables are ignored but for those of `environment`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, inspect

from tidemark.core.errors import ConfigError
from tidemark.detect.thresholds import RUNBOOK_URL
from tidemark.settings.checks import check
from tidemark.settings.conversion import convert
from tidemark.settings.environment import OTHERS, check_variables
from tidemark.settings.hidden_values import Variable, without_values
from tidemark.settings.schema import Settings
from tidemark.settings.yaml_file import parse_yaml, read_document


def load_settings(
    path: str | Path | None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Merges all sources and checks the result. `flags` maps dotted paths to values; None is unset.

    Raises ConfigError with the wrong option and what it accepts.
    """
    environ = os.environ if environ is None else environ
    try:
        return _load(path, environ, flags)
    except ConfigError as error:
        raise ConfigError(without_values(str(error), given_variables(environ))) from None


def _load(
    path: str | Path | None, environ: Mapping[str, str], flags: Mapping[str, Any] | None
) -> Settings:
    document = read_document(Path(path)) if path is not None else {}
    known = list(variables(Settings))
    check_variables(environ, {name: kind for name, _, kind in known})
    names: dict[str, str] = {}
    for name, option, kind in known:
        if name in environ:
            _set(document, option, _parse_variable(name, environ[name], kind))
            names[".".join(option)] = name
    for dotted, value in (flags or {}).items():
        if value is not None:
            _set(document, dotted.split("."), value)
            names.pop(dotted, None)
    settings = convert(document, None if path is None else str(path), names)
    check(settings)
    _derive_runbook_url(settings)
    return settings


def _derive_runbook_url(settings: Settings) -> None:
    """The exporter serves the runbooks: at its own address where no other is given."""
    if settings.detect.runbook_url == RUNBOOK_URL:
        external_url = settings.notify.external_url.rstrip("/")
        settings.detect.runbook_url = f"{external_url}/docs/runbooks"


def variables(
    kind: type[Struct], path: tuple[str, ...] = ("tidemark",)
) -> Iterator[tuple[str, tuple[str, ...], inspect.Type]]:
    """(variable, path, type) of every option: stream.trigger_ms is TIDEMARK_STREAM_TRIGGER_MS."""
    for option in msgspec.structs.fields(kind):
        inner = (*path, option.name)
        if isinstance(option.type, type) and issubclass(option.type, Struct):
            yield from variables(option.type, inner)
        else:
            yield "_".join(inner).upper(), inner[1:], inspect.type_info(option.type)


def given_variables(environ: Mapping[str, str]) -> list[Variable]:
    """The variables that give an option."""
    return [
        Variable(name, environ[name], _is_structured(kind))
        for name, _, kind in variables(Settings)
        if name in environ
    ]


def _is_structured(kind: inspect.Type) -> bool:
    """Whether the variable is YAML in one line."""
    if isinstance(kind, inspect.ListType):
        return not isinstance(kind.item_type, inspect.StrType)
    return isinstance(kind, inspect.DictType)


def misspelt_variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(variable, near option) of variables that are no option but nearly one."""
    known = {name for name, _, _ in variables(Settings)}
    for name in sorted(environ):
        if name.startswith("TIDEMARK_") and name not in known and name not in OTHERS:
            for close in get_close_matches(name, known, n=1, cutoff=0.95):
                yield name, close


def _parse_variable(name: str, text: str, kind: inspect.Type) -> Any:
    """Lists of strings are separated by commas, other lists and mappings are YAML in one line."""
    if _is_structured(kind):
        return parse_yaml(text, name)
    if isinstance(kind, inspect.ListType):
        return [word.strip() for word in text.split(",") if word.strip()]
    return None if text == "" and isinstance(kind, inspect.UnionType) else text


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

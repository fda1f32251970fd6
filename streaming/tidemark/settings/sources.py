"""Sources of settings: flags > environment variables > YAML file > defaults.

An option's variable is its path in capitals: kafka.bootstrap_servers is
`TIDEMARK_KAFKA_BOOTSTRAP_SERVERS=a:9092,b:9092`. An unknown key in the file is an error. Unknown
variables are ignored: orchestrators set `TIDEMARK_…` variables of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct, inspect

from tidemark.core.errors import ConfigError
from tidemark.detect.thresholds import RUNBOOK_URL
from tidemark.settings.checks import check
from tidemark.settings.schema import Settings


def load_settings(
    path: str | Path | None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Merges all sources and checks the result. `flags` maps dotted paths to values; None is unset.

    Raises ConfigError with the wrong option and what it accepts.
    """
    document = read_document(Path(path)) if path is not None else {}
    environ = os.environ if environ is None else environ
    for name, option, kind in variables(Settings):
        if name in environ:
            _set(document, option, _parse_variable(name, environ[name], kind))
    for dotted, value in (flags or {}).items():
        if value is not None:
            _set(document, dotted.split("."), value)
    try:
        # A section that the file leaves empty has its defaults.
        given = {section: value for section, value in document.items() if value is not None}
        settings = msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        where = f" in {path}" if path is not None else ""
        raise ConfigError(
            f"configuration{where}: {error}. docs/reference-config.yaml lists every option."
        ) from None
    check(settings)
    _derive_runbook_url(settings)
    return settings


def _derive_runbook_url(settings: Settings) -> None:
    """The exporter serves the runbooks: at its own address where no other is given."""
    if settings.detect.runbook_url == RUNBOOK_URL:
        external_url = settings.notify.external_url.rstrip("/")
        settings.detect.runbook_url = f"{external_url}/docs/runbooks"


def read_document(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, {} for an empty file. Raises ConfigError with file and reason."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration {path}: {error.strerror}. "
            "Give an existing file with --config."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {_problem(error)}.") from None
    if not isinstance(document, dict | None):
        raise ConfigError(
            f"{path}: the top level must be a mapping, found {type(document).__name__}."
        )
    return document or {}


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


def _parse_variable(name: str, text: str, kind: inspect.Type) -> Any:
    """Lists of strings are separated by commas, other lists and mappings are YAML in one line."""
    if isinstance(kind, inspect.ListType) and isinstance(kind.item_type, inspect.StrType):
        return [word.strip() for word in text.split(",") if word.strip()]
    if isinstance(kind, inspect.ListType | inspect.DictType):
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{name} is not YAML: {_problem(error)}.") from None
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


def _problem(error: Exception) -> str:
    """The place and the kind of the error. The parser's own text quotes lines, secrets included."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
    return f"{where}{problem or type(error).__name__}"

"""Sources of settings: flags > environment variables > YAML file > defaults.

An option's variable is its path in capitals: kafka.bootstrap_servers is
`TIDEMARK_KAFKA_BOOTSTRAP_SERVERS=a:9092,b:9092`. An unknown key in the file is an error. Unknown
variables are ignored but for those of `environment`.

YAML is plain data, with unique keys and a bounded size; its errors show no value.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from tidemark.core.errors import ConfigError
from tidemark.settings.checks import mistakes
from tidemark.settings.conversion import explain, sentence
from tidemark.settings.environment import check_variables, variables
from tidemark.settings.files import read_bounded
from tidemark.settings.schema import Settings

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
    raise ConfigError(f"{text} docs/reference-config.yaml of `tidemark assets` lists every option.")


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

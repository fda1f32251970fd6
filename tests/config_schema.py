"""The JSON Schema of the configuration, for editors: the options' types, limits and comments."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec

import tidemark.settings
from tests.conftest import ROOT
from tidemark.core.codec import dedented
from tidemark.kafka import options
from tidemark.settings import Settings

FILE: Final = Path(tidemark.settings.__file__).with_name("tidemark.schema.json")
REFERENCE: Final = ROOT / "docs" / "reference-config.yaml"
_KEY: Final = re.compile(r"( *)([a-z_]+):")


def configuration_schema() -> dict[str, Any]:
    """The committed file's content."""
    text = json.dumps(dedented(msgspec.json.schema(Settings)))
    # JavaScript's expressions have no `\Z`, and its `$` matches nothing before a line end.
    schema = json.loads(text.replace(r"\\Z", "$"))
    definitions = schema.pop("$defs")
    root = definitions.pop("Settings")
    client = _client()
    for kind in ("Connection", "Cluster"):
        definitions[kind]["properties"]["client"] = client
    for definition in definitions.values():
        # Docstrings describe classes; a reader of the schema knows the option's section.
        definition.pop("title", None)
    for path, text in _comments().items():
        _describe({**root, "$defs": definitions}, path, text)
    # A section that the file leaves empty has its defaults.
    for name, kind in root["properties"].items():
        if "log_" not in name:
            description = kind.pop("description", None)
            root["properties"][name] = {"anyOf": [kind, {"type": "null"}]}
            if description is not None:
                root["properties"][name]["description"] = description
    # Its default is the name of the machine that writes this file.
    definitions["Collect"]["properties"]["collector"].pop("default", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": "Tidemark configuration",
        "$defs": definitions,
    }


def _client() -> dict[str, Any]:
    text, number = {"type": "string"}, {"type": "integer", "minimum": 1}
    found: dict[str, Any] = {name: {"enum": list(known)} for name, known in options.CHOICES.items()}
    found |= dict.fromkeys((*options.SECRETS, *options.TEXTS, *options.PATHS), text)
    found |= {key: {"type": "boolean"} for key in options.BOOLEANS}
    found |= dict.fromkeys(options.NUMBERS, number)
    found[options.API_VERSION] = {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 3,
    }
    files = {f"{name}_file": text for name in (*options.SECRETS, *options.TEXTS)}
    properties = {name: _or_null(kind) for name, kind in sorted({**files, **found}.items())}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _or_null(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]}


def _comments() -> dict[tuple[str, ...], str]:
    """Path of an option -> the comment above it in the reference configuration."""
    found: dict[tuple[str, ...], str] = {}
    path: list[str] = []
    comment: list[str] = []
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        key = _KEY.match(line)
        if line.lstrip().startswith("#"):
            comment.append(line.lstrip().removeprefix("#").removeprefix(" "))
        elif key is not None:
            path = [*path[: len(key[1]) // 2], key[2]]
            if comment:
                found[tuple(path)] = "\n".join(comment)
            comment = []
        else:
            comment = []
    return found


def _describe(root: dict[str, Any], path: tuple[str, ...], text: str) -> None:
    place = root
    for step in path[:-1]:
        place = _resolve(root, place["properties"][step])
    if path[-1] in place.get("properties", {}):
        place["properties"][path[-1]] = {**place["properties"][path[-1]], "description": text}


def _resolve(root: dict[str, Any], kind: dict[str, Any]) -> dict[str, Any]:
    reference = kind.get("$ref")
    found: dict[str, Any] = (
        kind if reference is None else root["$defs"][reference.rpartition("/")[2]]
    )
    return found

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
CHART: Final = ROOT / "deploy" / "helm" / "tidemark" / "values.schema.json"
_KEY: Final = re.compile(r"( *)([a-z_]+):")


def configuration_schema() -> dict[str, Any]:
    """The committed file's content."""
    text = json.dumps(dedented(msgspec.json.schema(Settings)))
    # JavaScript's expressions have no `\Z`, and its `$` matches nothing before a line end.
    schema = json.loads(text.replace(r"\\Z", "$"))
    definitions = schema.pop("$defs")
    root = definitions.pop("Settings")
    client = json.loads(json.dumps(_client()).replace(r"\\Z", "$"))
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


def chart_schema() -> str:
    """The chart's schema of its values: as written, with the configuration's in one line of it."""
    schema = configuration_schema()
    definitions = schema.pop("$defs")
    kinds = _bare({**definitions, "Settings": schema})
    # Without line ends: this part is generated, the rest is written by hand.
    line = f'  "$defs": {json.dumps(kinds, sort_keys=True)}'
    return re.sub(r'^  "\$defs": .*$', lambda _: line, CHART.read_text("utf-8"), flags=re.MULTILINE)


def _bare(schema: Any) -> Any:
    """Without what only editors show."""
    if isinstance(schema, dict):
        texts = ("$schema", "title", "description")
        shown = {"default", *(key for key in texts if isinstance(schema.get(key), str))}
        return {key: _bare(value) for key, value in schema.items() if key not in shown}
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema


def _client() -> dict[str, Any]:
    properties = msgspec.json.schema(options.Options)["$defs"]["Options"]["properties"]
    for kind in properties.values():
        kind.pop("default")
    text = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    files = {f"{name}_file": text for name in (*options.TEXTS, *options.PROXIES)}
    return {
        "type": "object",
        "properties": dict(sorted({**files, **properties}.items())),
        "additionalProperties": False,
    }


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

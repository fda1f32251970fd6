"""docs/reference-config.yaml lists every option with its default, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import Struct

from tidemark.detect.default_thresholds import Override
from tidemark.settings import (
    Alertmanager,
    Cluster,
    Connection,
    JmxEndpoint,
    Maintenance,
    Receiver,
    Settings,
    load_settings,
)

REFERENCE = Path(__file__).parents[2] / "docs" / "reference-config.yaml"
# Its default differs from machine to machine.
MACHINE_SPECIFIC = ("collect", "collector")


def options(document: dict[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """path -> value of every leaf; the free-form mappings are leaves."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in document.items():
        if isinstance(value, dict) and value:
            found |= options(value, (*path, key))
        else:
            found[(*path, key)] = value
    return found


def documented() -> dict[tuple[str, ...], Any]:
    return options(yaml.safe_load(REFERENCE.read_text(encoding="utf-8")))


def test_every_option_is_listed_with_its_default() -> None:
    defaults = options(msgspec.to_builtins(Settings()))
    assert documented().keys() == defaults.keys()
    differing = {
        path: (value, defaults[path])
        for path, value in documented().items()
        if value != defaults[path]
    }
    assert differing.keys() == {MACHINE_SPECIFIC}


def test_the_file_loads_as_the_defaults() -> None:
    settings = load_settings(REFERENCE, {})
    settings.collect.collector = Settings().collect.collector
    assert settings == Settings()


def test_every_block_of_options_has_a_comment() -> None:
    """A comment on the section, on the option or on its neighbours."""
    blocks = re.split(r"\n\s*\n", REFERENCE.read_text(encoding="utf-8"))
    assert [block for block in blocks if "#" not in block] == []


@pytest.mark.parametrize(
    "kind", [Cluster, JmxEndpoint, Receiver, Alertmanager, Maintenance, Override]
)
def test_options_of_list_entries_are_described(kind: type[Struct]) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    inherited = {field.name for field in msgspec.structs.fields(Connection)}
    names = {field.name for field in msgspec.structs.fields(kind)} - inherited - {"name"}
    missing = {name for name in names if f"{name}:" not in text and f"`{name}`" not in text}
    assert missing == set()

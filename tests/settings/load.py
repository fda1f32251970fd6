"""Loads a configuration from text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, load_settings


def load(
    text: str, tmp_path: Path, environ: dict[str, str] | None = None, **flags: Any
) -> Settings:
    """Settings from file text, variables and flags; `collect__listen` is collect.listen."""
    path = tmp_path / "tidemark.yaml"
    path.write_text(text, encoding="utf-8")
    return load_settings(
        path, environ or {}, {key.replace("__", "."): value for key, value in flags.items()}
    )


def refused(text: str, tmp_path: Path, environ: dict[str, str] | None = None) -> str:
    """The error message for a wrong configuration: one line, exit code 2."""
    with pytest.raises(ConfigError) as caught:
        load(text, tmp_path, environ)
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.exit_code == 2
    return message

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)

"""Progress where standard error is no terminal."""

from __future__ import annotations

import pytest

from tidemark.command_line import progress as module
from tidemark.command_line.progress import progress_bar


def test_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("audit") as progress:
        progress(0.2, "orders-0")
        monkeypatch.setattr(module, "LINE_SECONDS", 0.0)
        progress(0.5, "orders-3")
    assert capsys.readouterr().err == "audit: 50%, orders-3\n"

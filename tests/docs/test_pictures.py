"""The picture of the demo shows the recorded run, and needs nothing from elsewhere."""

from __future__ import annotations

import re
from html import unescape

from tests.docs.pictures import DEMO, draw_demo, recorded_results
from tidemark_lab.demo.alert_result import failures


def text_of(svg: str) -> str:
    return " ".join(unescape(" ".join(re.findall(r">([^<>]+)</text>", svg))).split())


def test_the_committed_picture_is_of_the_recorded_run() -> None:
    drawn = DEMO.read_text(encoding="utf-8")
    assert text_of(drawn) == text_of(draw_demo())
    for result in recorded_results():
        assert result.alert in text_of(drawn)
    assert "url(http" not in drawn and "@font-face" not in drawn
    assert DEMO.stat().st_size < 100_000


def test_the_recorded_run_went_well() -> None:
    """But for the comparison of the loss, which the report has in another form."""
    assert [each for each in failures(recorded_results()) if "compared" not in each] == []

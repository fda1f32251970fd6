"""The style sheet: contrast of every pair of colours that is used, in both schemes (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re

import pytest

from tidemark_exporters.pages.bars import COLOURS
from tidemark_exporters.pages.routes import static_file

CSS = static_file("tidemark.css")[0].decode()
TEXT = [
    *(
        (ink, ground)
        for ink in ("ink", "soft", "accent", "unknown")
        for ground in ("ground", "raised", "sunk")
    ),
    *((level, f"{level}-ground") for level in ("critical", "warning", "unknown", "info")),
    *((level, "raised") for level in ("critical", "warning", "info", "ok")),
    *((level, "sunk") for level in ("critical", "warning", "info", "ok")),
    ("raised", "critical"),
    ("raised", "warning"),
    *(("on-epoch", f"e{number}") for number in range(COLOURS)),
]
# Drawn things beside their ground.
SHAPES = [
    *((f"e{number}", "raised") for number in range(COLOURS)),
    ("accent", "raised"),
    ("critical", "raised"),
    ("ink", "raised"),
]


def scheme(dark: bool) -> dict[str, str]:
    light, night = re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)[:2]
    found = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})\b", light))
    return (
        {**found, **dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})\b", night))} if dark else found
    )


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_contrast(dark: bool) -> None:
    colours = scheme(dark)
    low = {
        f"{a} on {b}": round(contrast(colours[a], colours[b]), 2)
        for a, b in TEXT
        if contrast(colours[a], colours[b]) < 4.5
    }
    assert low == {}
    faint = {
        f"{a} on {b}": round(contrast(colours[a], colours[b]), 2)
        for a, b in SHAPES
        if contrast(colours[a], colours[b]) < 3.0
    }
    assert faint == {}


def test_neighbouring_epochs_have_different_colours() -> None:
    for dark in (False, True):
        assert len({scheme(dark)[f"e{number}"] for number in range(COLOURS)}) == COLOURS


def test_every_colour_that_is_used_is_defined_for_both_schemes() -> None:
    light, night = re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)[:2]
    defined = set(re.findall(r"--([a-z0-9-]+):", light))
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", CSS)) <= defined
    assert set(re.findall(r"--([a-z0-9-]+):", night)) == defined

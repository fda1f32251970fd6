"""The style sheet: the contrast of its colours in both schemes (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re

import pytest

from tidemark_exporters.pages.figures import COLOURS
from tidemark_exporters.pages.responses import static_file

CSS = static_file("tidemark.css")[0].decode()
LIGHT, NIGHT = re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)[:2]
TEXT = [
    *(
        (text, background)
        for text in ("text", "muted", "accent", "unknown")
        for background in ("background", "surface", "inset")
    ),
    *((level, f"{level}-background") for level in ("critical", "warning", "unknown", "info")),
    *((level, "surface") for level in ("critical", "warning", "info", "ok")),
    *((level, "inset") for level in ("critical", "warning", "info", "ok")),
    ("surface", "critical"),
    ("surface", "warning"),
    *(("on-epoch", f"e{number}") for number in range(COLOURS)),
]
# Shapes on their background.
SHAPES = [
    *((f"e{number}", "surface") for number in range(COLOURS)),
    ("accent", "surface"),
    ("critical", "surface"),
    ("text", "surface"),
]


def scheme(dark: bool) -> dict[str, str]:
    found = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})\b", LIGHT))
    return (
        {**found, **dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})\b", NIGHT))} if dark else found
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
@pytest.mark.parametrize(("pairs", "lowest"), [(TEXT, 4.5), (SHAPES, 3.0)])
def test_contrast(pairs: list[tuple[str, str]], lowest: float, dark: bool) -> None:
    colours = scheme(dark)
    found = {f"{a} on {b}": contrast(colours[a], colours[b]) for a, b in pairs}
    assert {pair: ratio for pair, ratio in found.items() if ratio < lowest} == {}


def test_neighbouring_epochs_have_different_colours() -> None:
    for dark in (False, True):
        assert len({scheme(dark)[f"e{number}"] for number in range(COLOURS)}) == COLOURS


def test_every_used_colour_is_defined_in_both_schemes() -> None:
    defined = set(re.findall(r"--([a-z0-9-]+):", LIGHT))
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", CSS)) <= defined
    assert set(re.findall(r"--([a-z0-9-]+):", NIGHT)) == defined

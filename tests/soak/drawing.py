"""A long run as one SVG: a panel for each figure, one axis of time, a line at each fault. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from tests.soak.figures import Judged
from tests.soak.trend import warm_up_seconds

WIDTH, LEFT, RIGHT, TOP = 900, 60, 20, 46
PANEL, PLOT = 92, 58
PLOT_WIDTH: Final = WIDTH - LEFT - RIGHT
# More would be one block of colour.
MAX_POINTS: Final = 600
STYLE: Final = (
    "text{font:12px sans-serif;fill:#333}.title{font-size:16px}.note{fill:#777}"
    ".bad{fill:#b00020;font-weight:bold}.frame{fill:none;stroke:#bbb}.warm{fill:#eee}"
    ".fault{stroke:#e0a030;stroke-width:1}.line{fill:none;stroke:#1f5fa8;stroke-width:1.5}"
    ".trend{stroke:#b00020;stroke-dasharray:5 4}"
)


def draw(title: str, judged: Sequence[Judged], duration: float, faults: Sequence[float]) -> str:
    """`faults`: seconds since the start. Without scripts and outside resources."""
    height = TOP + PANEL * len(judged) + 24
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>',
    ]
    for number, each in enumerate(judged):
        parts += _panel(each, TOP + PANEL * number, duration, faults)
    for minute in _minutes(duration):
        parts.append(
            f'<text class="note" x="{_x(60.0 * minute, duration):.1f}" y="{height - 8}" '
            f'text-anchor="middle">{minute} min</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _panel(each: Judged, top: int, duration: float, faults: Sequence[float]) -> list[str]:
    plot, bottom = top + 20, top + 20 + PLOT
    highest = max((value for _, value in each.points), default=0.0) or 1.0

    def y(value: float) -> float:
        return bottom - PLOT * value / (1.1 * highest)

    warm = _x(min(duration, warm_up_seconds(duration)), duration) - LEFT
    parts = [
        f'<text x="{LEFT}" y="{top + 14}">{escape(each.figure.title)}</text>',
        _verdict(each, top + 14),
        f'<rect class="warm" x="{LEFT}" y="{plot}" width="{warm:.1f}" height="{PLOT}"/>',
        f'<rect class="frame" x="{LEFT}" y="{plot}" width="{PLOT_WIDTH}" height="{PLOT}"/>',
        _label(y(highest) + 4, f"{highest:.3g}" if highest < 1000 else f"{highest:,.0f}"),
        _label(bottom, "0"),
    ]
    parts += [
        f'<line class="fault" x1="{_x(at, duration):.1f}" x2="{_x(at, duration):.1f}" '
        f'y1="{bottom - 6}" y2="{bottom}"/>'
        for at in faults
    ]
    step = -(-len(each.points) // MAX_POINTS) or 1
    line = " ".join(f"{_x(at, duration):.1f},{y(value):.1f}" for at, value in each.points[::step])
    parts.append(f'<polyline class="line" points="{line}"/>')
    if each.trend is not None:
        start = warm_up_seconds(duration)
        ends = [(start, each.trend.first), (duration, each.trend.first + each.trend.growth)]
        (x1, y1), (x2, y2) = ((_x(at, duration), y(max(0.0, value))) for at, value in ends)
        parts.append(
            f'<line class="trend" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        )
    return parts


def _label(y: float, text: str) -> str:
    return f'<text class="note" x="{LEFT - 6}" y="{y:.1f}" text-anchor="end">{text}</text>'


def _verdict(each: Judged, y: int) -> str:
    if each.trend is None:
        text, kind = f"{len(each.points)} samples, no trend", "note"
    else:
        word = {True: "grows", False: "steady", None: "not judged"}[each.grows]
        text = f"{each.trend.slope_per_hour:+.3g} {each.figure.unit} an hour, {word}"
        kind = "bad" if each.grows else "note"
    return (
        f'<text class="{kind}" x="{WIDTH - RIGHT}" y="{y}" text-anchor="end">{escape(text)}</text>'
    )


def _x(at: float, duration: float) -> float:
    return LEFT + PLOT_WIDTH * min(1.0, at / (duration or 1.0))


def _minutes(duration: float) -> list[int]:
    """About six round marks."""
    minutes = int(duration // 60)
    step = next((each for each in (1, 2, 5, 10, 20, 30, 60) if minutes / each <= 7), 120)
    return list(range(0, minutes + 1, step))

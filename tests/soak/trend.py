"""Whether a figure of a long run grows: medians of thirds, and the slope by Theil and Sen. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Final, NamedTuple

# At the start of a run: the JVM warms up, batches fill the checkpoint, and windows of detectors
# (ten minutes at most) fill the state. Of a short run it is this share.
WARM_UP_SECONDS: Final = 900.0
WARM_UP_SHARE: Final = 0.25
MIN_SAMPLES: Final = 9
# Of a figure that is judged, in each third of the time after the warm-up.
MIN_SAMPLES_OF_THIRD: Final = MIN_SAMPLES // 3
# The slope takes each pair of so many medians.
MAX_BINS: Final = 120

# (seconds since the start, value)
Point = tuple[float, float]


class Trend(NamedTuple):
    """A figure without its warm-up. `growth`: over its whole span, in its own unit."""

    first: float
    last: float
    slope_per_hour: float
    growth: float


def warm_up_seconds(duration: float) -> float:
    return min(WARM_UP_SECONDS, WARM_UP_SHARE * duration)


def trend(points: Sequence[Point], warm_up: float) -> Trend | None:
    """None for fewer than MIN_SAMPLES samples after the warm-up, which show no trend.

    The growth is the larger one of two estimates: a figure is steady when neither shows growth. A
    burst or a step for less than a sixth of the time hardly moves either. A step in the middle
    moves the thirds and not the median of the slopes; a leak with a dip in its last third moves the
    slopes and not the thirds.
    """
    steady = sorted(point for point in points if point[0] >= warm_up)
    if len(steady) < MIN_SAMPLES:
        return None
    third = len(steady) // 3
    first = median(value for _, value in steady[:third])
    last = median(value for _, value in steady[-third:])
    slope = theil_sen(_bins(steady))
    growth = slope * (steady[-1][0] - steady[0][0])
    # Thirds are two thirds of the span apart.
    return Trend(first, last, slope * 3600, max(growth, (last - first) * 1.5))


def samples_of_thirds(points: Sequence[Point], duration: float) -> list[int]:
    """How many samples each third of the time after the warm-up has."""
    warm_up = warm_up_seconds(duration)
    third = (duration - warm_up) / 3 or 1.0
    counts = [0, 0, 0]
    for at, _ in points:
        if at >= warm_up:
            counts[min(2, int((at - warm_up) / third))] += 1
    return counts


def theil_sen(points: Sequence[Point]) -> float:
    """The median of the slopes of all pairs; 0 without two points in time."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] > a[0]]
    return median(slopes) if slopes else 0.0


def _bins(points: Sequence[Point]) -> list[Point]:
    """At most MAX_BINS medians of neighbours."""
    size = -(-len(points) // MAX_BINS)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(median(t for t, _ in group), median(v for _, v in group)) for group in groups]

"""The figures of a long run, how much each may grow, and the verdict. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from tests.soak.trend import (
    MIN_SAMPLES_OF_THIRD,
    Point,
    Trend,
    samples_of_thirds,
    trend,
    warm_up_seconds,
)


class Figure(NamedTuple):
    """May grow, over the run without its warm-up, by a share of its first third or by `absolute`.

    None: it is drawn and not judged.
    """

    key: str
    title: str
    unit: str
    share: float | None
    absolute: float = 0.0


FIGURES: Final = (
    Figure("collect_mb", "memory of collect", "MB", 0.1, 4.0),
    Figure("export_mb", "memory of export", "MB", 0.1, 4.0),
    Figure("driver_mb", "memory of the stream's driver, Python", "MB", 0.1, 4.0),
    Figure("workers_mb", "memory of the stream's Python workers", "MB", 0.1, 8.0),
    # The heap may use what its bound allows: what remains after a full collection is judged.
    Figure("jvm_mb", "memory of the stream's JVM", "MB", None),
    Figure("heap_mb", "JVM heap after a full collection", "MB", 0.1, 8.0),
    # Truncations by crashed leaders remain for a day: 24 partitions, 11 crashes, below 1 kB each.
    Figure("state_kb", "state of the stream", "kB", 0.1, 250.0),
    # It has every state of the newest 20 batches and of those since files were last removed, once
    # a minute: in bytes it follows the state, so how many states it has is judged.
    Figure("checkpoint_mb", "checkpoint on disk", "MB", None),
    Figure("checkpoint_states", "checkpoint on disk to the state", "×", 0.1, 8.0),
    Figure("checkpoint_files", "files of the checkpoint", "files", 0.1, 20.0),
    Figure("age_seconds", "lag: oldest event when its batch ends", "s", 0.5, 2.0),
    Figure("pass_age_seconds", "age of the newest pass on /metrics", "s", 0.5, 2.0),
    Figure("latency_seconds", "from a fault to its first message", "s", 0.5, 3.0),
)


# A shorter run is drawn and not judged: most of it is warm-up.
JUDGED_SECONDS: Final = 2700.0


class Judged(NamedTuple):
    """A figure of a run. `grows` is None where it is not judged."""

    figure: Figure
    points: list[Point]
    trend: Trend | None
    allowed: float | None
    grows: bool | None


def judge(series: Mapping[str, Sequence[Point]], duration: float) -> list[Judged]:
    """`series`: key -> points, of a run of so many seconds."""
    warm_up, found = warm_up_seconds(duration), []
    series = {**series, "checkpoint_states": _checkpoint_states(series)}
    for figure in FIGURES:
        points = list(series.get(figure.key, ()))
        found_trend = trend(points, warm_up)
        allowed = grows = None
        if found_trend and figure.share is not None and duration >= JUDGED_SECONDS:
            allowed = max(figure.share * found_trend.first, figure.absolute)
            grows = found_trend.growth > allowed
        found.append(Judged(figure, points, found_trend, allowed, grows))
    return found


def _checkpoint_states(series: Mapping[str, Sequence[Point]]) -> list[Point]:
    """Each size of the checkpoint to the newest size of the state; nothing before the first."""
    sizes = sorted(series.get("state_kb", ()))
    found = []
    for at, checkpoint_mb in series.get("checkpoint_mb", ()):
        known = bisect_right(sizes, at, key=itemgetter(0))
        if known and (state_kb := sizes[known - 1][1]) > 0:
            found.append((at, 1e3 * checkpoint_mb / state_kb))
    return found


def is_thin(figure: Judged, duration: float) -> bool:
    """Whether a run that is judged has too few samples of a figure, or none of a part of it."""
    counts = samples_of_thirds(figure.points, duration)
    return duration >= JUDGED_SECONDS and min(counts) < MIN_SAMPLES_OF_THIRD


def failures(judged: Sequence[Judged], duration: float) -> list[str]:
    """One line for each figure that grows, or that a run must have and has not."""
    found = []
    for each in judged:
        name, unit = each.figure.title, each.figure.unit
        if each.grows and each.trend is not None:
            found.append(
                f"{name} grows by {each.trend.growth:.1f} {unit}, {each.allowed:.1f} are allowed"
            )
        if not each.points:
            found.append(f"{name} was never sampled")
        elif is_thin(each, duration):
            counts = ", ".join(map(str, samples_of_thirds(each.points, duration)))
            found.append(
                f"{name} has too few samples after the warm-up: {counts} in its thirds, "
                f"{MIN_SAMPLES_OF_THIRD} are needed in each"
            )
    return found


def table(judged: Sequence[Judged]) -> Iterator[str]:
    """A line for each figure: its first and last third, its slope, the verdict."""
    yield f"{'':<40} {'first third':>11} {'last third':>11} {'per hour':>9} {'allowed':>8}"
    for each in judged:
        title = f"{each.figure.title} ({each.figure.unit})"
        if each.trend is None:
            yield f"{title:<40} {len(each.points)} samples: too few for a trend"
            continue
        allowed = "" if each.allowed is None else f"{each.allowed:.1f}"
        verdict = {True: "GROWS", False: "steady", None: "not judged"}[each.grows]
        first, last, slope, _ = each.trend
        yield f"{title:<40} {first:>11.1f} {last:>11.1f} {slope:>+9.1f} {allowed:>8}  {verdict}"

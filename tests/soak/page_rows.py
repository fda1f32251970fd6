"""The newest long run as a benchmark of docs/performance.json. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.bench.row import Kind, Row
from tests.soak.figures import Judged, is_thin
from tests.soak.trend import MIN_SAMPLES_OF_THIRD, samples_of_thirds, warm_up_seconds

# A shorter run is no soak.
PAGE_SECONDS: Final = 3600.0


def soak_benchmark(document: dict[str, Any], judged: Sequence[Judged]) -> dict[str, Any]:
    """As `tests.bench` writes its benchmarks. `document`: a soak-results.json."""
    rows = [
        {"target": None, "met": None, **row}
        for each in judged
        for row in _rows_of(each, float(document["seconds"]), len(document["faults"]))
    ]
    return {**{key: document[key] for key in ("measured", "machine", "load")}, "rows": rows}


def _rows_of(each: Judged, seconds: float, faults: int) -> Iterator[Row]:
    figure, kind = each.figure, _kind(each)
    run = f"{seconds / 60:.0f} minutes of the demo's pipeline, {faults} faults"
    judged_minutes = (seconds - warm_up_seconds(seconds)) / 60
    if each.trend is None or is_thin(each, seconds):
        # A missing figure is a missed target.
        yield Row(
            name=f"soak: {figure.title}, samples",
            value=float(min(samples_of_thirds(each.points, seconds))),
            unit="samples",
            kind="wall",
            target=f">= {MIN_SAMPLES_OF_THIRD} samples",
            met=False,
            how=f"{run}; in the third of the last {judged_minutes:.0f} minutes with the fewest",
        )
        return
    yield Row(
        name=f"soak: {figure.title}",
        value=each.trend.last,
        unit=figure.unit,
        kind=kind,
        how=f"{run}; median of the last {judged_minutes / 3:.0f} minutes",
    )
    if each.allowed is not None:
        yield Row(
            name=f"soak: {figure.title}, growth",
            value=each.trend.growth,
            unit=figure.unit,
            kind=kind,
            target=f"<= {each.allowed:.3g} {figure.unit}",
            met=not each.grows,
            how=f"{run}; growth over the last {judged_minutes:.0f} minutes, by the medians of "
            "thirds or the median of slopes, whichever shows more; target: a share of the first "
            "third, or a fixed amount where that is more",
        )


def _kind(each: Judged) -> Kind:
    return "wall" if each.figure.unit == "s" else "size"

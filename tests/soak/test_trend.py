"""What counts as growth, and what does not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak.figures import FIGURES, failures, judge, table
from tests.soak.sampling import heap_after_collection
from tests.soak.trend import MIN_SAMPLES, Point, theil_sen, trend, warm_up_seconds

HOUR = 3600.0
TIMES = [5.0 * number for number in range(720)]


def noisy(slope_per_hour: float, level: float = 300.0, noise: float = 10.0) -> list[Point]:
    generator = random.Random(4)
    return [(at, level + slope_per_hour * at / HOUR + generator.gauss(0.0, noise)) for at in TIMES]


def grows(points: list[Point], key: str = "driver_mb", seconds: float = HOUR) -> bool | None:
    series = {figure.key: [(at, 1.0) for at in TIMES] for figure in FIGURES} | {key: points}
    (found,) = (each for each in judge(series, seconds) if each.figure.key == key)
    return found.grows


# Half of the time; the median of the slopes alone does not show it.
STEP = [(at, 300.0 if at < 2200.0 else 400.0) for at in TIMES]
# A dip for most of the last third; the thirds alone do not show the leak.
DIP = [(at, 280.0 if 2850.0 < at < 3400.0 else value) for at, value in noisy(80.0)]
FEW = [(130.0 + number, 1.0) for number in range(MIN_SAMPLES - 1)]


@pytest.mark.parametrize(
    ("points", "grown"),
    [
        # A leak, and noise.
        (noisy(120.0), True),
        (noisy(0.0), False),
        (noisy(-120.0), False),
        # 10 % of 300 MB are allowed over the 45 minutes after the warm-up.
        (noisy(25.0), False),
        # The warm-up does not count.
        ([(at, min(300.0, 50.0 + at)) for at in TIMES], False),
        # A burst is no trend.
        ([(at, 900.0 if 1500.0 <= at < 1900.0 else 300.0) for at in TIMES], False),
        # One fault that lasts a few minutes at the end, such as a backlog that is being read.
        ([(at, 900.0 if at > 3400.0 else 300.0) for at in TIMES], False),
        (STEP, True),
        ([(at, 700.0 - value) for at, value in STEP], False),
        (DIP, True),
        # Stairs.
        ([(at, 300.0 + 20.0 * (at // 600.0)) for at in TIMES], True),
        # A short run shows no trend.
        (FEW, None),
    ],
)
def test_what_grows(points: list[Point], grown: bool | None) -> None:
    assert grows(points) is grown


def test_what_the_verdict_is_made_of() -> None:
    assert (warm_up_seconds(HOUR), warm_up_seconds(600.0)) == (900.0, 150.0)
    assert trend(FEW, 120.0) is None
    (found,) = (f for f in [trend(DIP, 900.0)] if f is not None)
    assert found.last < found.first
    # A short run is drawn with its slope, and not judged.
    assert grows(noisy(900.0), seconds=600.0) is None


@given(
    st.floats(-1e3, 1e3),
    st.floats(-1e6, 1e6),
    st.lists(st.floats(0, 1e4), min_size=2, max_size=40, unique=True),
)
def test_theil_sen_finds_the_slope_of_a_line(
    slope: float, level: float, times: list[float]
) -> None:
    spaced = sorted({round(at, 1) for at in times})
    found = theil_sen([(at, level + slope * at) for at in spaced])
    assert found == pytest.approx(slope if len(spaced) > 1 else 0.0, rel=1e-3, abs=1e-3)


def test_a_figure_without_samples_fails_the_run() -> None:
    reasons = failures(judge({}, HOUR), HOUR)
    assert len(reasons) == len(FIGURES)
    assert "memory of collect was never sampled" in reasons
    healthy = {figure.key: noisy(0.0) for figure in FIGURES}
    assert failures(judge(healthy, HOUR), HOUR) == []
    leaking = judge(healthy | {"heap_mb": noisy(100.0)}, HOUR)
    (reason,) = failures(leaking, HOUR)
    assert reason.startswith("JVM heap after a full collection grows by ")
    assert sum("GROWS" in line for line in table(leaking)) == 1


@pytest.mark.parametrize(
    ("points", "counts"),
    [
        # Before the warm-up, and a few after it.
        ([(at, 1.0) for at in TIMES if at < 920.0], "4, 0, 0"),
        # Enough for a trend, and none of them late.
        ([(at, 1.0) for at in TIMES if at < 2500.0], "180, 140, 0"),
    ],
)
def test_a_figure_with_too_few_samples_fails_the_run(points: list[Point], counts: str) -> None:
    series = {figure.key: noisy(0.0) for figure in FIGURES}
    # Also one that is not judged, which a run must have.
    for key in ("collect_mb", "jvm_mb"):
        judged = judge(series | {key: points}, HOUR)
        (reason,) = failures(judged, HOUR)
        assert f"has too few samples after the warm-up: {counts} in its thirds" in reason
    # A short run is not judged.
    assert failures(judge({f.key: [(1.0, 1.0)] for f in FIGURES}, 600.0), 600.0) == []


def test_the_heap_is_what_the_newest_full_collection_leaves(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    log = tmp_path_factory.mktemp("gc") / "gc.log"
    assert heap_after_collection(log) is None
    log.write_text(
        "[0.004s][info][gc] Using Serial\n"
        "[9.1s][info][gc] GC(4) Pause Full (System.gc()) 210M->84M(512M) 120.100ms\n"
        "[70.2s][info][gc] GC(5) Pause Full (System.gc()) 190M->86M(512M) 118.100ms\n"
        "[71.0s][info][gc] GC(6) Pause Young (Allocation Failure) 300M->120M(512M) 9.000ms\n",
        encoding="utf-8",
    )
    assert heap_after_collection(log) == 86.0

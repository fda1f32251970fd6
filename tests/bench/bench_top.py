"""CPU time of `tidemark top` for one pass: reducing it, the snapshot and the screen."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.bench.row import Row
from tests.stream.synthetic import CLUSTER, SyntheticPasses
from tidemark.detect.default_thresholds import Detection
from tidemark.verbs.top.frame import frame_lines
from tidemark.verbs.top.reducer import TopReducer
from tidemark.verbs.top.screens.header import MAX_PARTITIONS
from tidemark.verbs.top.ui_state import UiState

PASSES = 6
# Half of a period of 5 s; the collector takes less than as much again (bench_collect).
TARGET_MS = 2_500.0


def rows() -> Iterator[Row]:
    for partitions in (1_000, MAX_PARTITIONS):
        target = TARGET_MS if partitions == MAX_PARTITIONS else 200.0
        value = 1000 * cpu_seconds(partitions)
        yield Row(
            name=f"top: a pass over {partitions:,} partitions, reduced and shown",
            value=value,
            unit="ms",
            how=f"{partitions:,} partitions x 3 replicas with offsets that move each pass, without "
            f"the collector; CPU time of the middle one of {PASSES} passes",
            target=f"< {target:,.0f} ms",
            met=value < target,
        )


def cpu_seconds(partitions: int) -> float:
    load = SyntheticPasses(partitions=partitions, groups=1)
    reducer, taken = TopReducer(Detection()), []
    for number in range(PASSES + 1):
        values = [value for _, value in load.records(number)]
        began = time.process_time()
        for value in values:
            reducer.record(value)
        snapshot = reducer.snapshot(CLUSTER)
        assert snapshot is not None and len(snapshot.partitions) == partitions
        frame_lines(snapshot, UiState(), snapshot.at, 80, 24)
        taken.append(time.process_time() - began)
    # The first pass makes every state.
    return sorted(taken[1:])[PASSES // 2]

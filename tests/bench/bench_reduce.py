"""The reducer with every detector on, one core, no Spark: decoding, folding, judging, encoding."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tests.bench.folded import fold_passes
from tests.bench.row import Row, with_target
from tests.stream.synthetic import SyntheticPasses
from tidemark.verbs.replay.command import replay

PARTITIONS = 2_000
PASSES = 20
REPLAYED_A_SECOND = 40_000


def rows() -> Iterator[Row]:
    load = SyntheticPasses(partitions=PARTITIONS, groups=1)
    passes = [[value for _, value in load.records(number)] for number in range(PASSES)]
    began = time.process_time()
    ((blob, _),) = deque(fold_passes(passes), maxlen=1)
    seconds = time.process_time() - began
    how = (
        f"{PARTITIONS:,} partitions x 3 replicas with offsets that move each pass, {PASSES} "
        "passes, state decoded and encoded in each; CPU time"
    )
    yield Row(
        name="reduce: observations a second",
        value=PARTITIONS * PASSES / seconds,
        unit="1/s",
        how=how,
    )
    replaying = Row(
        name="replay: observations a second",
        value=replayed(passes),
        unit="1/s",
        how=f"`tidemark replay FILE --json`; {how}",
    )
    yield with_target(replaying, REPLAYED_A_SECOND, at_least=True)
    yield Row(
        name="reduce: state of a healthy partition", value=len(blob) / PARTITIONS, unit="B", how=how
    )


def replayed(passes: list[list[bytes]]) -> float:
    """Observations a second of CPU through the verb itself, which writes to /dev/null."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(b"".join(value + b"\n" for values in passes for value in values))
        with (
            Path(os.devnull).open("w", encoding="utf-8") as nowhere,
            contextlib.redirect_stdout(nowhere),
        ):
            began = time.process_time()
            replay.main([str(path), "--json"], standalone_mode=False)
            return PARTITIONS * PASSES / (time.process_time() - began)

"""CPU per observation of the stream on Spark standalone, with one and two workers, and locally.

All processes share the cores of one machine: the rows show what executors cost, and no speed-up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.bench_stream import GROUPS, _Run
from tests.bench.row import Row
from tests.bench.stream_load import Publisher, Shape, settings_of
from tests.stream.standalone import on, standalone
from tidemark.settings import Settings
from tidemark_lab.brokers.cluster import LocalCluster

SHAPE = Shape(10_000, 10)
WORKERS = {1: "one worker", 2: "two workers"}


def rows() -> Iterator[Row]:
    with LocalCluster() as cluster, tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        local = settings_of(cluster, folder, SHAPE, "-local")
        yield _measured("local mode", local, folder)
        for workers, name in WORKERS.items():
            place = folder / f"standalone-{workers}"
            place.mkdir()
            with standalone(place, workers) as spark:
                settings = settings_of(cluster, place, SHAPE, f"-{workers}")
                checkpoint = Path(settings.stream.checkpoint)
                pids = [process.pid for process in (spark.master, *spark.workers)]
                settings = on(settings, spark, checkpoint)
                yield _measured(f"Spark standalone, {name}", settings, place, pids)


def _measured(name: str, settings: Settings, folder: Path, beside: Sequence[int] = ()) -> Row:
    """`beside`: the master and the workers, which start the executors."""
    publisher = Publisher(_Run(settings, folder, beside), SHAPE.passes)
    try:
        observed, used, batches = publisher.publish_backlog(publisher.warm_up())
    finally:
        publisher.run.close()
    executors = "the master, workers, and executors of two cores, " if beside else ""
    return Row(
        name=f"stream: CPU per observation, {SHAPE.name}, {name}",
        value=1e6 * used / observed,
        unit="µs",
        how=(
            f"a backlog of {observed:,} observations in {batches} batches; driver, {executors}"
            f"all JVMs and Python workers, {GROUPS} groups"
        ),
    )

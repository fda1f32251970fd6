"""Small clusters as they are watched: the demo's three processes at the settings that are shipped.

Real brokers hold the watched topic and Tidemark's own; passes of 1 s; nothing goes wrong.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.bench.row import Row, with_target
from tests.processes import cpu_seconds, descendants
from tests.soak.sampling import pss_mb, stream_memory
from tidemark.jvm.java import find_java
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.demo.services import VERBS, Services

RECORDS_PER_SECOND: Final = 200
# The JVM compiles, and the first passes are published one at a time.
WARM_UP_SECONDS: Final = 90.0
SECONDS: Final = 300.0
# Partitions -> the bounds of `stream` and of all processes, in cores.
SIZES: Final = {48: (0.15, 0.20), 1_000: (0.22, 0.30), 2_000: (None, None)}
MEMORY_MB: Final = 650.0


def rows() -> Iterator[Row]:
    for partitions, (stream, whole) in SIZES.items():
        yield from rows_of(partitions, stream, whole)


def rows_of(partitions: int, of_stream: float | None, of_all: float | None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, java = Path(name), find_java()
        cluster = stack.enter_context(LocalCluster(folder / "kafka", java=java))
        places = [("bench", number) for number in range(partitions)]
        turned = [BROKERS[i:] + BROKERS[:i] for i in range(len(BROKERS))]
        assigned = {number: tuple(turned[number % len(turned)]) for _, number in places}
        cluster.create_topic("bench", assigned, {"min.insync.replicas": "1"})
        services = Services(cluster, folder, "http://127.0.0.1:9/", java)
        services.create_topics()
        servers, acknowledged = cluster.bootstrap_servers, folder / "acknowledged.jsonl"
        stack.enter_context(LoadProducer(servers, places, acknowledged, RECORDS_PER_SECOND))
        stack.callback(services.stop)
        services.start(with_prometheus=False)
        services.wait_ready()
        time.sleep(WARM_UP_SECONDS)
        before, began = _cpu_seconds(services), time.monotonic()
        time.sleep(SECONDS)
        services.check()
        seconds = time.monotonic() - began
        used = {
            verb: (now - before[verb]) / seconds for verb, now in _cpu_seconds(services).items()
        }
        memory = {
            **{verb: pss_mb(services.children[verb].pid) or 0.0 for verb in ("collect", "export")},
            **stream_memory(services.children["stream"].pid),
        }
    how = (
        f"{partitions:,} partitions x 3 replicas on three brokers beside it, {RECORDS_PER_SECOND} "
        f"records/s over all of them, passes of 1 s, shipped settings, {SECONDS:.0f} s after "
        f"{WARM_UP_SECONDS:.0f} s, {os.cpu_count()} cores"
    )
    parts = ", ".join(f"{part.removesuffix('_mb')} {size:.0f}" for part, size in memory.items())
    figures = (
        *((verb, used[verb], "cores", of_stream if verb == "stream" else None) for verb in VERBS),
        ("all processes", sum(used.values()), "cores", of_all),
        ("memory of all processes", sum(memory.values()), "MB", of_all and MEMORY_MB),
    )
    for what, value, unit, limit in figures:
        said = f"{how}; {'CPU time' if unit == 'cores' else f'proportional set size: {parts}'}"
        row = Row(
            name=f"small: {what}, {partitions:,} partitions",
            value=value,
            unit=unit,
            kind="cpu" if unit == "cores" else "size",
            how=said,
        )
        yield row if limit is None else with_target(row, limit)


def _cpu_seconds(services: Services) -> dict[str, float]:
    """Of each verb's process and all below it."""
    pids = {verb: services.children[verb].pid for verb in VERBS}
    return {verb: cpu_seconds((pid, *descendants(pid))) for verb, pid in pids.items()}

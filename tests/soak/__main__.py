"""`python -m tests.soak --seconds 3600`: the demo's pipeline under load with a fault a minute.

Draws memory, state, checkpoint, lag and latency over time into soak-results.svg and writes the
samples to soak-results.json, in `--output DIR`. Exits with 1 when a figure grows, was never sampled
or has too few samples. A run under 45 minutes is drawn, and its growth not judged. One of an hour
writes its figures to docs/performance.md. `--judge FILE` judges and draws a soak-results.json
again; with `--page` its figures go there too.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.machine import describe_machine
from tests.docs.performance import write_page
from tests.runs import exit_code
from tests.soak.drawing import draw
from tests.soak.figures import failures, judge, table
from tests.soak.page_rows import PAGE_SECONDS, soak_benchmark
from tests.soak.run import PARTITIONS, RECORDS_PER_SECOND, Soak

RESULTS, DRAWING = "soak-results.json", "soak-results.svg"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--output", type=Path, default=Path())
    parser.add_argument("--judge", type=Path, metavar="FILE")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.judge:
        document = json.loads(options.judge.read_text(encoding="utf-8"))
        return report(document, options.output, to_page=options.page)
    options.output.mkdir(parents=True, exist_ok=True)
    return exit_code("soak", lambda: run(options.seconds, options.output))


def run(seconds: float, output: Path) -> int:
    print(f"soak: {seconds:.0f} s, a fault a minute, {PARTITIONS} partitions", flush=True)
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="tidemark-soak-") as folder,
        Soak(Path(folder), lambda text: print(text, flush=True)) as soak,
    ):
        try:
            soak.run(seconds)
        finally:
            document = {
                "measured": datetime.now(UTC).date().isoformat(),
                "machine": describe_machine(),
                "load": round(load, 1),
                "seconds": seconds,
                "faults": soak.record.faults,
                "series": soak.record.series,
            }
            (output / RESULTS).write_text(json.dumps(document) + "\n", encoding="utf-8")
    return report(document, output, to_page=True)


def report(document: dict[str, Any], output: Path, *, to_page: bool) -> int:
    """Draws and judges a run; 1 when it fails. `to_page`: one of an hour goes on the page."""
    seconds = float(document["seconds"])
    judged = judge(document["series"], seconds)
    title = (
        f"{seconds / 60:.0f} minutes, {len(document['faults'])} faults, {PARTITIONS} partitions, "
        f"{RECORDS_PER_SECOND} records a second ({document['measured']})"
    )
    faults = [at for at, _ in document["faults"]]
    (output / DRAWING).write_text(draw(title, judged, seconds, faults), encoding="utf-8")
    print("\n".join(table(judged)))
    found = failures(judged, seconds)
    for reason in found:
        print(f"FAILED: {reason}")
    print(f"soak: {len(found)} failures; {output / DRAWING}")
    if to_page and seconds >= PAGE_SECONDS:
        # Also one that failed: the page has the newest run.
        write_page({"soak": soak_benchmark(document, judged)})
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

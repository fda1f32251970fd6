"""From a fault to a message, side by side: Tidemark's processes and the usual stack.

Both watch the same brokers in one run. `LATENCY_ROUNDS` (2) is how often three of the faults are
injected; the fourth one comes once. 17 rounds are 52 faults, of which the pooled p99 says more than
the longest of a few.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.latency_rows import latency_rows
from tests.bench.row import Row
from tests.bench.usual_stack import missing_programs
from tests.bench.watched_faults import KILLED, LEADER_KILLED, PAUSED, SLOW, Outcome, run_faults

ROUNDS = int(os.environ.get("LATENCY_ROUNDS", "2"))


def rows() -> Iterator[Row]:
    missing = missing_programs()
    if missing:
        raise RuntimeError(f"not installed: {', '.join(missing)} (make system)")
    kinds = [*[PAUSED, KILLED, LEADER_KILLED] * ROUNDS, SLOW]
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        for outcome in run_faults(Path(folder), kinds):
            outcomes.append(outcome)
            print(f"  {describe(outcome)}", flush=True)
    yield from latency_rows(outcomes)


def describe(outcome: Outcome) -> str:
    """Progress: seconds from the fault to everything that was seen of it."""
    parts = []
    for title, found in (
        ("visible", outcome.detectable),
        ("Tidemark", outcome.tidemark),
        ("usual stack", outcome.usual),
    ):
        times = [f"{name} {at - outcome.began:.1f}" for name, at in found.items()]
        parts.append(f"{title}: {', '.join(times) or 'nothing'}")
    return f"{outcome.fault}, {outcome.ended - outcome.began:.0f} s; {'; '.join(parts)}"

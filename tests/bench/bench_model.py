"""The search of the replication model: time, states per second and memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from tests.bench.row import Row
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.search import check
from tidemark_lab.model.state import Constants

# The largest search with default options. A process of its own gives a peak of its own.
AT_THE_CAP = """
import resource
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.search import check
from tidemark_lab.model.state import Constants
verdict = check(PROTOCOLS["kip-966"], Constants(replicas=3), [INVARIANTS["StrongIsr"]])
assert verdict.states == 1_000_000, verdict.states
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def rows() -> Iterator[Row]:
    slowest = 0.0
    for protocol in PROTOCOLS.values():
        began = time.process_time()
        # Only invariants that hold, so that the search covers the whole space.
        kept = [INVARIANTS[name] for name in ("TypeOk", "HwAtMostLeo", "LeaderInIsr")]
        if protocol.name not in {"truncate-to-hw", "kip-101"}:
            kept = list(INVARIANTS.values())
        assert check(protocol, Constants(), kept).complete
        slowest = max(slowest, time.process_time() - began)
    how = "2 replicas, log of 2, 2 records, epochs 0 to 2, breadth first, one core; CPU time"
    yield Row(
        name="model: slowest whole space of two replicas",
        value=slowest,
        unit="s",
        target="< 10 s",
        met=slowest < 10,
        how=f"every invariant that holds, each of the five protocols; {how}",
    )
    began = time.process_time()
    verdict = check(PROTOCOLS["kip-279"], Constants(replicas=3), [INVARIANTS["StrongIsr"]])
    seconds = time.process_time() - began
    assert verdict.trace is not None
    rate = verdict.states / seconds
    steps = len(verdict.trace.steps)
    how = f"3 replicas, else as above: {steps} steps after {verdict.states:,} states; CPU time"
    yield Row(
        name="model: counterexample of kip-279",
        value=seconds,
        unit="s",
        target="< 60 s",
        met=seconds < 60,
        how=how,
    )
    yield Row(
        name="model: states a second",
        value=rate,
        unit="1/s",
        target=">= 50,000",
        met=rate >= 50_000,
        how=how,
    )
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_CAP], capture_output=True, text=True, check=True
    )
    megabytes = float(done.stdout)
    yield Row(
        name="model: memory at the cap",
        value=megabytes,
        unit="MiB",
        target="< 1,024 MiB",
        met=megabytes < 1024,
        how="kip-966, 3 replicas, 1,000,000 states; peak resident size of the process",
    )

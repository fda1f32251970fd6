"""What a figure was measured on, and how fast that was at the time.

`python -m tests.bench.machine` prints both of this machine, now.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Final

import msgspec

from tidemark.garbage_collector import collection_paused

ROUNDS: Final = 7
ENTRIES: Final = 20_000


def describe_machine() -> str:
    """Processor, cores, memory and Python, in a line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}"
    )


def reference_ms() -> float:
    """CPU milliseconds of a fixed piece of work, the least of some rounds.

    It is of the kind that most benchmarks measure: arrays of JSON to objects, and look-ups among
    more of them than a processor's inner caches hold.
    """
    entries = [[number % 20, number, number * 7919 % 10**6, 1.5, True] for number in range(ENTRIES)]
    data, least = msgspec.json.encode(entries), float("inf")
    with collection_paused():
        for _ in range(ROUNDS):
            began = time.process_time()
            found = {(entry[0], entry[1]): entry for entry in msgspec.json.decode(data)}
            if sum(found[number % 20, number][2] for number in range(ENTRIES)) <= 0:
                raise RuntimeError("the reference does not add up")
            least = min(least, time.process_time() - began)
    return 1000 * least


def processor() -> str:
    """The model by /proc/cpuinfo, where it names one."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown processor"


if __name__ == "__main__":
    print(f"{describe_machine()}, reference {reference_ms():.1f} ms")

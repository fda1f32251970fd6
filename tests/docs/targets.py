"""The targets of docs/performance.json: `python -m tests.docs.targets` prints their verdicts.

A benchmark that no longer yields a row, or yields it without its target, is found here. A new
target is one line, once its row was measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from tests.bench.row import figure_text
from tests.docs.performance import read_benchmarks, rows_of


class Target(NamedTuple):
    """The row's `name`, and its `target` as `bound`; `*` for what differs from run to run."""

    name: str
    bound: str


class Verdict(NamedTuple):
    """`met` is None where no row has the target."""

    target: Target
    met: bool | None
    text: str


_LATENCY: Final = "detectable to webhook, Kafka*"

TARGETS: Final = (
    # The stream.
    Target("stream: CPU per observation, 100,000 partitions, all move", "<= 30 µs"),
    Target("stream: CPU per observation, 100,000 partitions, one in 10 moves", "<= 60 µs"),
    Target("stream: CPU per observation, 10,000 partitions, one in 10 moves", "<= 60 µs"),
    Target("stream: batches, one pass at a time, 100,000 partitions, one in 10 moves", "<= 1.5 s"),
    Target("stream: CPU per observation, 100,000 partitions to 1,000, all move", "<= 1.3 ×"),
    Target("stream: checkpoint to the state that changed, one pass at a time, 1*", "<= 2 ×"),
    Target("stream: restart, 100,000 partitions, all move", "<= 12 s"),
    Target("stream: restart, 100,000 partitions, one in 10 moves", "<= 12 s"),
    Target("sizes: state of a partition that moves", "<= 400 B"),
    # Latency.
    Target("output: p50, 10,000 partitions, all move", "<= 1 s"),
    Target("output: p99, 10,000 partitions, all move", "<= 2.5 s"),
    Target("output: p50, 10,000 partitions, one in 10 moves", "<= 1 s"),
    Target("output: p99, 10,000 partitions, one in 10 moves", "<= 2.5 s"),
    Target("output: median batch of a few records", "<= 0.5 s"),
    Target(f"latency: follower paused, {_LATENCY}", "<= * s"),
    Target(f"latency: follower killed, {_LATENCY}", "<= * s"),
    Target(f"latency: leader killed, {_LATENCY}", "<= * s"),
    Target(f"latency: follower slow, in sync, {_LATENCY}", "<= * s"),
    Target("latency: all faults, beyond the hysteresis, p99", "<= 4 s"),
    # The collector.
    Target("collect: 1,000 x 3 on brokers, one in 10 moves", "<= 5 µs a replica"),
    Target("collect: 1,000 x 3 on brokers, one in 10 moves, published", "<= 8 µs a replica"),
    Target("collect: 1,000 x 3 on brokers, all move", "<= 8 µs a replica"),
    Target("collect: 1,000 x 3 on brokers, all move, published", "<= 12 µs a replica"),
    Target("collect: pass over 1,000 x 3 on brokers, nothing moves", "<= 60 ms"),
    Target("collect: 3,000 x 3 on brokers, one in 10 moves", "<= 5 µs a replica"),
    Target("collect: 3,000 x 3 on brokers, one in 10 moves, published", "<= 8 µs a replica"),
    Target("collect: 3,000 x 3 on brokers, all move", "<= 8 µs a replica"),
    Target("collect: 3,000 x 3 on brokers, all move, published", "<= 12 µs a replica"),
    Target("collect: pass over 3,000 x 3 on brokers, nothing moves", "<= 150 ms"),
    Target("fleet: passes in 60 s that three clusters at fault cost another*", "<= 1 passes"),
    Target("collect: 100,000 x 3, every offset moves", "< 5,000 ms"),
    Target("collect: 100,000 x 3, one in ten moves", "< 5,000 ms"),
    # The exporter and its pages.
    Target("export: scrape, CPU", "< 50 ms"),
    Target("export: refresh when every view has changed", "< 2 s"),
    Target("export: beside prometheus_client's gauges", ">= 20 times"),
    Target("export: from start to ready", "< 30 s"),
    Target("pages: filter and page", "< 0.3 s"),
    Target("pages: last page of all, worst first", "< 0.3 s"),
    Target("pages: API, last page of all", "< 0.3 s"),
    Target("pages: overview", "< 0.3 s"),
    Target("pages: topics", "< 0.3 s"),
    Target("pages: one broker's stop", "< 0.3 s"),
    # Replay.
    Target("replay: observations a second", ">= 40,000*"),
)


def verdicts(rows: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Of each target, by every row of its name: all of them must have it, and meet it."""
    for target in TARGETS:
        found = [row for row in rows if fnmatchcase(row["name"], target.name)]
        if not found:
            yield Verdict(target, None, "no such row")
            continue
        others = [
            row["target"] for row in found if not fnmatchcase(row["target"] or "", target.bound)
        ]
        values = ", ".join(map(figure_text, found))
        if others:
            yield Verdict(target, None, f"{values}: the row has {others[0] or 'no target'}")
        else:
            yield Verdict(target, all(row["met"] for row in found), values)


def main() -> int:
    found = list(verdicts(rows_of(read_benchmarks())))
    words = {True: "met", False: "MISSED", None: "ABSENT"}
    for each in found:
        print(f"{words[each.met]:<7} {each.target.name:<76} {each.target.bound:<18} {each.text}")
    counts = ", ".join(f"{sum(v.met is met for v in found)} {word}" for met, word in words.items())
    print(f"{len(found)} targets: {counts}")
    return int(any(each.met is None for each in found))


if __name__ == "__main__":
    sys.exit(main())

"""The bars that docs/performance.md must show: `python -m tests.docs.bars` prints their verdicts.

A bench that no longer yields a row, or yields it without its bar, is found here. A new bar is one
line, once its row was measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from tests.docs.performance import format_value, read_rooms, rows_of


class Bar(NamedTuple):
    """`name` and `bar` as the row has them; `*` for what differs from run to run."""

    name: str
    bar: str


class Verdict(NamedTuple):
    """`met` is None where no row has the bar."""

    bar: Bar
    met: bool | None
    text: str


_LATENCY: Final = "detectable to webhook, Kafka*"

BARS: Final = (
    # The stream.
    Bar("stream: CPU per observation, 100,000 partitions, all move", "<= 30 µs"),
    Bar("stream: CPU per observation, 100,000 partitions, one in 10 moves", "<= 60 µs"),
    Bar("stream: CPU per observation, 10,000 partitions, one in 10 moves", "<= 60 µs"),
    Bar("stream: batches, one pass at a time, 100,000 partitions, one in 10 moves", "<= 1.5 s"),
    Bar("stream: CPU per observation, 100,000 partitions to 1,000, all move", "<= 1.3 ×"),
    Bar("stream: checkpoint to the state that changed, one pass at a time, 1*", "<= 2 ×"),
    Bar("stream: restart, 100,000 partitions, all move", "<= 12 s"),
    Bar("stream: restart, 100,000 partitions, one in 10 moves", "<= 12 s"),
    Bar("sizes: state of a partition that moves", "<= 400 B"),
    # Latency.
    Bar("output: p50, 10,000 partitions, all move", "<= 1 s"),
    Bar("output: p99, 10,000 partitions, all move", "<= 2.5 s"),
    Bar("output: p50, 10,000 partitions, one in 10 moves", "<= 1 s"),
    Bar("output: p99, 10,000 partitions, one in 10 moves", "<= 2.5 s"),
    Bar("output: median batch of a few records", "<= 0.5 s"),
    Bar(f"latency: follower paused, {_LATENCY}", "<= * s"),
    Bar(f"latency: follower killed, {_LATENCY}", "<= * s"),
    Bar(f"latency: leader killed, {_LATENCY}", "<= * s"),
    Bar(f"latency: follower slow, in sync, {_LATENCY}", "<= * s"),
    Bar("latency: all faults, beyond the hysteresis, p99", "<= 4 s"),
    # The collector.
    Bar("collect: 1,000 x 3 on brokers, one in 10 moves", "<= 5 µs a replica"),
    Bar("collect: 1,000 x 3 on brokers, one in 10 moves, published", "<= 8 µs a replica"),
    Bar("collect: 1,000 x 3 on brokers, all move", "<= 8 µs a replica"),
    Bar("collect: 1,000 x 3 on brokers, all move, published", "<= 12 µs a replica"),
    Bar("collect: pass over 1,000 x 3 on brokers, nothing moves", "<= 60 ms"),
    Bar("collect: 3,000 x 3 on brokers, one in 10 moves", "<= 5 µs a replica"),
    Bar("collect: 3,000 x 3 on brokers, one in 10 moves, published", "<= 8 µs a replica"),
    Bar("collect: 3,000 x 3 on brokers, all move", "<= 8 µs a replica"),
    Bar("collect: 3,000 x 3 on brokers, all move, published", "<= 12 µs a replica"),
    Bar("collect: pass over 3,000 x 3 on brokers, nothing moves", "<= 150 ms"),
    Bar("collect: 100,000 x 3, every offset moves", "< 5,000 ms"),
    Bar("collect: 100,000 x 3, one in ten moves", "< 5,000 ms"),
    # The exporter and its pages.
    Bar("export: scrape, CPU", "< 50 ms"),
    Bar("export: refresh when every view has changed", "< 2 s"),
    Bar("export: beside prometheus_client's gauges", ">= 20 times"),
    Bar("export: from start to ready", "< 30 s"),
    Bar("pages: filter and page", "< 0.3 s"),
    Bar("pages: last page of all, worst first", "< 0.3 s"),
    Bar("pages: API, last page of all", "< 0.3 s"),
    Bar("pages: overview", "< 0.3 s"),
    Bar("pages: topics", "< 0.3 s"),
    Bar("pages: one broker's stop", "< 0.3 s"),
    # Replay and the model.
    Bar("replay: observations a second", ">= 40,000*"),
    Bar("model: states a second", ">= 50,000*"),
)


def verdicts(rows: Sequence[Mapping[str, Any]]) -> Iterator[Verdict]:
    """Of each bar, by every row of its name: all of them must have it, and meet it."""
    for bar in BARS:
        found = [row for row in rows if fnmatchcase(row["name"], bar.name)]
        if not found:
            yield Verdict(bar, None, "no such row")
            continue
        others = [row["bar"] for row in found if not fnmatchcase(row["bar"] or "", bar.bar)]
        values = ", ".join(f"{format_value(row['value'])} {row['unit']}" for row in found)
        if others:
            yield Verdict(bar, None, f"{values}: the row has {others[0] or 'no bar'}")
        else:
            yield Verdict(bar, all(row["met"] for row in found), values)


def main() -> int:
    found = list(verdicts(rows_of(read_rooms())))
    words = {True: "met", False: "MISSED", None: "ABSENT"}
    for each in found:
        print(f"{words[each.met]:<7} {each.bar.name:<76} {each.bar.bar:<18} {each.text}")
    counts = ", ".join(f"{sum(v.met is met for v in found)} {word}" for met, word in words.items())
    print(f"{len(found)} bars: {counts}")
    return int(any(each.met is None for each in found))


if __name__ == "__main__":
    sys.exit(main())

"""What clusters of some sizes need, from the unit costs that the benches measured.

A line whose unit cost was not measured is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final

REPLICAS: Final = 3
PERIOD_SECONDS: Final = 5.0
SIZES: Final = (10_000, 100_000, 1_000_000)
# Half of a core is left for what the unit costs leave out: metadata, restarts, bursts.
USED_SHARE: Final = 0.5
EXECUTOR_CORES: Final = 4
MEGABYTE: Final = 1e6

# Unit cost -> the row that has it, and by what its value is divided; a later line of the same unit
# stands in for an earlier one that was not measured.
UNITS: Final[Sequence[tuple[str, str, float]]] = (
    ("collect, quiet", "collect: 10,000 x 3, nothing moves", 30_000 / 1_000),
    ("collect, moving", "collect: 10,000 x 3, every offset moves", 30_000 / 1_000),
    ("stream", "stream: CPU per observation, 100,000 partitions, all move", 1.0),
    ("stream", "stream: CPU per pass of 10,000 partitions", 10_000 / 1e6),
    # Seconds of CPU: what a batch costs, whatever is in it.
    ("batch", "stream: CPU, one pass at a time, 1,000 partitions, all move", 1.0),
    ("apply", "export: a view that changed, decoded and applied", 1.0),
    ("event", "sizes: an observation as published", 1.0),
    ("view", "sizes: a view as published", 1.0),
    ("views", "sizes: views for an observation", 1.0),
    ("state", "sizes: state of a partition that moves", 1.0),
)


def unit_costs(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """CPU in microseconds for a replica, an observation or a view, in seconds for a batch; bytes
    for the others.
    """
    values = {row["name"]: row["value"] for row in rows}
    return {
        unit: values[name] / divisor for unit, name, divisor in reversed(UNITS) if name in values
    }


def sizing_table(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """CPU, bytes and state by the number of partitions, one in ten of which moves, and all."""
    unit = unit_costs(rows)
    head = ["Partitions × 3, a pass each 5 s"]
    head += [f"{size:,}, {share}" for size in SIZES for share in ("1 in 10 moves", "all move")]
    lines = [tuple(head), ("---", *("--:",) * (len(head) - 1))]
    for title, needs, value_of in _LINES:
        if all(need in unit for need in needs):
            cells = (value_of(unit, size, size * share) for size in SIZES for share in (0.1, 1.0))
            lines.append((title, *cells))
    return lines


def _collect_cores(unit: Mapping[str, float], size: int, moving: float) -> str:
    quiet, all_move = unit["collect, quiet"], unit["collect, moving"]
    microseconds = quiet * (size - moving) + all_move * moving
    return _cores(REPLICAS * microseconds / 1e6 / PERIOD_SECONDS)


def _stream_cores(unit: Mapping[str, float], size: int, moving: float) -> str:
    batch = unit.get("batch", 0.0) / PERIOD_SECONDS
    return _cores(batch + unit["stream"] * _observations(size, moving) / 1e6)


def _export_cores(unit: Mapping[str, float], size: int, moving: float) -> str:
    return _cores(unit["apply"] * unit["views"] * _observations(size, moving) / 1e6)


def _event_bytes(unit: Mapping[str, float], size: int, moving: float) -> str:
    return _rate(unit["event"] * _observations(size, moving))


def _view_bytes(unit: Mapping[str, float], size: int, moving: float) -> str:
    return _rate(_views(unit) * _observations(size, moving))


def _state_bytes(unit: Mapping[str, float], size: int, _moving: float) -> str:
    return _bytes(unit["state"] * size)


def _checkpoint_bytes(unit: Mapping[str, float], size: int, _moving: float) -> str:
    """A group's state is one value, so that each batch writes the groups that it touches whole."""
    return _rate(unit["state"] * size / PERIOD_SECONDS)


_LINES: Final = (
    ("cores of `collect`", ("collect, quiet", "collect, moving"), _collect_cores),
    ("cores of `stream`", ("stream",), _stream_cores),
    ("cores of `export`, without pages", ("apply", "views"), _export_cores),
    ("event topic, as published", ("event",), _event_bytes),
    ("views topic, before compaction", ("view", "views"), _view_bytes),
    ("state of the stream", ("state",), _state_bytes),
    ("written to the checkpoint, at most", ("state",), _checkpoint_bytes),
)


def large_table(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """What a million partitions need where one in ten moves, with half of each core left free."""
    return [("Part", "A million partitions × 3"), ("---", "---"), *_large_lines(unit_costs(rows))]


def _large_lines(unit: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    size = SIZES[-1]
    observations = _observations(size, size / 10)
    if {"collect, quiet", "collect, moving"} <= unit.keys():
        mean = 0.9 * unit["collect, quiet"] + 0.1 * unit["collect, moving"]
        shards = ceil(REPLICAS * size * mean / 1e6 / PERIOD_SECONDS / USED_SHARE)
        yield "`collect`", f"{shards} shards, each with one core for half of its time"
    if "stream" in unit:
        cores = ceil(unit["stream"] * observations / 1e6 / USED_SHARE)
        executors = ceil(cores / EXECUTOR_CORES)
        yield (
            "executors",
            f"{executors} of {EXECUTOR_CORES} cores for {observations:,.0f} observations/s",
        )
        groups = 2 ** max(4, (4 * cores - 1).bit_length())
        yield "`topics.partitions`", f"{groups}: four groups a core, so that no core waits for one"
    if "state" in unit:
        state = unit["state"] * size
        yield "state", f"{_bytes(state)} over all executors"
        yield (
            "checkpoint",
            f"at most {_rate(state / PERIOD_SECONDS)}: a batch writes each group that it touches",
        )
    if {"event", "view", "views"} <= unit.keys():
        events, views = _rate(unit["event"] * observations), _rate(_views(unit) * observations)
        yield "network", f"{events} of events and {views} of views, times the replication factor"
    if "view" in unit:
        yield "views topic", f"{_bytes(unit['view'] * size)} once compacted, for each replica"


def _observations(size: int, moving: float) -> float:
    """Observations a second: what moves at each pass, the rest each 30 s."""
    return moving / PERIOD_SECONDS + (size - moving) / 30.0


def _views(unit: Mapping[str, float]) -> float:
    """Bytes of views for an observation."""
    return unit["view"] * unit["views"]


def _cores(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _rate(value: float) -> str:
    return f"{_bytes(value)}/s"


def _bytes(value: float) -> str:
    if value >= 1e9:
        return f"{value / 1e9:.2g} GB"
    return f"{value / MEGABYTE:.2g} MB" if value < 1e7 else f"{value / MEGABYTE:,.0f} MB"

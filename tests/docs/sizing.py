"""What clusters of some sizes need, from the unit costs that the benchmarks measured.

A line whose unit cost was not measured is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final, NamedTuple

from tidemark.reduce.schedule import QUIET_SECONDS, moving_seconds

REPLICAS: Final = 3
PERIOD_SECONDS: Final = 5.0
THIN_SECONDS: Final = 30.0
DAY_SECONDS: Final = 86_400
SIZES: Final = (10_000, 100_000, 1_000_000)
SHARES: Final = (0.1, 1.0)
# Half of a core is left for what the unit costs leave out: metadata, restarts, bursts.
USED_SHARE: Final = 0.5
EXECUTOR_CORES: Final = 4
MEGABYTE: Final = 1e6
FLEET: Final = 40


class Load(NamedTuple):
    """Partitions of three replicas, the share that moves at each pass, and the seconds of one.

    `clusters`: over how many the partitions are spread evenly.
    """

    size: int
    share: float
    period: float = PERIOD_SECONDS
    clusters: int = 1


LOADS: Final = (
    *(Load(size, share) for size in SIZES for share in SHARES),
    Load(1_200 * FLEET, SHARES[0], 1.0, FLEET),
)
LARGE: Final = Load(SIZES[-1], SHARES[0])
_ONE, _PASS = "stream: CPU per observation", "stream: CPU, one pass at a time"
_MEMORY = "stream: resident memory of the"

# Unit cost -> the row that has it, and by what its value is divided.
UNITS: Final[Sequence[tuple[str, str, float]]] = (
    ("collect, 0.1", "collect: 3,000 x 3 on brokers, one in 10 moves, published", 1.0),
    ("collect, 1.0", "collect: 3,000 x 3 on brokers, all move, published", 1.0),
    # Cores.
    ("collect, fleet", "fleet: collect, 40 x 1,200", 1.0),
    ("stream", f"{_ONE}, 100,000 partitions, all move", 1.0),
    (
        "executors",
        f"{_ONE}, 10,000 partitions, one in 10 moves, Spark standalone, two workers",
        1.0,
    ),
    # Seconds of CPU: what a batch costs, whatever is in it, and what a pass of a size costs.
    ("batch", f"{_PASS}, 1,000 partitions, all move", 1.0),
    ("pass, 10000", f"{_PASS}, 10,000 partitions, one in 10 moves", 1.0),
    ("pass, 100000", f"{_PASS}, 100,000 partitions, one in 10 moves", 1.0),
    ("apply", "export: a view that changed, decoded and applied", 1.0),
    ("event", "sizes: an observation as published", 1.0),
    ("compact event", "sizes: an observation of version 2 as published", 1.0),
    ("view", "sizes: a view as published", 1.0),
    ("state", "sizes: state of a partition that moves", 1.0),
    *(
        (f"{part}, {size}", f"{_MEMORY} {part}, {size:,} partitions, all move", 1.0)
        for part in ("driver", "JVM", "Python workers")
        for size in (1_000, 100_000)
    ),
)


def unit_costs(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """CPU in microseconds for a replica, an observation or a view, in seconds for a batch; bytes
    for the others.
    """
    values = {row["name"]: row["value"] for row in rows}
    return {unit: values[name] / divisor for unit, name, divisor in UNITS if name in values}


def sizing_table(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """CPU, bytes and state by the number of partitions, one in ten of which moves, and all."""
    unit = unit_costs(rows)
    head = ["Partitions × 3, a pass each 5 s"]
    head += [f"{size:,}, {what}" for size in SIZES for what in ("1 in 10 moves", "all move")]
    head.append(f"{FLEET} clusters of 1,200, a pass each s, 1 in 10 moves")
    lines = [tuple(head), ("---", *("--:",) * (len(head) - 1))]
    for title, needs, value_of in _LINES:
        if all(need in unit for need in needs):
            lines.append((title, *(value_of(unit, load) for load in LOADS)))
    return lines


def _collect_cores(unit: Mapping[str, float], load: Load) -> str:
    """A quiet partition's repeats are in the measured cost."""
    if load.clusters == FLEET:
        return _cores(unit["collect, fleet"]) if "collect, fleet" in unit else ""
    return _cores(REPLICAS * load.size * unit[f"collect, {load.share}"] / 1e6 / load.period)


def _stream_cores(unit: Mapping[str, float], load: Load) -> str:
    measured = min(load.size, 100_000)
    if load.share == SHARES[0] and load.clusters == 1:
        return _cores(unit[f"pass, {measured}"] * load.size / measured / load.period)
    return _cores(unit["batch"] / load.period + unit["stream"] * _observations(load) / 1e6)


def _product(
    cost: str,
    amount: Callable[[Load], float],
    text_of: Callable[[float], str],
    factor: float = 1.0,
) -> Callable[[Mapping[str, float], Load], str]:
    """A need in proportion to the partitions, observations or views that a size has."""

    def value_of(unit: Mapping[str, float], load: Load) -> str:
        return text_of(unit[cost] * amount(load) * factor)

    return value_of


def _memory(unit: Mapping[str, float], load: Load) -> str:
    """In proportion to the partitions, from the smallest and the largest measured size."""
    total = 0.0
    for part in ("driver", "JVM", "Python workers"):
        small, large = unit[f"{part}, 1000"], unit[f"{part}, 100000"]
        total += small + max(0.0, large - small) * (load.size - 1_000) / 99_000
    return _bytes(total * MEGABYTE)


def large_table(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """What a million partitions need where one in ten moves, with half of each core left free."""
    return [("Part", "A million partitions × 3"), ("---", "---"), *_large_lines(unit_costs(rows))]


def _large_lines(unit: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    size, observations = LARGE.size, _observations(LARGE)
    if "collect, 0.1" in unit:
        used = REPLICAS * size * unit["collect, 0.1"] / 1e6 / PERIOD_SECONDS
        yield "`collect`", f"{ceil(used / USED_SHARE)} shards, each with one core for half its time"
    if "executors" in unit:
        cores = ceil(unit["executors"] * observations / 1e6 / USED_SHARE)
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
    if {"event", "view"} <= unit.keys():
        events = _rate(unit["event"] * observations)
        views = _rate(unit["view"] * _views(LARGE))
        text = f"{events} of events and {views} of views, times the replication factor, and out of"
        text += " Kafka once to the stream and once to each exporter; answers to the collectors"
        yield "network", f"{text} were not measured"
    if "view" in unit:
        yield "views topic", f"{_bytes(unit['view'] * size)} once compacted, for each replica"


def _observations(load: Load) -> float:
    """Observations a second: what moves at each pass, the rest each 30 s."""
    return load.size * (load.share / load.period + (1 - load.share) / THIN_SECONDS)


def _views(load: Load) -> float:
    """Views a second of healthy partitions."""
    moving = moving_seconds(load.size // load.clusters)
    return load.size * (load.share / moving + (1 - load.share) / QUIET_SECONDS)


def _partitions(load: Load) -> float:
    """The partitions."""
    return load.size


def _written(load: Load) -> float:
    """The partitions a second that a batch for each pass may write."""
    return load.size / load.period


def _cores(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _rate(value: float) -> str:
    return f"{_bytes(value)}/s"


def _bytes(value: float) -> str:
    if value >= 1e9:
        gigabytes = value / 1e9
        return f"{gigabytes:,.0f} GB" if gigabytes >= 10 else f"{gigabytes:.2g} GB"
    return f"{value / MEGABYTE:.2g} MB" if value < 1e7 else f"{value / MEGABYTE:,.0f} MB"


_LINES: Final = (
    ("cores of `collect`", ("collect, 0.1", "collect, 1.0"), _collect_cores),
    ("cores of `stream`", ("batch", "stream", "pass, 10000", "pass, 100000"), _stream_cores),
    (
        "memory of `stream`: driver, JVM, Python workers",
        tuple(unit for unit, name, _ in UNITS if name.startswith(_MEMORY)),
        _memory,
    ),
    ("cores of `export`, without pages", ("apply",), _product("apply", _views, _cores, 1e-6)),
    ("event topic, as published", ("event",), _product("event", _observations, _rate)),
    (
        "event topic, events of version 2",
        ("compact event",),
        _product("compact event", _observations, _rate),
    ),
    (
        "event topic, a day of it, for each replica",
        ("event",),
        _product("event", _observations, _bytes, DAY_SECONDS),
    ),
    ("views topic, before compaction", ("view",), _product("view", _views, _rate)),
    ("state of the stream", ("state",), _product("state", _partitions, _bytes)),
    # A group's state is one value, so that each batch writes the groups that it touches whole.
    (
        "written to the checkpoint, at most",
        ("state",),
        _product("state", _written, _rate),
    ),
)

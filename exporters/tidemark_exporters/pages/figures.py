"""The drawings of a partition, geometry only, in per cent: its in-sync replicas over time, and its
replica logs over one axis of offsets.

Every part keeps what it shows, so that a reader, and a test, can compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from tidemark.assess.replica_logs import divergent_offsets, logs_by_broker
from tidemark.core.epoch_ranges import EpochRange
from tidemark.core.records import ReplicaView, View

TICKS: Final = 5


class Axis(NamedTuple):
    """Offsets or Unix seconds [start, end)."""

    start: float
    end: float

    def position(self, value: float) -> float:
        """Per cent of the width; below 0 and above 100 is outside of the drawing."""
        # So large are some times that adding a second gives the same number.
        return round(100.0 * (value - self.start) / ((self.end - self.start) or 1.0), 4)

    def visible_position(self, value: float | None) -> float | None:
        """The same, but null for a value that is unknown or outside of the drawing."""
        if value is None or not self.start <= value <= self.end:
            return None
        return self.position(value)

    def ticks(self) -> list[tuple[float, int]]:
        """(position, offset) at round offsets, about TICKS of them."""
        step = 1
        while step < (self.end - self.start) / TICKS:
            step = step * 5 // 2 if str(step)[0] == "2" else step * 2
        first = -(-int(self.start) // step) * step
        return [(self.position(each), each) for each in range(first, int(self.end) + 1, step)]


Members = list[int]
History = list[tuple[float, Members]]


class IsrFigure(NamedTuple):
    """`rows`: broker -> (position, width, in sync) of each span. `changes`: oldest first,
    (time, members, those that left, those that joined).
    """

    axis: Axis
    rows: dict[int, list[tuple[float, float, bool]]]
    changes: list[tuple[float, Members, Members, Members]]


def draw_isr(view: View) -> IsrFigure | None:
    """None: no broker has reported the in-sync set."""
    history = [(at, members) for at, members in view.isr_history if at <= view.at]
    if not history:
        return None
    first_at, _ = history[0]
    axis = Axis(first_at, max(view.at, first_at + 1.0))
    brokers = sorted({*view.assigned, *(broker for _, members in history for broker in members)})
    changes = [
        (
            at,
            members,
            [broker for broker in before if broker not in members],
            [broker for broker in members if broker not in before],
        )
        for (_, before), (at, members) in pairwise([history[0], *history])
    ]
    return IsrFigure(axis, {broker: _spans(broker, history, axis) for broker in brokers}, changes)


def _spans(broker: int, history: History, axis: Axis) -> list[tuple[float, float, bool]]:
    membership = ((at, broker in members) for at, members in history)
    # A span begins where the broker's membership changes.
    starts = [next(group) for _, group in groupby(membership, key=lambda each: each[1])]
    positions = [*(axis.position(at) for at, _ in starts), axis.position(axis.end)]
    return [
        (x, round(end - x, 4), in_sync)
        for (x, end), (_, in_sync) in zip(pairwise(positions), starts, strict=True)
    ]


# Leader epochs take these colours in turn. The epoch's number is beside its colour.
COLOURS: Final = 8
# Logs that differ by less than this share of their length are drawn enlarged.
ENLARGE_BELOW: Final = 1 / 8
MIN_OFFSETS: Final = 10


class Segment(NamedTuple):
    """A part of a bar: position and width in per cent, and the range that it shows."""

    x: float
    width: float
    range: EpochRange

    @property
    def style(self) -> str:
        """Class names: the colour of the epoch, and whether the epoch is inferred."""
        if self.range.epoch is None:
            return "unknown"
        return f"e{self.range.epoch % COLOURS}" + (" inferred" if self.range.inferred else "")

    @property
    def label(self) -> str:
        """The epoch, where it fits."""
        text = "?" if self.range.epoch is None else str(self.range.epoch)
        return text if self.width >= 2.5 + 1.5 * len(text) else ""


class LogBar(NamedTuple):
    """One replica. `diverges_at`: the first offset that the leader holds under another epoch."""

    replica: ReplicaView
    log: list[EpochRange]
    segments: list[Segment]
    diverges_at: int | None


class LogFigure(NamedTuple):
    """All replicas over `axis`, the leader first; `whole` is from first log start to last log end.

    `overview`: the first bar over `whole`. `lost`: ranges of lost records over `axis`.
    """

    axis: Axis
    whole: Axis
    overview: list[Segment]
    bars: list[LogBar]
    lost: list[Segment]


def draw_logs(
    view: View, lost: Sequence[tuple[int, int]] = (), axis: Axis | None = None
) -> LogFigure | None:
    """The logs over `axis`, else over the offsets that differ. None: no log end is known."""
    whole = whole_axis(view, lost)
    if whole is None:
        return None
    logs = logs_by_broker(view)
    divergent = divergent_offsets(view, logs)
    differing = [*divergent.values(), *(bound for pair in lost for bound in pair)]
    axis = axis or enlarged_axis(view, differing, whole) or whole
    bars = [
        LogBar(
            replica=replica,
            log=logs[replica.broker],
            segments=_segments(logs[replica.broker], axis),
            diverges_at=divergent.get(replica.broker),
        )
        for replica in sorted(view.replicas, key=lambda r: (r.broker != view.leader, r.broker))
    ]
    return LogFigure(
        axis=axis,
        whole=whole,
        overview=_segments(bars[0].log, whole),
        bars=bars,
        lost=_segments([EpochRange(None, start, end) for start, end in lost], axis),
    )


def whole_axis(view: View, lost: Sequence[tuple[int, int]]) -> Axis | None:
    """From the lowest known offset to the last offset of any log or lost range."""
    ends = _known(replica.log_end_offset for replica in view.replicas)
    if not ends:
        return None
    starts = _known(replica.log_start_offset for replica in view.replicas)
    marks = _known([view.high_watermark, *(replica.high_watermark for replica in view.replicas)])
    first = min([*starts, *marks, *ends])
    last = max([*ends, *marks, *(end for _, end in lost)])
    return Axis(first, max(last, first + MIN_OFFSETS))


def enlarged_axis(view: View, others: Iterable[int], whole: Axis) -> Axis | None:
    """Around all log ends, high watermarks and `others`. None: `whole` shows them well enough."""
    ends = _known(replica.log_end_offset for replica in view.replicas)
    marks = _known(replica.high_watermark for replica in view.replicas)
    offsets = [*ends, *marks, *others]
    low, high = min(offsets, default=0), max(offsets, default=0)
    spread = high - low
    if spread == 0 or spread >= ENLARGE_BELOW * (whole.end - whole.start):
        return None
    margin = max(spread, MIN_OFFSETS)
    return Axis(
        max(whole.start, low - margin),
        max(min(whole.end, high + margin // 4), low + MIN_OFFSETS),
    )


def _known(offsets: Iterable[int | None]) -> list[int]:
    return [offset for offset in offsets if offset is not None]


def _segments(log: Iterable[EpochRange], axis: Axis) -> list[Segment]:
    found = []
    for each in log:
        start, end = max(each.start, axis.start), min(each.end, axis.end)
        if start < end:
            x = axis.position(start)
            found.append(Segment(x, round(axis.position(end) - x, 4), each))
    return found

"""Where to draw what: replica logs over one scale of offsets, in-sync sets over time. Geometry only, in per cent.

Everything drawn carries the offsets it stands for, so that a reader (and a test) can hold the drawing to the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tidemark.core.epoch_ranges import (
    EpochRange,
    first_divergent_offset,
    infer_tail,
    split_log_by_epoch,
)
from tidemark.core.records import ReplicaView, View

# Epochs are told apart by so many colours in turn; the number stands beside.
COLOURS: Final = 8
# Logs that differ by less than this part of their length are drawn a second time, closer.
CLOSE: Final = 1 / 8
MIN_WINDOW: Final = 10
TICKS: Final = 5


class Range(NamedTuple):
    """Offsets or Unix seconds [start, end)."""

    start: float
    end: float

    def place(self, value: float) -> float:
        """Where a value stands, in per cent; outside of 0 to 100 it is not in sight."""
        # Two times can be so large that a second later is the same number.
        return round(100.0 * (value - self.start) / ((self.end - self.start) or 1.0), 4)

    def holds(self, value: float) -> bool:
        return self.start <= value <= self.end


class Segment(NamedTuple):
    """A drawn part of a bar: place and width in per cent, and the stretch it stands for."""

    x: float
    width: float
    stretch: EpochRange

    @property
    def style(self) -> str:
        """Class names: the epoch's colour, and whether it was inferred."""
        if self.stretch.epoch is None:
            return "unknown"
        return f"e{self.stretch.epoch % COLOURS}" + (" inferred" if self.stretch.inferred else "")

    @property
    def label(self) -> str:
        """The epoch, where there is room for it."""
        text = "?" if self.stretch.epoch is None else str(self.stretch.epoch)
        return text if self.width >= 2.5 + 1.5 * len(text) else ""


class LogRow(NamedTuple):
    """One replica. A place is null where the figure is not known or not in sight."""

    replica: ReplicaView
    leads: bool
    log: list[EpochRange]
    segments: list[Segment]
    log_start: float | None
    high_watermark: float | None
    log_end: float | None
    # The first offset that it and the leader hold under different epochs.
    parts_at: int | None


class LogFigure(NamedTuple):
    """All replicas over `window`; `whole` is from the first log start to the last log end."""

    window: Range
    whole: Range
    # The leader's log (else the first one known) over `whole`.
    map: list[Segment]
    rows: list[LogRow]
    ticks: list[tuple[float, int]]
    # The partition's committed high watermark.
    committed: float | None
    lost: list[Segment]

    @property
    def is_whole(self) -> bool:
        return self.window == self.whole


def logs_of(view: View) -> dict[int, list[EpochRange]]:
    """Each replica's log by broker, as far as it is known. The leader's lineage is read oftener than the followers'."""
    logs: dict[int, list[EpochRange]] = {}
    leader: list[EpochRange] = []
    for replica in sorted(view.replicas, key=lambda replica: replica.broker != view.leader):
        if replica.broker == view.leader:
            leader = split_log_by_epoch(
                view.lineage, replica.log_start_offset, replica.log_end_offset, _complete(view)
            )
            logs[replica.broker] = leader = _with_own_tail(leader, view)
            continue
        log = split_log_by_epoch(replica.lineage, replica.log_start_offset, replica.log_end_offset)
        follows = (
            replica.error is None
            and replica.leader_epoch is not None
            and replica.leader_epoch == view.leader_epoch
        )
        logs[replica.broker] = infer_tail(log, leader) if follows else log
    return logs


def _complete(view: View) -> bool | None:
    if view.lineage_complete_from is None or not view.lineage:
        return None
    return view.lineage_complete_from == 0 or view.lineage_complete_from < view.lineage[0][0]


def _with_own_tail(log: list[EpochRange], view: View) -> list[EpochRange]:
    """What a leader wrote since its lineage was read, it wrote under its own epoch."""
    if (
        view.lineage is None
        or view.leader_epoch is None
        or not log
        or log[-1].epoch is not None
        or len(log) < 2
    ):
        return log
    return [*log[:-1], EpochRange(view.leader_epoch, log[-1].start, log[-1].end, inferred=True)]


def log_figure(
    view: View, lost: Sequence[tuple[int, int]] = (), window: Range | None = None
) -> LogFigure | None:
    """The logs over `window`, or over what matters of them. None when no log end is known."""
    whole = whole_of(view, lost)
    if whole is None:
        return None
    chosen = window or close_window(view, lost, whole) or whole
    logs = logs_of(view)
    leader = logs.get(view.leader, []) if view.leader is not None else []
    rows = []
    for replica in sorted(
        view.replicas, key=lambda replica: (replica.broker != view.leader, replica.broker)
    ):
        log = logs[replica.broker]
        rows.append(
            LogRow(
                replica=replica,
                leads=replica.broker == view.leader,
                log=log,
                segments=_segments(log, chosen),
                log_start=_mark(replica.log_start_offset, chosen),
                high_watermark=_mark(replica.high_watermark, chosen),
                log_end=_mark(replica.log_end_offset, chosen),
                parts_at=None
                if replica.broker == view.leader
                else first_divergent_offset(leader, log),
            )
        )
    gone = _segments([EpochRange(None, start, end) for start, end in lost], chosen)
    return LogFigure(
        chosen,
        whole,
        _segments(rows[0].log, whole),
        rows,
        offset_ticks(chosen),
        _mark(view.high_watermark, chosen),
        gone,
    )


def whole_of(view: View, lost: Sequence[tuple[int, int]]) -> Range | None:
    """From the first log start known (else the lowest offset known) to the last offset of any log or lost range."""
    ends = [
        replica.log_end_offset for replica in view.replicas if replica.log_end_offset is not None
    ]
    if not ends:
        return None
    starts = [
        replica.log_start_offset
        for replica in view.replicas
        if replica.log_start_offset is not None
    ]
    marks = [mark for replica in view.replicas if (mark := replica.high_watermark) is not None]
    if view.high_watermark is not None:
        marks.append(view.high_watermark)
    first = min([*starts, *marks, *ends])
    last = max([*ends, *marks, *(end for _, end in lost)])
    return Range(first, max(last, first + MIN_WINDOW))


def close_window(view: View, lost: Sequence[tuple[int, int]], whole: Range) -> Range | None:
    """Around the offsets that differ between the replicas; None where the whole shows them well enough."""
    points = [
        p for r in view.replicas for p in (r.log_end_offset, r.high_watermark) if p is not None
    ]
    points += [bound for pair in lost for bound in pair]
    logs = logs_of(view)
    leader = logs.get(view.leader, []) if view.leader is not None else []
    points += [
        at
        for log in logs.values()
        if log is not leader and (at := first_divergent_offset(leader, log)) is not None
    ]
    low, high = min(points, default=0), max(points, default=0)
    spread = high - low
    if spread == 0 or spread >= CLOSE * (whole.end - whole.start):
        return None
    margin = max(spread, MIN_WINDOW)
    return Range(
        max(whole.start, low - margin), max(min(whole.end, high + margin // 4), low + MIN_WINDOW)
    )


def _segments(log: Iterable[EpochRange], window: Range) -> list[Segment]:
    found = []
    for stretch in log:
        start, end = max(stretch.start, window.start), min(stretch.end, window.end)
        if start < end:
            x = window.place(start)
            found.append(Segment(x, round(window.place(end) - x, 4), stretch))
    return found


def _mark(offset: int | None, window: Range) -> float | None:
    return window.place(offset) if offset is not None and window.holds(offset) else None


def offset_ticks(window: Range) -> list[tuple[float, int]]:
    """(place, offset) at round offsets, about five of them."""
    rough = (window.end - window.start) / TICKS
    step = 1
    while step < rough:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    first = -(-int(window.start) // step) * step
    return [(window.place(offset), offset) for offset in range(first, int(window.end) + 1, step)]


class MemberRow(NamedTuple):
    """When a broker was in sync: (place, width, in sync) in per cent of the time drawn."""

    broker: int
    spans: list[tuple[float, float, bool]]


class IsrFigure(NamedTuple):
    """In-sync sets over time; each change as (time, members, left, joined), oldest first."""

    window: Range
    rows: list[MemberRow]
    changes: list[tuple[float, list[int], list[int], list[int]]]


def isr_figure(view: View) -> IsrFigure | None:
    """None where no in-sync set was ever told."""
    history = [(at, members) for at, members in view.isr_history if at <= view.at]
    if not history:
        return None
    window = Range(history[0][0], max(view.at, history[0][0] + 1.0))
    brokers = sorted({*view.assigned, *(broker for _, members in history for broker in members)})
    rows = []
    for broker in brokers:
        # What did not change goes on.
        joints = [(at, broker in members) for at, members in history]
        joints = [
            joint
            for before, joint in pairwise([None, *joints])
            if joint is not None and (before is None or before[1] != joint[1])
        ]
        places = [*(window.place(at) for at, _ in joints), window.place(window.end)]
        rows.append(
            MemberRow(
                broker,
                [
                    (x, round(end - x, 4), member)
                    for (x, end), (_, member) in zip(pairwise(places), joints, strict=True)
                ],
            )
        )
    before: list[int] = history[0][1]
    changes = []
    for at, members in history:
        changes.append(
            (
                at,
                members,
                [b for b in before if b not in members],
                [b for b in members if b not in before],
            )
        )
        before = members
    return IsrFigure(window, rows, changes)

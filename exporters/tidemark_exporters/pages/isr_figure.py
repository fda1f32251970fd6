"""The drawing of a partition's in-sync replicas over time: geometry only, in per cent."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import NamedTuple

from tidemark.core.records import View
from tidemark_exporters.pages.axis import Axis

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

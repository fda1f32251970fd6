"""The steps of an incident, in few words, as the table that `tidemark model show` prints. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from textwrap import wrap
from typing import Final, NamedTuple

from tidemark.assess.incident.changes import age, brokers
from tidemark.assess.incident.step import KnownReplica, Step, brief_happenings, weights
from tidemark.core.step_table import EPOCHS, fit, legend
from tidemark.core.text import counted, utc

# What a narrow table omits, in this order. The last column has it in words.
OMITTED_FIRST: Final = ("cut", "HW seen", EPOCHS, "ISR")
BROKER: Final = "1 LEO HW"
LEGEND: Final = (
    (BROKER, "broker 1's log end offset and high watermark as sampled last; * leads, - silent"),
    (
        "epochs",
        "the newest epochs of its log: 4@120 means that epoch 4 starts at offset 120; 4: unknown",
    ),
    ("HW seen", "the high watermark that a leader reported last under its epoch, and its age"),
    ("ISR", "the in-sync set; elr is the ELR"),
    ("cut", "1→9: the log of broker 1 became shorter and now ends at offset 9"),
)
NOT_SEEN: Final = "…"
MAX_EPOCHS: Final = 2
# The narrowest column of words, and the fewest steps of a table.
MIN_TEXT: Final = 36
MIN_STEPS: Final = 3
_TIME: Final = slice(11, 23)
_DAY_AND_TIME: Final = slice(5, 23)
_FRESH_SECONDS: Final = 2.0


def table_lines(
    steps: Sequence[Step], members: Sequence[int], width: int, height: int
) -> list[str]:
    """The table, its legend, and the columns that do not fit.

    It has at most `height` lines where MIN_STEPS fit them: the steps that matter most, of equal
    ones the newest. Each has the number that it has among all.
    """
    lightest = sorted(
        (weight if brief_happenings(step) else -1, number)
        for number, (step, weight) in enumerate(zip(steps, weights(steps), strict=True))
    )
    silent = sum(weight < 0 for weight, _ in lightest)
    left_out = {number for _, number in lightest[: max(silent, len(steps) - height)]}
    while True:
        lines = _lines(steps, members, width, left_out)
        if len(lines) <= height or len(steps) - len(left_out) <= MIN_STEPS:
            return lines
        left_out.add(lightest[len(left_out)][1])


def _lines(
    steps: Sequence[Step], members: Sequence[int], width: int, left_out: Collection[int]
) -> list[str]:
    """Where large offsets are too wide, the brokers' columns show how far they are above one
    that the legend names.
    """
    shown = {number: step for number, step in enumerate(steps) if number not in left_out}
    rows, omitted = fit(table_cells(shown, members), width, OMITTED_FIRST, MIN_TEXT)
    base = _base(shown.values()) if max(map(len, rows)) > width else 0
    if base:
        rows, omitted = fit(table_cells(shown, members, base), width, OMITTED_FIRST, MIN_TEXT)
    explained = [column for column in LEGEND if column[0] in rows[0] or column[0] == BROKER]
    notes = (
        f"LEO, HW and epochs of the brokers are above offset {base}." if base else "",
        f"A wider terminal also shows: {', '.join(omitted)}." if omitted else "",
        f"{counted(len(left_out), 'lesser step')} left out: --markdown shows all."
        if left_out
        else "",
    )
    return [
        *(*rows, "", *legend(explained, width)),
        *(line for note in notes for line in wrap(note, width)),
    ]


def table_cells(
    numbered: Mapping[int, Step], members: Sequence[int], base: int = 0
) -> list[tuple[str, ...]]:
    """The heading, then one row for each step. The last cell says what happened."""
    steps = numbered.values()
    columns = [_Column(broker, *_widths(steps, broker, base), base) for broker in members]
    heading = (
        *("step", "time (UTC)"),
        *(column.heading for column in columns),
        *("HW seen", "ISR", "cut", "what happens"),
    )
    day = len({utc(step.at)[:10] for step in steps}) > 1
    return [heading, *(_row(n, step, columns, day=day) for n, step in numbered.items())]


class _Column(NamedTuple):
    """A broker's column. Heading and cells have the same widths up to the epochs."""

    broker: int
    end_width: int
    watermark_width: int
    base: int

    @property
    def heading(self) -> str:
        return f"{self.broker} {'LEO':>{self.end_width}} {'HW':>{self.watermark_width}}{EPOCHS}"

    def cell(self, replica: KnownReplica | None, *, leads: bool) -> str:
        if replica is None:
            return ""
        mark = "-" if replica.error is not None else "*" if leads else " "
        end = _offset(replica.log_end_offset, self.base)
        watermark = _offset(replica.high_watermark, self.base)
        return (
            f"{mark:{len(str(self.broker))}} {end:>{self.end_width}} "
            f"{watermark:>{self.watermark_width}} {' '.join(_epochs(replica, self.base))}"
        ).rstrip()


def _widths(steps: Collection[Step], broker: int, base: int) -> tuple[int, int]:
    """Those of the largest log end offset and high watermark."""
    known = [replica for step in steps for replica in step.replicas if replica.broker == broker]
    ends = (len(_offset(each.log_end_offset, base)) for each in known)
    watermarks = (len(_offset(each.high_watermark, base)) for each in known)
    return max((len("LEO"), *ends)), max((len("HW"), *watermarks))


def _offset(offset: int | None, base: int) -> str:
    return "?" if offset is None else str(offset - base)


def _base(steps: Collection[Step]) -> int:
    """A round offset at or below every one that is shown."""
    offsets = [
        offset
        for step in steps
        for replica in step.replicas
        for offset in (replica.log_end_offset, replica.high_watermark)
        if offset is not None
    ]
    low, high = min(offsets, default=0), max(offsets, default=0)
    unit = 10 ** len(str(high - low))
    return int(low - low % unit)


def _row(number: int, step: Step, columns: Sequence[_Column], *, day: bool) -> tuple[str, ...]:
    known = {replica.broker: replica for replica in step.replicas}
    unseen = step.until is not None
    elr = step.eligible_leader_replicas
    in_sync = brokers(step.in_sync_replicas) + (f" elr {brokers(elr)}" if elr else "")
    return (
        NOT_SEEN if unseen else str(number),
        utc(step.at)[_DAY_AND_TIME if day else _TIME],
        *(
            ""
            if unseen
            else column.cell(known.get(column.broker), leads=column.broker == step.leader)
            for column in columns
        ),
        "" if unseen else _watermark(step),
        "" if unseen else in_sync,
        " ".join(f"{cut.broker}→{cut.after}" for cut in step.cuts),
        "; ".join(brief_happenings(step)),
    )


def _watermark(step: Step) -> str:
    known = step.high_watermark
    if known is None:
        return "?"
    seconds = step.at - known.at
    return str(known.offset) + (f" {age(seconds)} ago" if seconds > _FRESH_SECONDS else "")


def _epochs(replica: KnownReplica, base: int) -> Iterator[str]:
    """The starts of the newest epochs; a lineage has their ends, and not where the first begins."""
    entries = replica.lineage or []
    if len(entries) == 1:
        yield str(entries[0][0])
    for (_, end), (epoch, _end) in list(pairwise(entries))[-MAX_EPOCHS:]:
        yield f"{epoch}@{end - base}"

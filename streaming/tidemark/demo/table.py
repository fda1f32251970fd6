"""The table on the terminal: redrawn in place on a terminal, one line per alert elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from typing import Final, TextIO

from tidemark.demo.report import Row

_HEADINGS: Final = (
    "scene",
    "alert",
    "expected",
    "received",
    "s from fault",
    "s from detectable",
    "allowed",
)
_GREEN, _RED, _YELLOW, _PLAIN = "\033[32m", "\033[31m", "\033[33m", "\033[0m"


def cells(row: Row) -> tuple[str, ...]:
    """One row's texts; a dash where nothing is known."""
    received = "yes" if row.received else "no"
    if row.resolved:
        received += ", resolved"
    return (
        row.scene,
        row.alert,
        "yes" if row.expected else "no",
        received,
        _number(row.from_fault),
        _number(row.from_detectable) + (" LATE" if row.late else ""),
        "-" if row.allowed is None else f"{row.allowed:.0f}",
    )


def render(rows: Sequence[Row], colour: bool = False) -> list[str]:
    """The lines of the whole table."""
    texts = [_HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(text[column]) for text in texts) for column in range(len(_HEADINGS))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in texts
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    if colour:
        lines[2:] = [
            f"{_colour(row)}{line}{_PLAIN}" for row, line in zip(rows, lines[2:], strict=True)
        ]
    return lines


class LiveTable:
    """Says what happens, and keeps the table in view."""

    def __init__(self, output: TextIO = sys.stdout) -> None:
        self._output, self._terminal = output, output.isatty()
        self._drawn: list[str] = []
        self._told: set[tuple[str, str]] = set()
        self._status = ""
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """What is being done now."""
        self._status = f"[{time.monotonic() - self._began:5.1f} s] {text}"
        if not self._terminal or not self._drawn:
            self._output.write(self._status + "\n")
            self._output.flush()

    def show(self, rows: Sequence[Row]) -> None:
        """Draws the rows as they stand."""
        if self._terminal:
            self._redraw(rows)
            return
        for row in rows:
            if row.received and (row.scene, row.alert) not in self._told:
                self._told.add((row.scene, row.alert))
                wanted = "" if row.expected else "  NOT EXPECTED"
                passed = f"{_number(row.from_fault)} s from the fault, {_number(row.from_detectable)} s from detectable"
                self._output.write(f"          {row.scene}: {row.alert}  {passed}{wanted}\n")
                self._output.flush()

    def _redraw(self, rows: Sequence[Row]) -> None:
        columns, height = shutil.get_terminal_size((140, 40))
        lines = [*render(rows, colour=columns >= 100), self._status[: columns - 1]][-(height - 1) :]
        if lines == self._drawn:
            return
        back = f"\033[{len(self._drawn)}F" if self._drawn else ""
        self._output.write(back + "".join(f"\033[K{line}\n" for line in lines) + "\033[J")
        self._output.flush()
        self._drawn = lines

    def finish(self, rows: Sequence[Row]) -> None:
        """The whole table once more, to stay."""
        if self._terminal and self._drawn:
            self._output.write(f"\033[{len(self._drawn)}F\033[J")
        self._drawn = []
        self._output.write("\n".join(render(rows, colour=self._terminal)) + "\n")
        self._output.flush()


def _colour(row: Row) -> str:
    if row.expected == row.received:
        return _YELLOW if row.late else _GREEN if row.expected else _PLAIN
    return _RED if row.received else _PLAIN


def _number(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}"

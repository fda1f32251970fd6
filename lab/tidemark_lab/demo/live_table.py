"""The alerts of the scenes on the terminal: a live table, or one plain line an alert when piped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidemark_lab.demo.alert_result import AlertResult

_NUMBER_COLUMNS: Final = ("s from\nfault", "s from\ndetectable", "allowed\ns")
# Lines around the rows of the live table: headings, rules between scenes, status.
_FRAME_LINES: Final = 10


def make_table(results: Sequence[AlertResult]) -> Table:
    """Fits 80 columns: each scene has its name on a line of its own."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("alert", "expected", "received"):
        table.add_column(heading, no_wrap=True)
    for heading in _NUMBER_COLUMNS:
        table.add_column(heading, no_wrap=True, justify="right")
    scene = ""
    for result in results:
        if result.scene != scene:
            scene = result.scene
            table.add_row(Text(scene, style="bold"))
        colour = ("yellow" if result.is_late else "green") if result.expected else "red"
        table.add_row(*_cells(result), style=colour if result.received else "")
    return table


def _cells(result: AlertResult) -> tuple[str, ...]:
    """The texts of a row; a dash where nothing is known."""
    received = "yes, resolved" if result.resolved else "yes" if result.received else "no"
    return (
        f"  {result.alert}",
        "yes" if result.expected else "no",
        received,
        _seconds(result.seconds_from_fault),
        ("LATE " if result.is_late else "") + _seconds(result.seconds_from_detectable),
        "-" if result.allowed_seconds is None else f"{result.allowed_seconds:.0f}",
    )


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}"


class LiveTable:
    """Shows status and results. `rich` honours the terminal's colours and NO_COLOR."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(markup=False, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._printed: set[tuple[str, str]] = set()
        self._status = ""
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Sets the status: a line of its own, or the one below the live table."""
        self._status = f"[{time.monotonic() - self._began:5.1f} s] {text}"
        if not self._live.is_started:
            self.print(self._status)

    def print(self, text: str) -> None:
        """Wraps between words on a terminal; a file or a pipe gets one line."""
        self._console.print(text, soft_wrap=not self._console.is_terminal)

    def show(self, results: Sequence[AlertResult]) -> None:
        """Redraws the table; without a terminal prints each new alert once."""
        if self._console.is_interactive:
            self._redraw(results)
            return
        for result in results:
            if result.received and (result.scene, result.alert) not in self._printed:
                self._printed.add((result.scene, result.alert))
                self.print(
                    f"          {result.scene}: {result.alert}  "
                    f"{_seconds(result.seconds_from_fault)} s from the fault, "
                    f"{_seconds(result.seconds_from_detectable)} s from detectable"
                    + ("" if result.expected else "  NOT EXPECTED")
                )

    def _redraw(self, results: Sequence[AlertResult]) -> None:
        """As many rows as fit, around the newest one."""
        height = max(1, self._console.height - _FRAME_LINES)
        known = (n for n, result in enumerate(results) if result.fault_at or result.received)
        start = max(0, min(max(known, default=0) - height // 2, len(results) - height))
        status = Text(self._status, no_wrap=True, overflow="ellipsis")
        view = Group(make_table(results[start : start + height]), status)
        self._live.start()
        self._live.update(view, refresh=True)

    def finish(self, results: Sequence[AlertResult]) -> None:
        """Removes the live table and prints the whole table."""
        self.stop()
        self._console.print(make_table(results))

    def stop(self) -> None:
        """Removes the live table and returns the cursor; may be called again."""
        self._live.stop()

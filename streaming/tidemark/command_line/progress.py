"""Progress of long work: a bar on a terminal, else a line every 10 s; both on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from tidemark.command_line.output import echo

LINE_SECONDS: Final = 10.0


@contextmanager
def progress_bar(verb: str) -> Iterator[Callable[[float, str], None]]:
    """Yields a function of the share that is done, 0 to 1, and of what is being done."""
    if sys.stderr.isatty():
        bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        with bar:
            task = bar.add_task(verb, total=1.0)
            yield lambda done, name: bar.update(task, completed=done, description=name)
        return
    last = time.monotonic()

    def line(done: float, name: str) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            echo(f"{verb}: {done:.0%}, {name}", err=True)

    yield line

"""`--from` and `--recording`: in place of a live cluster, a recorded one after any pass."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from tidemark.command_line.output import echo
from tidemark.core.records import Alert, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.recorded_lines import STDIN, check_sources, choose_recorded, read_lines
from tidemark.reduce.rows import Row
from tidemark.verbs.top.reducer import TopReducer
from tidemark.verbs.top.snapshot import Snapshot

# Of each alert the first time it fired, while there are fewer.
MAX_MOMENTS: Final = 12
# Recordings of real brokers that come with the program, by name.
SHIPPED: Final = {
    path.name.partition(".")[0]: path
    for path in sorted((Path(__file__).parent / "recordings").glob("*.jsonl.gz"))
}


class Moment(NamedTuple):
    """When an alert of this name first fired: the number of the pass, and Unix seconds."""

    number: int
    at: float
    severity: str
    alert: str


class Follower(Protocol):
    """Shows what the recording led to, beside the terminal."""

    note: str

    def begin_again(self) -> None: ...

    def apply(self, rows: Iterable[Row]) -> None: ...


class RecordedCluster:
    """A cluster after one of its recorded passes: `number`, counted from 1 to `len(ended)`.

    A step back reads the file again, so that memory does not grow with it. Of a pipe, which cannot
    be read again, only the end is known.
    """

    is_running: Final = True
    # It has a pass from the start.
    waiting: Final = ""

    def __init__(
        self, source: str, detection: Detection, cluster: str | None, pages: str = ""
    ) -> None:
        """Raises ConfigError for a file without a pass, or with several clusters and none chosen.

        Raises TidemarkError where no line can be read.
        """
        self.source, self._detection, self._pages = source, detection, pages
        self.site: Follower | None = None
        self.lock = threading.RLock()
        # How far the file is read, in lines; of each pass where it ends, and when (Unix seconds).
        self._read = 0
        self._ends: list[int] = []
        self.ended: list[float] = []
        self.moments: list[Moment] = []
        self.number = 0
        self.snapshot: Snapshot
        self.cluster = self._survey(cluster)
        self._show(len(self.ended))

    def _survey(self, wanted: str | None) -> str:
        """Reads all of it. Returns the name of the cluster."""
        passes: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        alerts: defaultdict[str, dict[str, Moment]] = defaultdict(dict)
        self._begin(lambda text: echo(f"top: {text}", err=True))
        for rows in self._rows():
            for name in self._reducer.clusters:
                at = self._reducer.ended_at(name)
                if not passes[name] or passes[name][-1][1] != at:
                    passes[name].append((self._read, at))
                    self._reducer.note_elections(name)
            for alert in _fired(rows):
                name = alert.labels["kafka_cluster"]
                severity, what = alert.labels["severity"], alert.labels["alertname"]
                # An event fires before the record of the pass in which it was seen.
                has_ended = bool(passes[name]) and passes[name][-1][0] == self._read
                number = len(passes[name]) + (not has_ended)
                moment = Moment(number, alert.at, severity, what)
                if severity != "info" and len(alerts[name]) < MAX_MOMENTS:
                    alerts[name].setdefault(what, moment)
        if not passes:
            self._reducer.lines.check_readable([self.source])
        cluster = choose_recorded(self._reducer.clusters, wanted, self.source)
        # Lines after the last pass belong to its end, as they do in `tidemark replay`.
        found = [*passes[cluster][:-1], (self._read, passes[cluster][-1][1])]
        if self.source == STDIN or not Path(self.source).is_file():
            found = found[-1:]
        else:
            self.moments = list(alerts[cluster].values())
        self._ends, self.ended = [line for line, _ in found], [at for _, at in found]
        return cluster

    def follow(self, site: Follower) -> None:
        """Has the site show this recording too, from now on."""
        with self.lock:
            self.site = site
            self._begin()
            self.go_to(len(self.ended))

    def go_to(self, number: int) -> None:
        """Shows the cluster after a pass; before the first one is the first one."""
        number = min(max(1, number), len(self.ended))
        with self.lock:
            if self._read > self._ends[number - 1]:
                self._begin()
            self._read_to(self._ends[number - 1])
            self._show(number)

    def step(self, passes: int) -> None:
        self.go_to(self.number + passes)

    def _begin(self, report: Callable[[str], object] | None = None) -> None:
        """Before the first line. `report` gets the progress."""
        check_sources([self.source])
        self._reducer, self._read = TopReducer(self._detection, self._pages), 0
        self._lines = read_lines([self.source], report)
        if self.site is not None:
            self.site.begin_again()

    def _read_to(self, end: int) -> None:
        ends = frozenset(self._ends)
        # One after another: the file may have become shorter.
        for rows in islice(self._rows(), end - self._read):
            if self.site is not None:
                self.site.apply(rows)
            if self._read in ends:
                self._reducer.note_elections(self.cluster)

    def _rows(self) -> Iterator[list[Row]]:
        """What each further line leads to."""
        for line in self._lines:
            self._read += 1
            yield self._reducer.line(line)

    def _show(self, number: int) -> None:
        snapshot = self._reducer.snapshot(self.cluster)
        assert snapshot is not None, "a pass over it"
        notes = () if self.site is None else (self.site.note,)
        self.number = number
        self.snapshot = replace(snapshot, position=number, positions=len(self.ended), notes=notes)


def _fired(rows: list[Row]) -> Iterator[Alert]:
    for row in rows:
        if row.destination == "alerts" and row.value is not None:
            alert = decode_record(row.value)
            if isinstance(alert, Alert) and alert.state == "firing":
                yield alert

"""What every kind of receiver's worker is to the delivery: it takes alerts, tells of itself, and has threads of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from tidemark.core.records import Alert
from tidemark_exporters.notify.positions import Position


class Report(NamedTuple):
    """What became of alerts since the last report, and what waits now; `receiver` is the label of its metrics."""

    receiver: str
    # Alerts by what became of them, and posts by how they ended: ok, again, rejected.
    outcomes: Counter[str]
    attempts: Counter[str]
    # Alerts that wait to be posted (None: it is told of by the report of each instance), and since when the oldest of
    # them does (Unix seconds).
    waiting: int | None
    oldest: float | None
    # Alerts that a maintenance window holds back; None in the report of an instance.
    muted: int | None
    # When the last post succeeded (Unix seconds).
    succeeded_at: float | None


class Worker(Protocol):
    """One receiver. `offer…`, `adopt`, `tick` and `reports` may be called while its threads run."""

    @property
    def name(self) -> str: ...

    def offer(self, records: Iterable[tuple[Alert, Position]]) -> None: ...

    def offer_own(self, alerts: Iterable[Alert]) -> None: ...

    def adopt(self, alerts: Iterable[Alert], horizon: float) -> None: ...

    def tick(self, newest: dict[str, float], stale: dict[str, float]) -> None: ...

    def reports(self) -> list[Report]: ...

    def runs(self) -> list[Callable[[], None]]: ...

    def stop(self) -> None: ...

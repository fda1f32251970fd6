"""Faults of Tidemark itself: the cluster does not notice them."""

from __future__ import annotations

from tidemark_lab.drills.pipeline import Pipeline
from tidemark_lab.faults.fault import Fault


class CollectorKilled(Fault):
    """The collector ends, and another process starts in its place later."""

    name = "collector killed"

    def __init__(self, pipeline: Pipeline, collector: str, hold_seconds: float = 0.0) -> None:
        self._pipeline, self._collector = pipeline, collector
        self.hold_seconds = hold_seconds

    @property
    def detail(self) -> str:
        return f"collector {self._collector}{super().detail}"

    def inject(self) -> None:
        self._pipeline.stop_collector(self._collector)

    def heal(self) -> None:
        self._pipeline.start_collector(self._collector)


class ClockStep(CollectorKilled):
    """The clock of the collector's host steps, and the collector restarts under it.

    A running collector reads the wall clock once, at its start: a step in between does nothing.
    """

    name = "collector's clock steps"

    def __init__(self, pipeline: Pipeline, collector: str, offset_seconds: float) -> None:
        super().__init__(pipeline, collector)
        self._offset_seconds = offset_seconds

    @property
    def detail(self) -> str:
        return f"collector {self._collector}, {self._offset_seconds:+.0f} s"

    def inject(self) -> None:
        self._pipeline.stop_collector(self._collector)
        self._pipeline.start_collector(self._collector, self._offset_seconds)

    def heal(self) -> None:
        """The clock remains as it is."""


class SecondCollector(CollectorKilled):
    """Another collector watches the same partitions."""

    name = "two collectors"

    def inject(self) -> None:
        self._pipeline.start_collector(self._collector)

    def heal(self) -> None:
        self._pipeline.stop_collector(self._collector)

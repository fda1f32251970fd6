"""One broker: its process and its image of the metadata, with the replicas on it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.histories.controller import Controller
from tests.histories.modes import Mode
from tests.histories.replica import Replica


class Broker:
    """`up`: the process runs. `paused`: it runs and does nothing. `cut_off`: from the controller.

    `unheard`: the collector gets no answer. `stuck`: its fetcher does nothing. `frozen`: its image
    does not move. `refused`: the in-sync sets that it asks for as leader are refused. `replicas`
    are of all partitions, by their index.
    """

    def __init__(self, number: int, mode: Mode, controller: Controller) -> None:
        self.number, self.mode, self.controller = number, mode, controller
        self.up = True
        # The last shutdown was a controlled one.
        self.clean = False
        self.paused = self.cut_off = self.unheard = self.stuck = self.frozen = False
        self.refused = False
        self.contact_at = self.image_at = 0.0
        # How much of the metadata log it has, and how often its process started.
        self.image = -1
        self.starts = 0
        # When a request failed or was late by itself.
        self.failed_at: float | None = None
        # Decides which answer has an error for a single partition; null: none has.
        self.odd_errors: Random | None = None
        self.replicas: list[Replica] = []

    @property
    def runs(self) -> bool:
        return self.up and not self.paused

    @property
    def is_current(self) -> bool:
        return self.image == self.controller.newest

    @property
    def is_silent(self) -> bool:
        """It gives the collector no answer."""
        return self.unheard or not self.runs

    def read_image(self, index: int) -> None:
        """Applies the log up to `index`: of each partition its newest record, as in one delta."""
        newest = dict(self.controller.log[self.image + 1 : index + 1])
        self.image = index
        for partition, record in newest.items():
            self.replicas[partition].apply(record)

    def crash(self, keep: Callable[[Replica], int | None] = lambda _: None) -> None:
        """Kills the process. `keep`: as in `Replica.crash`."""
        self.up, self.paused = False, False
        for replica in self.replicas:
            replica.crash(keep(replica))

    def start(self, now: float) -> None:
        """The process starts and reads the metadata before it serves."""
        self.up, self.clean, self.starts = True, False, self.starts + 1
        self.contact_at = self.image_at = now
        self.cut_off = self.frozen = self.stuck = False
        self.image = -1
        self.read_image(self.controller.newest)

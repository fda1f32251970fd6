"""Which offsets of which partition are looked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidemark.assess.losses import Loss
from tidemark.record_log.segments import Place


class LostRange(NamedTuple):
    """Offsets [start, end) of a partition.

    `max_epoch`: the newest leader epoch of the lost records; batches of later epochs are the new
    leader's. None where no epoch is known: then a saved log is taken as it is.
    """

    place: Place
    start: int
    end: int
    max_epoch: int | None = None

    @property
    def name(self) -> str:
        return f"{self.place[0]}-{self.place[1]}"

    def __str__(self) -> str:
        epochs = "" if self.max_epoch is None else f" of epochs up to {self.max_epoch}"
        return f"[{self.start}, {self.end}){epochs}"

    def may_hold(self, leader_epoch: int | None) -> bool:
        """Whether a batch of this epoch may hold lost records. Magic 0 and 1 have no epoch."""
        return self.max_epoch is None or leader_epoch is None or leader_epoch <= self.max_epoch


def ranges_of(losses: Iterable[Loss], *, exposed: bool) -> list[LostRange]:
    """The proven range of each loss; with `exposed` also the one above it."""
    found = []
    for loss in losses:
        end = loss.exposed_to if exposed and loss.exposed_to is not None else loss.end
        found.append(
            LostRange((loss.topic, loss.partition), loss.start, end, loss.leader_epoch_before)
        )
    return sorted(set(found))

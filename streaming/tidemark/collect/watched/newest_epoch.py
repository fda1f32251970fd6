"""What is known of the newest epoch in a leader's log before it is read (`leader_epoch_walk`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# A log without any epoch in this distance from the newest known one counts as one without epochs:
# its records have the message format of Kafka 0.10.
MAX_SEARCHES: Final = 1_024
MAX_EPOCH: Final = 2**31 - 1


@dataclass(slots=True)
class NewestEpoch:
    """The newest epoch of a leader's log, as earlier passes found it.

    `searches`: epochs that were asked for in vain, nearest to `epoch` first.
    """

    epoch: int = 0
    is_found: bool = False
    searches: int = 0
    # The leader's offsets when the epoch was last read: it is read again once they differ.
    read_at: object = None

    def restart(self) -> None:
        """Another leader: its log may end in another epoch."""
        self.is_found, self.searches, self.read_at = False, 0, None

    def found(self, epoch: int) -> None:
        self.epoch, self.is_found, self.searches = epoch, True, 0

    @property
    def candidate(self) -> int | None:
        """The next epoch to ask for; null when the log seems to have none."""
        while self.searches < MAX_SEARCHES:
            distance, is_below = divmod(self.searches + 1, 2)
            found = self.epoch - distance if is_below else self.epoch + distance
            if 0 <= found <= MAX_EPOCH:
                return found
            self.searches += 1
        return None

"""How a broker answers the collectors, and its absences, as the state of a cluster keeps them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tidemark.core.events import OK

MAX_DEPARTURES: Final = 32
MAX_PAUSES: Final = 16
# Pauses of a broker within this time belong together.
PAUSES_SECONDS: Final = 60.0
# An observation and the pass record that ends its pass are less than this apart.
SAME_PASS_SECONDS: Final = 5.0


class Departure(Struct, array_like=True):
    """A broker left the in-sync sets of `partitions`, within seconds."""

    began: float
    ended: float
    partitions: int
    # In how many sets it is again.
    returned: int = 0
    # Part of a controlled shutdown.
    orderly: bool = False
    # Some of the partitions, as the newest pass of the departure lists them.
    names: list[str] = []
    # The broker that made it late or gave no answer; None: not known.
    suspected: int | None = None

    @property
    def at(self) -> float:
        """When it ended."""
        return self.ended

    @property
    def is_broker_wide(self) -> bool:
        """Whether several partitions share it: its cause is the broker."""
        return self.partitions > 1

    @property
    def has_returned(self) -> bool:
        """Whether the broker is in half of the sets again."""
        return 2 * self.returned >= self.partitions


class Pause(Struct, array_like=True):
    """Requests to a broker timed out, others answered: the first and the last such pass.

    It lasted longer than from one to the other.
    """

    began: float
    ended: float


class BrokerSeen(Struct, array_like=True):
    """How a broker answers."""

    outcome: str
    since: float
    passes: int = 1
    # Restart grace: until then an orderly restart explains its absence.
    grace_until: float = 0.0
    # The newest pass in which it answered, and the first one of its newest absence. 0: not seen.
    answered_at: float = 0.0
    absent_since: float = 0.0
    # When it returned from that absence.
    returned_at: float = 0.0
    # Whether its newest absence began with a controlled shutdown, and whether its port was closed:
    # its process had ended.
    in_order: bool = False
    port_closed: bool = False
    # The newest pass in which others answered, it did not, and restart grace did not explain it.
    failed_at: float = 0.0
    # Until then it has only just returned from such an absence.
    returning_until: float = 0.0
    # Since when it serves no partition (`ClusterState.serving_of`); None: it does.
    idle_since: float | None = None
    # In how many in-sync sets it was when it answered last; None: not counted.
    in_sync: int | None = None
    # Oldest first, at most MAX_DEPARTURES.
    departures: list[Departure] = []
    # By the metadata; None: it has none.
    rack: str | None = None
    # The first of the passes in a row up to `failed_at`.
    failing_since: float = 0.0
    # Those that ended within PAUSES_SECONDS before its newest return, oldest first, at most
    # MAX_PAUSES.
    pauses: list[Pause] = []
    # Whether it answered a part of the newest pass before a request failed.
    answered_part: bool = False

    @property
    def answers(self) -> bool:
        """Whether it answered the newest pass."""
        return self.outcome == OK

    def pauses_before(self, at: float) -> list[Pause]:
        """The pauses that ended within PAUSES_SECONDS before `at`."""
        return [pause for pause in self.pauses if 0.0 <= at - pause.ended <= PAUSES_SECONDS]

    def departure_at(self, at: float) -> Departure | None:
        """The departure that a shrink at `at` is part of."""
        for departure in reversed(self.departures):
            began, ended = departure.began - SAME_PASS_SECONDS, departure.ended + SAME_PASS_SECONDS
            if began <= at <= ended:
                return departure
        return None


# Of a broker that no pass has asked.
UNSEEN: Final = BrokerSeen("", 0.0)

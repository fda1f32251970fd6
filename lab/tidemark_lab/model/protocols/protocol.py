"""A protocol: a truncation rule, and the actions of its replicas and its controller."""

from __future__ import annotations

from typing import NamedTuple

from tidemark_lab.model.action import Action
from tidemark_lab.model.actions import Truncation


class Protocol(NamedTuple):
    """A version of Kafka's replication. `actions` is the disjunction Next of the specification."""

    name: str
    # The releases that use it. None: it was never released.
    kafka: str | None
    truncation: Truncation
    actions: tuple[Action, ...]
    # Whether logs have leader epochs, and a new follower asks its leader where to truncate.
    leader_epochs: bool = True
    # Whether a leader's answer where an epoch ends names that epoch, so that a follower asks again.
    answers_epoch: bool = True
    # Whether a new leader notes its epoch before a record of it (KAFKA-7415): else with the first.
    notes_epoch_at_election: bool = True
    # Whether fetches, answers and ISR changes of another leader epoch are rejected.
    fenced: bool = True
    # Whether a fetch truncates, the controller decides the ISR, and ELR and strict min ISR apply.
    kraft: bool = False
    # Whether a fetch carries the epoch of the follower's last record, and so finds a divergence.
    truncates_in_fetch: bool = False

    @property
    def releases(self) -> str:
        """The releases as output shows them."""
        return f"Kafka {self.kafka}" if self.kafka else "never released"

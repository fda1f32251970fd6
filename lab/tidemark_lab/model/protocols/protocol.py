"""A protocol: a truncation rule, and the actions of its replicas and its controller."""

from __future__ import annotations

from typing import NamedTuple

from tidemark_lab.model.action import Action
from tidemark_lab.model.truncation import NEWEST, Truncation


class Protocol(NamedTuple):
    """A version of Kafka's replication. `actions` is the disjunction Next of the specification."""

    name: str
    # What a follower does with its log when it learns of a leader, and what is new, in a sentence
    # for readers.
    rule: str
    # The releases that use it. None: it was never released.
    kafka: str | None
    actions: tuple[Action, ...]
    truncation: Truncation = NEWEST
    # Whether fetches, answers and ISR changes of another leader epoch are rejected.
    fenced: bool = True
    # Whether a fetch truncates, the controller decides the ISR, and ELR and strict min ISR apply.
    kraft: bool = False
    # Whether a fetch carries the epoch of the follower's last record, and so finds a divergence.
    truncates_in_fetch: bool = False

    @property
    def leader_epochs(self) -> bool:
        return self.truncation.leader_epochs

    @property
    def releases(self) -> str:
        """The releases as output shows them."""
        return f"Kafka {self.kafka}" if self.kafka else "never released"

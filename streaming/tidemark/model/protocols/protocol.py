"""What a protocol is: a truncation rule, and the actions that its replicas and its controller can take."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.model.action import Action
from tidemark.model.actions import Truncation


class Protocol(NamedTuple):
    """One way in which Kafka has replicated. `actions` is the disjunction Next of the specification."""

    name: str
    # The releases that replicate so.
    kafka: str
    truncation: Truncation
    actions: tuple[Action, ...]
    # Whether logs know leader epochs, and a new follower asks its leader where to cut.
    leader_epochs: bool = True
    # Whether fetches, answers and in-sync changes of another leader epoch are refused.
    fenced: bool = True
    # Whether a fetch truncates, the controller decides the in-sync set, and ELR and strict min ISR are there.
    kraft: bool = False

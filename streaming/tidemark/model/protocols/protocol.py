"""What a protocol is: a truncation rule, and the actions that its replicas and its controller can take."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.model.action import Action
from tidemark.model.actions import Truncation


class Protocol(NamedTuple):
    """One way in which Kafka has replicated. `actions` is the disjunction Next of the specification."""

    name: str
    kafka: str
    truncation: Truncation
    actions: tuple[Action, ...]

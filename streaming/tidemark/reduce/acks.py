"""An operator closes an event alert."""

from __future__ import annotations

from tidemark.core.events import Ack
from tidemark.core.identity import fingerprint
from tidemark.core.partition import Life
from tidemark.core.records import Alert
from tidemark.reduce.life_cycle import Rules, Scope, close, labels_of


def acknowledge(
    lives: list[Life], event: Ack, scope: Scope, rules: Rules
) -> tuple[list[Life], list[Alert]]:
    """Ends the event with the acknowledged fingerprint. States end by themselves and cannot be acknowledged."""
    chosen = [
        life
        for life in lives
        if life.incident is not None and fingerprint(labels_of(life, scope)) == event.fingerprint
    ]
    return close(lives, chosen, "acked", scope, rules, event.observed_at)

"""The worst state of a partition, by its view: the names are those of the status page and its API.

A partition that the last passes did not observe is `blind`: its old view says nothing about now.
Its open alerts still count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from tidemark.core.records import OpenAlert, View

Level = Literal["critical", "warning", "unknown", "info", "ok"]


class State(NamedTuple):
    """`name` is the value in the status page's API; `label` is for people."""

    name: str
    level: Level
    label: str


# Worst first.
STATES: Final = (
    State("offline", "critical", "offline"),
    State("lost", "critical", "records lost"),
    State("under_min_isr", "critical", "under min ISR"),
    State("critical", "critical", "critical alert"),
    State("blind", "unknown", "not seen"),
    State("at_min_isr", "warning", "at min ISR"),
    State("under_replicated", "warning", "under-repl."),
    State("warning", "warning", "warning"),
    State("unknown", "unknown", "unknown"),
    State("info", "info", "info alert"),
    State("healthy", "ok", "healthy"),
)
RANK: Final = {state.name: rank for rank, state in enumerate(STATES)}
_STATE_OF_ALERT: Final = {
    "KafkaCommittedDataLoss": "lost",
    "KafkaOffline": "offline",
    "KafkaUnderMinIsr": "under_min_isr",
}


def worst_state(view: View) -> State:
    """The worst state of a partition; `healthy` where there is none."""
    names = [*map(_state_of_alert, view.alerts), *_states_now(view)]
    return STATES[min((RANK[name] for name in names), default=len(STATES) - 1)]


def is_under_replicated(view: View) -> bool:
    """Whether an assigned replica is not in sync; new ones of a reassignment do not count."""
    in_sync = view.in_sync_replicas
    if in_sync is None or in_sync == view.assigned:
        return False
    return not set(view.assigned) - set(view.adding) <= set(in_sync)


def _states_now(view: View) -> Iterator[str]:
    """The states by the last observation; a partition that was missed has none but `blind`."""
    in_sync, minimum = view.in_sync_replicas, view.effective_min_in_sync_replicas
    if view.missed_passes:
        yield "blind"
        return
    if view.leaderless:
        yield "offline"
    elif view.leader is None or in_sync is None:
        yield "unknown"
    if in_sync is not None and minimum is not None and len(in_sync) < minimum:
        yield "under_min_isr"
    if is_under_replicated(view):
        yield "at_min_isr" if len(in_sync or ()) == minimum else "under_replicated"


def _state_of_alert(alert: OpenAlert) -> str:
    severity = alert.labels["severity"]
    named = _STATE_OF_ALERT.get(alert.labels["alertname"])
    return named or (severity if severity in RANK else "info")

"""What a partition, a broker or a cluster is said to be, worst first: one table for the pages and the API.

A partition that was not seen is `blind`: what its old view would say of it is not said. An open alert stands either way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from tidemark.core.events import CONTROLLED_SHUTDOWN, OK
from tidemark.core.records import OpenAlert
from tidemark_exporters.export.partition_row import PartitionRow

Level = Literal["critical", "warning", "unknown", "info", "ok"]
LEVELS: Final[tuple[Level, ...]] = ("critical", "warning", "unknown", "info", "ok")
# Never colour alone: each level has its sign, each state its words.
SIGNS: Final[dict[Level, str]] = {
    "critical": "✕",
    "warning": "!",
    "unknown": "?",
    "info": "i",
    "ok": "✓",
}


class State(NamedTuple):
    """`name` is what the API and the filters call it."""

    name: str
    level: Level
    words: str
    meaning: str


# Worst first.
_STATES: Final = (
    State("offline", "critical", "Offline", "no leader serves it"),
    State("lost", "critical", "Records lost", "committed records are proven gone"),
    State(
        "under_min_isr",
        "critical",
        "Under min ISR",
        "fewer replicas are in sync than acks=all needs",
    ),
    State("critical", "critical", "Critical alert", "another critical alert is open"),
    State(
        "blind", "unknown", "Not seen", "the last passes did not see it: neither healthy nor lost"
    ),
    State("at_min_isr", "warning", "At min ISR", "under-replicated, with just the minimum in sync"),
    State(
        "under_replicated", "warning", "Under-replicated", "the in-sync set lacks assigned replicas"
    ),
    State("warning", "warning", "Warning", "another alert of severity warning is open"),
    State("unknown", "unknown", "Unknown", "no broker told its leader or its in-sync replicas"),
    State("info", "info", "Note", "an alert of severity info is open"),
    State("healthy", "ok", "Healthy", "all replicas are in sync and no alert is open"),
)
STATES: Final[dict[str, State]] = {state.name: state for state in _STATES}
RANK: Final[dict[str, int]] = {state.name: rank for rank, state in enumerate(_STATES)}
HEALTHY: Final = STATES["healthy"]
_ALL_WELL: Final = [HEALTHY]
STALE: Final = State(
    "stale", "unknown", "Stale", "no pass was judged for a while: everything shown of it is old"
)

# Alerts that are a state of their own.
_BY_ALERT: Final = {
    "KafkaCommittedDataLoss": "lost",
    "KafkaOffline": "offline",
    "KafkaUnderMinIsr": "under_min_isr",
}


def states_of(row: PartitionRow, alerts: Iterable[OpenAlert]) -> list[State]:
    """All that holds of a partition with its open alerts, worst first; `healthy` alone where nothing does."""
    status = row.status
    names = {_of_alert(alert) for alert in alerts}
    if status.blind:
        names.add("blind")
    else:
        flags = (
            ("offline", status.leaderless),
            ("under_min_isr", status.under_min),
            ("at_min_isr", status.at_min),
            ("under_replicated", status.under_replicated),
            # Not blind, and still nothing can be said of it.
            ("unknown", status.stop_unknown or (status.leader is None and not status.leaderless)),
        )
        names.update(name for name, holds in flags if holds)
    if not names:
        return _ALL_WELL
    return [STATES[name] for name in sorted(names, key=RANK.__getitem__)]


def _of_alert(alert: OpenAlert) -> str:
    name = _BY_ALERT.get(alert.labels.get("alertname", ""))
    if name is not None:
        return name
    severity = alert.labels.get("severity", "")
    return severity if severity in {"critical", "warning"} else "info"


def worst(states: Iterable[State]) -> State:
    """The worst of several; healthy where there is none."""
    return min(states, key=lambda state: RANK[state.name], default=HEALTHY)


def severity_level(severity: str) -> Level:
    return severity if severity in {"critical", "warning"} else "info"  # type: ignore[return-value]


def broker_state(
    outcome: str | None,
    alerts: Iterable[OpenAlert] = (),
    *,
    fenced: bool = False,
    in_grace: bool = False,
) -> State:
    """How a broker answered the last pass, in words. `in_grace`: its absence is put down to an orderly restart for now."""
    if outcome is None:
        return State("unknown", "unknown", "Unknown", "no pass told how it answers")
    words = outcome.replace("_", " ")
    if outcome == OK and fenced:
        return State(
            "fenced",
            "warning",
            "Fenced",
            "it answers, but the controller has fenced it: it may not lead",
        )
    if in_grace and outcome not in {OK, CONTROLLED_SHUTDOWN}:
        return State(
            "restarting",
            "warning",
            "Restarting",
            f"at the last pass: {words}; put down to an orderly restart for now",
        )
    if outcome == OK:
        levels = {severity_level(alert.labels.get("severity", "")) for alert in alerts}
        level: Level = next((level for level in LEVELS if level in levels), "ok")
        return State(outcome, level, "Answers", "it answered the last pass")
    return State(
        outcome,
        "warning" if outcome == CONTROLLED_SHUTDOWN else "critical",
        words.capitalize(),
        f"at the last pass: {words}",
    )


def cluster_states(
    alerts: Iterable[OpenAlert], partitions: Iterable[State], *, stale: bool, empty: bool
) -> list[State]:
    """What holds of a cluster: staleness first, for it is about all the rest.

    `alerts`: the open ones about the cluster and its brokers; `empty`: no partition of it is known, so that nothing is
    known to be well.
    """
    found = {
        *map(_of_alert, alerts),
        *(state.name for state in partitions if state is not HEALTHY),
        *(["unknown"] if empty else []),
    }
    states = [STATES[name] for name in sorted(found, key=RANK.__getitem__)]
    return ([STALE] if stale else []) + states or [HEALTHY]

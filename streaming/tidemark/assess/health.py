"""The health of partitions, brokers and clusters as named states, worst first.

A partition that the last passes did not observe is `blind`, and so is one of which no offset was
ever read: its old view says nothing about now. Its open alerts still count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from tidemark.core.events import CONTROLLED_SHUTDOWN, OK
from tidemark.core.records import Alert, OpenAlert, View

Level = Literal["critical", "warning", "unknown", "info", "ok"]
# Of alerts, worst first.
SEVERITIES: Final = ("critical", "warning", "info")
LEVELS: Final[tuple[Level, ...]] = ("critical", "warning", "unknown", "info", "ok")


class State(NamedTuple):
    """`name` is the value in the API and in filters."""

    name: str
    level: Level
    label: str
    meaning: str

    @property
    def text(self) -> str:
        """The label within a sentence."""
        return self.label[:1].lower() + self.label[1:]


# Worst first.
_ALL_STATES: Final = (
    State("offline", "critical", "Offline", "it has no leader"),
    State("lost", "critical", "Records lost", "committed records are proven lost"),
    State(
        "under_min_isr", "critical", "Under min ISR", "fewer in-sync replicas than acks=all needs"
    ),
    State("critical", "critical", "Critical alert", "a critical alert is open"),
    State(
        "blind",
        "unknown",
        "Not seen",
        "the last passes missed it, or none has read its offsets: neither healthy nor lost",
    ),
    State(
        "at_min_isr",
        "warning",
        "At min ISR",
        "under-replicated, with exactly the minimum in sync",
    ),
    State(
        "under_replicated", "warning", "Under-replicated", "some assigned replicas are not in sync"
    ),
    State("warning", "warning", "Warning", "an alert of severity warning is open"),
    State("unknown", "unknown", "Unknown", "no broker reports its leader or its in-sync replicas"),
    State("info", "info", "Info alert", "an alert of severity info is open"),
    State("healthy", "ok", "Healthy", "all replicas are in sync and no alert is open"),
)
STATES: Final[dict[str, State]] = {state.name: state for state in _ALL_STATES}
RANK: Final[dict[str, int]] = {name: rank for rank, name in enumerate(STATES)}
HEALTHY: Final = STATES["healthy"]
_ONLY_HEALTHY: Final = [HEALTHY]
STALE: Final = State("stale", "unknown", "Stale", "no recent pass was evaluated: its data is old")

# Alerts that are a state of their own.
_STATE_OF_ALERT: Final = {
    "KafkaCommittedDataLoss": "lost",
    "KafkaOffline": "offline",
    "KafkaUnderMinIsr": "under_min_isr",
}
_LEVEL_OF_SEVERITY: Final[dict[str, Level]] = {"critical": "critical", "warning": "warning"}


class Replication(NamedTuple):
    """How many of its replicas a partition has in sync; all false where that is not known."""

    under_replicated: bool = False
    under_min: bool = False
    # Under-replicated, with exactly the minimum.
    at_min: bool = False


def judge_replication(view: View) -> Replication:
    """The new replicas of a reassignment do not count as missing."""
    in_sync, minimum = view.in_sync_replicas, view.effective_min_in_sync_replicas
    if in_sync is None:
        return Replication()
    lacking = in_sync != view.assigned and not set(view.assigned) - set(view.adding) <= set(in_sync)
    if minimum is None:
        return Replication(lacking)
    # A member that is not assigned counts for nothing but Kafka's own check (KAFKA-9672).
    at_min = lacking and len(set(in_sync) & set(view.assigned)) == minimum
    return Replication(lacking, len(in_sync) < minimum, at_min)


def is_blind(view: View) -> bool:
    """Whether the last passes missed it, or no pass has read an offset of it while it is led."""
    if view.missed_passes or view.leader is None or view.in_sync_replicas is None:
        return view.missed_passes > 0
    known = (view.high_watermark, *(replica.log_end_offset for replica in view.replicas))
    return all(offset is None for offset in known)


def observed_states(view: View, replication: Replication) -> tuple[str, ...]:
    """The names of a partition's states without those of its alerts; of a healthy one none."""
    if view.missed_passes:
        return ("blind",)
    is_unknown = view.in_sync_replicas is None or (view.leader is None and not view.leaderless)
    flags = (
        ("offline", view.leaderless),
        ("under_min_isr", replication.under_min),
        ("blind", is_blind(view)),
        ("at_min_isr", replication.at_min),
        ("under_replicated", replication.under_replicated),
        ("unknown", is_unknown),
    )
    return tuple(name for name, is_set in flags if is_set)


def partition_states(observed: Sequence[str], alerts: Sequence[OpenAlert]) -> list[State]:
    """Every state of a partition with these open alerts, worst first; else `healthy` alone."""
    if not (observed or alerts):
        return _ONLY_HEALTHY
    return _ranked({*observed, *map(_state_of_alert, alerts)})


def states_of(view: View) -> list[State]:
    """The states of a partition by its view and the alerts in it, worst first."""
    return partition_states(observed_states(view, judge_replication(view)), view.alerts)


def worst_state(states: Iterable[State]) -> State:
    """The worst of several states; healthy where there is none."""
    return min(states, key=lambda state: RANK[state.name], default=HEALTHY)


def severity_level(severity: str | None) -> Level:
    """The level of an alert's severity; any severity that is not known is `info`."""
    return _LEVEL_OF_SEVERITY.get(severity or "", "info")


def alert_level(alert: Alert | OpenAlert) -> Level:
    return severity_level(alert.labels.get("severity"))


def severity_rank(alert: Alert | OpenAlert) -> int:
    """Sorts the worst first."""
    return LEVELS.index(alert_level(alert))


def broker_state(
    outcome: str | None,
    alerts: Iterable[OpenAlert] = (),
    *,
    fenced: bool = False,
    in_grace: bool = False,
) -> State:
    """How a broker answered the last pass. `in_grace`: its absence counts as an orderly restart."""
    if outcome is None:
        return State("unknown", "unknown", "Unknown", "no pass reports how it answers")
    if outcome == OK and fenced:
        meaning = "it answers, but the controller has fenced it: it cannot lead"
        return State("fenced", "warning", "Fenced", meaning)
    if outcome == OK:
        level: Level = min(map(alert_level, alerts), key=LEVELS.index, default="ok")
        return State(outcome, level, "Answers", "it answered the last pass")
    words = outcome.replace("_", " ")
    if outcome == CONTROLLED_SHUTDOWN:
        return State(outcome, "warning", words.capitalize(), f"in the last pass: {words}")
    if in_grace:
        meaning = f"in the last pass: {words}; treated as an orderly restart for now"
        return State("restarting", "warning", "Restarting", meaning)
    return State(outcome, "critical", words.capitalize(), f"in the last pass: {words}")


def cluster_states(
    alerts: Iterable[OpenAlert], partitions: Iterable[State], *, stale: bool, empty: bool
) -> list[State]:
    """Every state of a cluster: staleness first, because it qualifies all others.

    `alerts`: the open alerts about the cluster and its brokers. `empty`: no partition is known.
    """
    names = {
        *map(_state_of_alert, alerts),
        *(state.name for state in partitions if state is not HEALTHY),
        *(["unknown"] if empty else []),
    }
    return ([STALE] if stale else []) + _ranked(names) or [HEALTHY]


def _state_of_alert(alert: OpenAlert) -> str:
    return _STATE_OF_ALERT.get(alert.labels.get("alertname", "")) or alert_level(alert)


def _ranked(names: Iterable[str]) -> list[State]:
    return [STATES[name] for name in sorted(names, key=RANK.__getitem__)]

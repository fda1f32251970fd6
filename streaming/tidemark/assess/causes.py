"""Open alerts by cause: those that name one broker stand together, many of a kind as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from tidemark.assess.health import severity_rank
from tidemark.core.records import Alert, OpenAlert

A = TypeVar("A", Alert, OpenAlert)


class AlertGroup(NamedTuple, Generic[A]):
    """Alerts of one name, severity and suspected broker: one of them, and the others."""

    head: A
    others: tuple[A, ...] = ()


def by_cause(alerts: Iterable[A]) -> list[AlertGroup[A]]:
    """The cause of the first alert first, so give the worst first.

    In a cause, alerts about the broker come before those about its partitions. An alert that names
    no broker is a cause of its own.
    """
    causes: dict[tuple[str, str], dict[tuple[bool, int, str], list[A]]] = {}
    for alert in alerts:
        labels = alert.labels
        cause = labels["kafka_cluster"], labels.get("broker") or alert.fingerprint
        kind = "topic" in labels, severity_rank(alert), labels["alertname"]
        causes.setdefault(cause, {}).setdefault(kind, []).append(alert)
    return [
        AlertGroup(found[0], tuple(found[1:]))
        for kinds in causes.values()
        for _, found in sorted(kinds.items(), key=lambda item: item[0])
    ]

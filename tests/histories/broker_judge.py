"""Holds the alerts about brokers and the cluster against the brokers."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from tests.histories.findings import Findings
from tests.histories.history import History
from tidemark.core.records import Alert

# An alert fires at its third pass, and is updated while a broker settles.
RECENT_SECONDS: Final = 12.0
# DescribeQuorum is asked every 5 s, and a report of it counts until the next one.
REPORTED_SECONDS: Final = 30.0
# An image that is so old is behind: `stale_broker_ms` is 5 s or more.
STALE_SECONDS: Final = 3.0


class BrokerJudge:
    """Notes after each pass what is true, because an alert tells of the last seconds."""

    def __init__(self, history: History, findings: Findings) -> None:
        self._history, self._findings = history, findings
        self._silent_at: dict[int, float] = {}
        self._stale_at: dict[int, float] = {}
        self._blind_at = self._leaderless_at = -REPORTED_SECONDS

    def note(self) -> None:
        world = self._history.world
        brokers, now = world.brokers.values(), world.now
        self._silent_at |= {b.number: now for b in brokers if b.is_silent}
        self._stale_at |= {b.number: now for b in brokers if now - b.image_at >= STALE_SECONDS}
        if all(b.is_silent for b in brokers):
            self._blind_at = now
        if world.controller.held or any(b.cut_off for b in brokers):
            self._leaderless_at = now

    def judge(self, number: int, alert: Alert) -> None:
        name, text = alert.labels["alertname"], alert.annotations["description"]
        check = CHECKS.get(name)
        if check is None:
            self._findings.add(f"unknown alert: {name}", number, text)
        elif not all(check(self, broker) for broker in _subjects(alert)):
            self._findings.add(f"untrue: {name}", number, text)
        self._findings.counts[f"alerts of brokers: {name}"] += 1

    def was_silent(self, broker: int) -> bool:
        times = self._silent_at.get(broker), self._history.world.brokers[broker].failed_at
        return any(self._within(at, RECENT_SECONDS) for at in times)

    def was_stale(self, broker: int) -> bool:
        return self._within(self._stale_at.get(broker), REPORTED_SECONDS)

    def was_blind(self, _: int) -> bool:
        return self._within(self._blind_at, RECENT_SECONDS)

    def had_no_quorum(self, _: int) -> bool:
        return self._within(self._leaderless_at, REPORTED_SECONDS)

    def left_in_sync_sets(self, broker: int) -> bool:
        """Three times, of whatever partitions.

        Or an old image seems to undo and repeat a change, where no quorum tells which one is old.
        """
        if not self._history.plan.mode.quorum and self._stale_at:
            return True
        records = [p.controlled.records for p in self._history.world.partitions]
        left = sum(
            broker in before.in_sync and broker not in after.in_sync
            for one in records
            for before, after in pairwise(one)
        )
        return left >= 3

    def has_two_collectors(self, _: int) -> bool:
        return len(self._history.plan.collectors) > 1

    def _within(self, at: float | None, seconds: float) -> bool:
        return at is not None and self._history.world.now - at <= seconds


def _subjects(alert: Alert) -> list[int]:
    """The brokers of which an alert says something; the label may name a leader instead."""
    named = re.match(r"Brokers? (\d+(?: and \d+)*) (?:of|left)", alert.annotations["description"])
    return (
        [int(n) for n in named[1].split(" and ")]
        if named
        else [int(alert.labels.get("broker", -1))]
    )


# What each such alert says of a broker.
CHECKS: Final[dict[str, Callable[[BrokerJudge, int], bool]]] = {
    "KafkaBrokerDown": BrokerJudge.was_silent,
    "KafkaStaleBrokerView": BrokerJudge.was_stale,
    "KafkaCollectorGap": BrokerJudge.was_blind,
    "KafkaQuorumUnhealthy": BrokerJudge.had_no_quorum,
    "KafkaIsrChurn": BrokerJudge.left_in_sync_sets,
    "KafkaCollectorConflict": BrokerJudge.has_two_collectors,
}

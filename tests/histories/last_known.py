"""Elections of a last known leader that a collector could see, and what the alerts say of them."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.histories.case import Case
from tests.histories.findings import Findings
from tests.histories.partition import Partition
from tidemark.core.events import Observation

ALERTS: Final = frozenset({"KafkaUncleanElection", "KafkaElrElection"})
KIND: Final = "last known leader"
SEEN, TOLD = f"elections seen: {KIND}", f"elections seen and told: {KIND}"
AS_CLEAN: Final = f"{KIND} told as clean"
TOLD_SHARE: Final = 0.95
# What calls an election a clean one.
_CLEAN: Final = ("has every committed record", "Its log has everything that was seen")
# An alert about a leadership that was first seen so late may be missing.
_LATE_SECONDS: Final = 6.0
# (topic, leader epoch)
Leadership = tuple[int, int]


class LastKnownLeaders:
    """Of one partition."""

    def __init__(self, partition: Partition, findings: Findings) -> None:
        self._partition, self._findings = partition, findings
        self._leaderless: set[Leadership] = set()
        # When a leadership was observed first.
        self._led: dict[Leadership, float] = {}
        self._told: set[Leadership] = set()

    def note(self, topic: int, shown: Observation) -> None:
        if shown.leader_epoch is None:
            return
        key = (topic, shown.leader_epoch)
        if shown.leader is not None:
            self._led.setdefault(key, self._partition.truth.now)
        elif shown.leaderless:
            self._leaderless.add(key)

    def judge(self, number: int, case: Case) -> None:
        """An alert of pass `number`."""
        if case.name not in ALERTS:
            return
        text = case.alert.annotations["description"]
        for election in case.elections():
            if election.kind != KIND:
                continue
            if KIND in text or "unclean" in text.lower():
                self._told.add((election.topic, election.epoch))
            if any(phrase in text for phrase in _CLEAN):
                self._findings.add(AS_CLEAN, number, text)

    def count(self, counts: Counter[str]) -> None:
        """At the end."""
        for election in self._partition.truth.elections:
            key = (election.topic, election.epoch)
            was_leaderless = (election.topic, election.epoch - 1) in self._leaderless
            led_at = self._led.get(key)
            if election.kind != KIND or led_at is None or not was_leaderless:
                continue
            if self._partition.truth.now - led_at >= _LATE_SECONDS:
                counts.update([SEEN, TOLD] if key in self._told else [SEEN])

"""Plays a history into the reducer and holds every alert against the truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

from tests.histories.broker_judge import BrokerJudge
from tests.histories.bystanders import Bystanders
from tests.histories.collector import CLUSTER, Written
from tests.histories.findings import Finding, Findings
from tests.histories.history import History, Script
from tests.histories.partition import NUMBER, Partition
from tests.histories.partition_judge import PartitionJudge
from tests.histories.world import ORIGIN
from tidemark.core.codec import encode_batch
from tidemark.core.events import MetadataChange, Observation, PartitionDeleted
from tidemark.core.identity import partition_key
from tidemark.core.records import Alert, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import Fold, fold_group
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord, Row

DUPLICATES: Final = 0.2


class Result(NamedTuple):
    findings: list[Finding]
    counts: Counter[str]
    written: list[Written]


class Judge:
    """`alerts`: of each group, as its rows have them."""

    def __init__(self, plan: Script) -> None:
        self.history = History(plan)
        self.findings = Findings()
        self.written: list[Written] = []
        self.alerts: list[list[bytes]] = [[] for _ in range(plan.groups)]
        self._folds = folds(plan)
        # Topics with an open KafkaOffline.
        self._offline: set[str] = set()
        self._brokers = BrokerJudge(self.history, self.findings)
        ahead = plan.bystanders_ahead
        self._bystanders = None if ahead is None else Bystanders(self.history, ahead)
        self._partitions = {
            p.topic: PartitionJudge(self.history, p, self.findings)
            for p in self.history.world.partitions
        }

    def run(self) -> Result:
        plan = self.history.plan
        for number in range(1, plan.passes + 1):
            self._pass(number)
        for partition in self._partitions.values():
            partition.judge_unclaimed(plan.passes)
        if plan.undisturbed() != plan:
            self._compare(plan)
        self.findings.counts["passes"] += plan.passes
        self.findings.counts["partitions"] += len(self._partitions)
        return Result(self.findings.found, self.findings.counts, self.written)

    def _compare(self, plan: Script) -> None:
        """Other clocks add no critical alert. An audit may, by what it found.

        A metadata log that is late may not tell in time that a condition is over: then alerts are
        those without one.
        """
        extra = _criticals(self.alerts)
        for calm in (plan.undisturbed(), replace(plan.undisturbed(), metadata_log=False)):
            if extra:
                other = Judge(calm)
                other.run()
                extra -= _criticals(other.alerts)
        if self._bystanders is not None and self._bystanders.has_audited:
            extra = {each for each in extra if each[0] != "KafkaDivergence"}
        for name, topic in sorted(extra):
            self.findings.add(f"critical by another clock: {name}", plan.passes, topic)

    def _pass(self, number: int) -> None:
        written = self.history.step(number)
        if self._bystanders is not None:
            written += self._bystanders.written(number)
        if self.history.plan.duplicates:
            written = _twice(written, Random(number))
        self._brokers.note()
        for group, batch in written:
            self.written.append(Written(group, batch))
            for event in batch.events:
                if isinstance(event, Observation | PartitionDeleted | MetadataChange):
                    self._partitions[event.topic].note(batch, event)
            fold = self._folds[group]
            fold.batch(batch)
            rows, fold.rows = fold.rows, []
            for row in rows:
                self._judge_row(number, group, row)
        for p in self.history.world.partitions:
            state = self._folds[self.history.group_of(p)].partition(key_of(p))
            owner = None if state is None else state.collector
            self._partitions[p.topic].judge_owner(number, owner)
            is_open = p.topic in self._offline
            self._partitions[p.topic].judge_silence(
                number, is_seen=self._is_seen(number), is_open=is_open
            )

    def _is_seen(self, number: int) -> bool:
        """Whether a pass read the newest metadata, of two brokers at least."""
        plan, brokers = self.history.plan, self.history.world.brokers.values()
        runs = any(first <= number <= last for first, last, _ in plan.collectors)
        answering = sum(not broker.is_silent and broker.is_current for broker in brokers)
        return runs and number not in plan.missed and answering >= 2

    def _judge_row(self, number: int, group: int, row: Row) -> None:
        if row.destination == "dead_letters":
            self.findings.add("dead letter", number, repr(row.value))
        if row.destination != "alerts" or row.value is None:
            return
        self.alerts[group].append(row.value)
        alert = decode_record(row.value)
        assert isinstance(alert, Alert)
        if alert.labels["alertname"] == "KafkaOffline":
            change = set.discard if alert.state == "resolved" else set.add
            change(self._offline, alert.labels["topic"])
        if alert.state == "resolved":
            if alert.reason == "deleted" and "topic" in alert.labels:
                self._partitions[alert.labels["topic"]].judge_deleted(number, alert)
            return
        self.findings.counts[f"alerts: {alert.labels['severity']}"] += 1
        topic = alert.labels.get("topic")
        judge = self._brokers if topic is None else self._partitions[topic]
        judge.judge(number, alert)


def _twice(written: list[Written], rng: Random) -> list[Written]:
    """Some of the records again: at once, or after all others of the pass."""
    again = [record for record in written if rng.random() < DUPLICATES]
    found = [each for record in written for each in [record] * (1 + (record in again[::2]))]
    return [*found, *again[1::2]]


def _criticals(alerts: list[list[bytes]]) -> set[tuple[str, str]]:
    """(alert, topic) of each that fired."""
    found = set[tuple[str, str]]()
    for value in (value for of_group in alerts for value in of_group):
        alert = decode_record(value)
        assert isinstance(alert, Alert)
        if alert.state == "firing" and alert.labels["severity"] == "critical":
            found.add((alert.labels["alertname"], alert.labels.get("topic", "")))
    return found


def key_of(partition: Partition) -> str:
    return partition_key(CLUSTER, partition.topic, NUMBER)


def folds(plan: Script) -> list[Fold]:
    """Of each group. The cluster's home group judges the brokers too."""
    return [Fold(GroupState(), Detection(), group, plan.groups) for group in range(plan.groups)]


def judge(plan: Script) -> Result:
    return Judge(plan).run()


def replay_in_two(written: list[Written], groups: int) -> list[list[bytes]]:
    """The alerts of two calls of the reducer for each group, over encoded records."""
    found: list[list[bytes]] = []
    for group in range(groups):
        batches = [encode_batch(batch) for of, batch in written if of == group]
        records = [RawRecord(0, index, ORIGIN, value) for index, value in enumerate(batches)]
        half, alerts = len(records) // 2, []
        blob: bytes | None = None
        for part in (records[:half], records[half:]):
            blob, rows = fold_group(blob, part, Detection(), group, groups)
            alerts += [row.value for row in rows if row.destination == "alerts" and row.value]
            assert not any(row.destination == "dead_letters" for row in rows)
        found.append(alerts)
    return found

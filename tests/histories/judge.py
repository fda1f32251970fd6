"""Plays a history into the reducer and holds every alert against the truth."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from tests.histories import severities
from tests.histories.case import Case
from tests.histories.claims import ALERT as LOSS
from tests.histories.claims import is_misdated, judge_claim
from tests.histories.collector import ORIGIN, PARTITION, TOPIC
from tests.histories.history import CLUSTER, History, Script
from tests.histories.oracle import Oracle
from tests.histories.sentences import judge_sentences
from tidemark.core.codec import encode_batch
from tidemark.core.events import Batch, Observation, PartitionDeleted
from tidemark.core.identity import home_group, partition_key
from tidemark.core.records import Alert, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold, fold_group
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord, Row

# Passes after which the only collector must be heard.
ALONE = 45


class Finding(NamedTuple):
    """Something that the reducer said wrongly, or did not say. `number`: at which pass."""

    kind: str
    number: int
    text: str


class Result(NamedTuple):
    findings: list[Finding]
    counts: Counter[str]
    batches: list[Batch]


class Judge:
    def __init__(self, plan: Script) -> None:
        self.history = History(plan)
        self.world = self.history.world
        self.findings: list[Finding] = []
        self.counts = Counter[str]()
        self.batches: list[Batch] = []
        self.groups = groups_of(plan.seed)
        self._fold = Fold(GroupState(), Detection(), *self.groups)
        # By collector epoch: of two collectors, only the newer process is sure to be read.
        self._oracles: dict[int, Oracle] = {}
        self._claimed: set[int] = set()
        self._suspected_to = 0
        self._demanded: dict[int, str] = {}
        self._observed: list[float] = []
        self._topic = 0
        self._starts: dict[int, int] = {}
        self._seen: set[tuple[str, str]] = set()
        self.alerts: list[bytes] = []

    def run(self) -> Result:
        plan = self.history.plan
        for number in range(1, plan.passes + 1):
            self._pass(number)
        self._judge_unclaimed(plan.passes)
        truth = self.world.truth
        self.counts["passes"] += plan.passes
        self.counts["committed records"] += len(truth.committed_at)
        self.counts.update(f"elections: {e.kind}" for e in truth.elections[1:])
        return Result(self.findings, self.counts, self.batches)

    def _pass(self, number: int) -> None:
        for batch in self.history.step(number):
            self.batches.append(batch)
            self._note(batch)
            self._fold.batch(batch)
            rows, self._fold.rows = self._fold.rows, []
            for row in rows:
                self._judge_row(number, row)

        self._judge_owner(number)

    def _judge_owner(self, number: int) -> None:
        """A collector that is alone for long is heard, even when an earlier clock was ahead."""
        running = [i for i, c in enumerate(self.history.plan.collectors) if c[0] <= number <= c[1]]
        if len(running) != 1 or running == [0]:
            return
        since = self.history.plan.collectors[0][1]
        heard = [n for n in self._observed if n > since + ALONE]
        state = self._fold.partition(partition_key(CLUSTER, TOPIC, PARTITION))
        if heard and state is not None and state.collector != f"c{running[0] + 1}":
            self._find("collector refused", number, f"owner {state.collector}")

    def _note(self, batch: Batch) -> None:
        """What the samples show, for the oracle and for what a claim may know."""
        for event in batch.events:
            if isinstance(event, PartitionDeleted):
                for oracle in self._oracles.values():
                    oracle.forget()
            if not isinstance(event, Observation):
                continue
            oracle = self._oracles.setdefault(batch.collector_epoch, Oracle())
            if self.world.mode.topic_ids or self.world.truth.topic == 0:
                before = set(oracle.proven)
                oracle.observe(event)
                if batch.collector_epoch == max(self._oracles):
                    for under, proof in oracle.proven - before:
                        self._demand(under, *proof)
            self._topic = self._topic_of(event)
            starts = [
                s.log_start_offset or 0
                for s in event.samples
                if s.broker == event.leader and s.leads
            ]
            self._starts[self._topic] = max([self._starts.get(self._topic, 0), *starts])
            self._observed.append(self.world.now)

    def _topic_of(self, event: Observation) -> int:
        if event.topic_id is not None:
            return int(event.topic_id.removeprefix("id"))
        return self.world.truth.topic

    def _demand(self, under: int, epoch: int, start: int, end: int) -> None:
        """A proven range: what is truly lost of it must be claimed; what survives is our error."""
        truth, topic = self.world.truth, self.world.truth.topic
        lost = truth.lost_under(topic, under, None)
        for offset in range(start, end):
            records = [
                r for r in truth.committed[topic].get(offset, ()) if truth.epoch_of[r] <= epoch
            ]
            missing = [r for r in records if r in lost]
            for record in missing:
                text = f"offset {offset} of epoch {epoch}, under {under}"
                self._demanded.setdefault(record, text)
            if records and not missing and not any(r in truth.deleted for r in records):
                self._find("oracle", 0, f"{offset} of epoch {epoch} survives under {under}")

    def _judge_row(self, number: int, row: Row) -> None:
        if row.destination == "dead_letters":
            self._find("dead letter", number, repr(row.value))
        if row.destination != "alerts" or row.value is None:
            return
        self.alerts.append(row.value)
        alert = decode_record(row.value)
        assert isinstance(alert, Alert)
        if alert.state == "resolved":
            return
        self.counts[f"alerts: {alert.labels['severity']}"] += 1
        topic = self._topic if self._topic < len(self.world.truth.committed) else 0
        before = self._observed[-2] if len(self._observed) > 1 else 0.0
        start = self._starts.get(topic, 0)
        case = Case(self.world, alert, topic, before, start, self._claimed)
        name, text = case.name, alert.annotations["description"]
        if name == LOSS:
            wrong = judge_claim(case, self.counts)
            if len(self.history.plan.collectors) == 1 and is_misdated(case, ORIGIN):
                self._find("claim: written_between", number, f"{alert.evidence}")
            if wrong is not None:
                self._find(
                    f"claim: {wrong.split(' ', 1)[1].split(',')[0]}", number, f"{wrong}: {text}"
                )
        for key in ("proven", "exposed", "suspected"):
            bounds = alert.evidence.get(key)
            if bounds is not None and bounds[0] >= bounds[1]:
                self._find(f"empty range: {name}", number, f"{key} {bounds}: {text}")
        kind = severities.judge(case, benign=self.history.plan.benign)
        if kind is not None:
            self._find(kind, number, text)
        for kind, sentence in judge_sentences(case, self.counts):
            self._find(kind, number, f"{sentence} | {text}")

    def _find(self, kind: str, number: int, text: str) -> None:
        """Once per kind and history, so that counts are of histories."""
        if not any(finding.kind == kind for finding in self.findings):
            self.findings.append(Finding(kind, number, text))

    def _judge_unclaimed(self, number: int) -> None:
        truth = self.world.truth
        lost = frozenset[int]().union(*(seen.lost for seen in truth.leaderships))
        self.counts["lost records"] += len(lost)
        self.counts["lost records claimed"] += len(lost & self._claimed)
        self.counts["proven losses"] += len(self._demanded)
        missed = sorted(set(self._demanded) - self._claimed)
        # Without topic ids, a topic that was created again looks the same.
        known = "" if self.world.mode.topic_ids else ", without topic ids"
        self.counts[f"proven losses unclaimed{known}"] += len(missed)
        if missed and not known:
            text = f"{len(missed)} records, first {self._demanded[missed[0]]}"
            self._find("unclaimed", number, text)


def groups_of(seed: int) -> tuple[int, int]:
    """Group and number of groups: one history in four is in the cluster's home group.

    Only the home group judges brokers, which no check is about.
    """
    return (0, 1) if seed % 4 == 0 else (1 - home_group(CLUSTER, 2), 2)


def judge(plan: Script) -> Result:
    return Judge(plan).run()


def replay_in_two(batches: list[Batch], groups: tuple[int, int]) -> list[bytes]:
    """The alerts of two calls of the reducer, over encoded records."""
    records = [
        RawRecord(0, index, ORIGIN, encode_batch(batch)) for index, batch in enumerate(batches)
    ]
    half, found = len(records) // 2, []
    blob: bytes | None = None
    for part in (records[:half], records[half:]):
        blob, rows = fold_group(blob, part, Detection(), *groups)
        found += [row.value for row in rows if row.destination == "alerts" and row.value]
        assert not any(row.destination == "dead_letters" for row in rows)
    return found

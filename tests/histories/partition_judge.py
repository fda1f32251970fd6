"""Holds the alerts about one partition against its truth."""

from __future__ import annotations

from tests.histories import severities
from tests.histories.case import Case
from tests.histories.claims import ALERT as LOSS
from tests.histories.claims import is_misdated, judge_claim
from tests.histories.findings import Findings
from tests.histories.history import History
from tests.histories.last_known import LastKnownLeaders
from tests.histories.partition import Partition
from tests.histories.sentences import judge_sentences
from tests.histories.world import ORIGIN
from tidemark.core.events import Batch, MetadataChange, Observation, PartitionDeleted
from tidemark.core.records import Alert
from tidemark_lab.judge.proofs import Oracle

# Passes after which the only collector must be heard.
ALONE = 45
OFFLINE_PASSES = 30
# An alert may fire about a topic so long after it was deleted: by an old image.
STALE_SECONDS = 5.0


class PartitionJudge:
    def __init__(self, history: History, partition: Partition, findings: Findings) -> None:
        self._history, self._partition = history, partition
        self._findings, self._counts = findings, findings.counts
        # By collector epoch: of two collectors, only the newer process is sure to be read.
        self._oracles: dict[int, Oracle] = {}
        self._claimed: set[int] = set()
        self._ranges: dict[str, tuple[int, int]] = {}
        self._demanded: dict[int, str] = {}
        # When the passes that observed it began and ended.
        self._observed: list[tuple[float, float]] = []
        self._last_known = LastKnownLeaders(partition, findings)
        self._topic = 0
        self._starts: dict[int, int] = {}
        self._offline = 0
        # By alert id.
        self._fired_at: dict[str, float] = {}

    def note(self, batch: Batch, event: Observation | PartitionDeleted | MetadataChange) -> None:
        """What the samples show, for the oracle and for what a claim may know."""
        if isinstance(event, PartitionDeleted):
            for oracle in self._oracles.values():
                oracle.forget()
            return
        partition = self._partition
        oracle = self._oracle(batch.collector_epoch)
        if isinstance(event, MetadataChange):
            oracle.hear(event)
            return
        # The oracle knows nothing of compaction and of restored epochs.
        is_usual = not self._history.plan.compacts and not partition.truth.restored
        if is_usual and (partition.mode.topic_ids or partition.truth.topic == 0):
            before = set(oracle.proven)
            oracle.observe(event)
            if batch.collector_epoch == max(self._oracles):
                for under, proof in oracle.proven - before:
                    self._demand(under, *proof)
        self._topic = partition.topic_of(event.topic_id)
        self._last_known.note(self._topic, event)
        starts = [
            s.log_start_offset or 0 for s in event.samples if s.broker == event.leader and s.leads
        ]
        self._starts[self._topic] = max([self._starts.get(self._topic, 0), *starts])
        self._observed.append((self._history.began_at, self._history.world.now))

    def _oracle(self, epoch: int) -> Oracle:
        """A new collector's knows what was deleted: what the stream keeps of the one before."""
        if epoch not in self._oracles:
            known = max(self._oracles.values(), key=lambda each: each.start, default=Oracle())
            self._oracles[epoch] = Oracle(start=known.start, topic_id=known.topic_id)
        return self._oracles[epoch]

    def _demand(self, under: int, epoch: int, start: int, end: int) -> None:
        """A proven range: what is truly lost of it must be claimed; what survives is our error."""
        truth = self._partition.truth
        lost = truth.lost_under(truth.topic, under, None)
        for offset in range(start, end):
            records = [
                r
                for r in truth.committed[truth.topic].get(offset, ())
                if truth.epoch_of[r] <= epoch
            ]
            missing = [r for r in records if r in lost]
            for record in missing:
                text = f"offset {offset} of epoch {epoch}, under {under}"
                self._demanded.setdefault(record, text)
            # What a zombie committed at the offset is lost, and was never demanded.
            is_late = offset in truth.late[truth.topic]
            gone = is_late or any(r in truth.deleted for r in records)
            if records and not missing and not gone:
                self._findings.add("oracle", 0, f"{offset} of epoch {epoch} survives under {under}")

    def judge(self, number: int, alert: Alert) -> None:
        """An alert that fires or is updated in pass `number`."""
        self._fired_at.setdefault(alert.id, self._history.world.now)
        start = self._starts.get(self._topic, 0)
        history, findings = self._history, self._findings
        plan = history.plan
        known = (self._claimed, len(plan.collectors) == 1, self._ranges, plan.metadata_log)
        case = Case(
            history.world, self._partition, alert, self._topic, self._observed, start, *known
        )
        name, text = case.name, alert.annotations["description"]
        if name == LOSS:
            wrong = judge_claim(case, self._counts)
            if len(history.plan.collectors) == 1 and is_misdated(case, ORIGIN):
                findings.add("claim: written_between", number, f"{alert.evidence}")
            if wrong is not None:
                kind = wrong.split(" ", 1)[1].split(",")[0]
                findings.add(f"claim: {kind}", number, f"{wrong}: {text}")
        for key in ("proven", "exposed", "suspected"):
            bounds = alert.evidence.get(key)
            if bounds is not None and bounds[0] >= bounds[1]:
                findings.add(f"empty range: {name}", number, f"{key} {bounds}: {text}")
        self._last_known.judge(number, case)
        failure = severities.judge(case, benign=history.plan.benign)
        if failure is not None:
            findings.add(failure, number, text)
        for failure, sentence in judge_sentences(case, self._counts):
            findings.add(failure, number, f"{sentence} | {text}")

    def judge_silence(self, number: int, *, is_seen: bool, is_open: bool) -> None:
        """A partition that was shown without a leader for long has an open KafkaOffline."""
        state = self._partition.state
        self._offline = self._offline + 1 if is_seen and state.exists and state.leader < 0 else 0
        if self._offline >= OFFLINE_PASSES and not is_open:
            self._findings.add("silent: KafkaOffline", number, f"{self._partition.topic}")

    def judge_deleted(self, number: int, alert: Alert) -> None:
        """An alert that is resolved because the partition was deleted, since it fired."""
        records = self._partition.controlled.records
        deleted_at = max((r.at for r in records if not r.exists), default=None)
        since = self._fired_at.get(alert.id, 0.0) - STALE_SECONDS
        self._findings.counts["alerts resolved as deleted"] += 1
        if deleted_at is None or deleted_at < since:
            text = f"{alert.labels['alertname']}: {alert.annotations['description']}"
            self._findings.add("resolved as deleted", number, text)

    def judge_owner(self, number: int, owner: str | None) -> None:
        """A collector that is alone for long is heard, even when an earlier clock was ahead."""
        collectors = self._history.plan.collectors
        running = [i for i, c in enumerate(collectors) if c[0] <= number <= c[1]]
        if len(running) != 1 or running == [0]:
            return
        heard = any(at > collectors[0][1] + ALONE for _, at in self._observed)
        if heard and owner is not None and owner != f"c{running[0] + 1}":
            self._findings.add("collector refused", number, f"owner {owner}")

    def judge_unclaimed(self, number: int) -> None:
        """At the end of the history, after pass `number`."""
        truth, counts = self._partition.truth, self._counts
        lost = frozenset[int]().union(*(seen.lost for seen in truth.leaderships))
        if len(self._history.plan.collectors) == 1:
            self._last_known.count(counts)
        counts["committed records"] += len(truth.committed_at)
        counts.update(f"elections: {e.kind}" for e in truth.elections[1:])
        counts["lost records"] += len(lost)
        counts["lost records claimed"] += len(lost & self._claimed)
        missed = sorted(set(self._demanded) - self._claimed)
        # Without topic ids, a topic that was created again looks the same.
        known = "" if self._partition.mode.topic_ids else f", Kafka {self._partition.mode.name}"
        counts[f"proven losses{known}"] += len(self._demanded)
        counts[f"proven losses unclaimed{known}"] += len(missed)
        if missed and not known:
            text = f"{len(missed)} records, first {self._demanded[missed[0]]}"
            self._findings.add("unclaimed", number, text)

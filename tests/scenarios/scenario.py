"""A scenario: commands about one partition, and the alerts that the reducer raises.

Commands, one a line, of `key=value` words. A word that a command leaves out keeps its value:

    thresholds lag_ms=500                 thresholds of the whole scenario; comes first
    partition orders-0 replicas=1,2,3     the partition: leader 1, epoch 0, all replicas in sync,
                                          all offsets 0
    pass [N] [every=SECONDS] WORDS        N passes (one by default) at intervals of a second; each
                                          is one observation and its pass record. period=SECONDS:
                                          the collector's period, where passes of others lie
                                          between its own
    gone                                  the partition is deleted
    ack NAME                              an operator closes the event alert NAME
    evidence NAME                         the evidence of the newest alert NAME
    record leader=2 epoch=1 isr=2 …       a record of the metadata log; offset and partition epoch
                                          count up unless given (offset=9 partition_epoch=7). Also
                                          replicas= elr= last_elr= adding= removing= cause=fenced
                                          recovering; age=3600: written so many seconds ago
    checkpoint 2 hw=90 age=20             broker 2's checkpoint files: their high watermark, and
                                          the seconds since they were written
    broker 2 fenced lag=12000             a `broker` event; also unfenced, shutdown, up, voter,
                                          observer, incarnation=7, produce=2000, fetch=10,
                                          offline_dirs=1, checkpoint_age=20 directory=/data
    audit 1,2 offset=40 epoch=0           an audit found different content (crcs=11,22); epochs=0,1:
                                          of these leader epochs; hw=100

Words of `pass`:

    leader=2 epoch=1                      none: no leader is named; no epochs, before 0.11
    isr=1,2 elr=3 last_elr=3              none: empty
    replicas=… adding=4 removing=3 min_isr=2
    topic_id=b from=1,3                   none: before 2.8; the brokers that gave the metadata
    leo=100 or leo=1:100,3:90             log end offsets: of all replicas, or of some
    hw=100                                the leader's fenced high watermark; none: not reported
    unfenced                              the leader refuses the fence (error 78); its replica
                                          shows the high watermark
    add=10                                the leader and every in-sync replica that answers gain
                                          10 records in each pass; the high watermark follows
    fast=1:0:9@0.7,12@0.2                 between the passes, leader 1 of epoch 0 reported the high
                                          watermarks 9 and 12, 0.7 and 0.2 s before this pass
    start=1:5 lso=40 held=7:x             log start offsets; the leader's last stable offset, and
                                          the producer and transactional id (none) that hold it
    lineage=0:5,2:9 lineage@1=0:5         the leader's lineage from its first epoch; a follower's
    down=3:timed_out,1:refused            brokers that do not answer; none: all answer. no_answer:
                                          the broker answers and leaves the partition out
    silent=3:timed_out                    brokers that answer, but not about this partition; none
    knows=1:0                             the leader epoch that a broker knows
    leads=3                               other brokers that act as leader
    quorum=1:5                            leader and epoch; none:5: no leader; none: not asked
    preferred=1:10/3                      broker 1 is the preferred leader of 10 and leads 3
    in_sync=3:40 serving=3:0 left=3:5     broker 3 is in 40 in-sync sets, serves no partition, and
                                          left 5 sets since the last pass
    shard=1/4 collector=NAME@EPOCH metadata_age=5
    compacted                             the topic is compacted
    leaderless                            two brokers agree that the partition has no leader
    missed, all-missed                    the pass does not see the partition, or anything
    unseen                                thinned: neither observed nor missed
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from tests.scenarios.simulation import SimulatedPartition, broker_event, fast_high_watermarks
from tests.scenarios.values import ORIGIN, evidence_text, fields_of
from tidemark.core.codec import encode_batch
from tidemark.core.events import Ack, Batch, Event
from tidemark.core.identity import partition_key
from tidemark.core.partition import PartitionState
from tidemark.core.records import Alert, View, decode_record
from tidemark.detect.default_thresholds import Detection, Thresholds
from tidemark.observations.cluster_views import CompletingFold
from tidemark.reduce.group import Fold
from tidemark.reduce.rows import RawRecord

CLUSTER = "main"


@dataclass
class Scenario:
    """The partition, the clock, and the reducer. `alerts` are the newest records by fingerprint."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    partition: SimulatedPartition = field(default_factory=SimulatedPartition)
    clock: float = ORIGIN
    collector: tuple[str, int] = ("c1", 1)
    # The newest pass of each collector process: each counts its own.
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    alerts: dict[str, Alert] = field(default_factory=dict)
    # The newest views by key.
    views: dict[str, View] = field(default_factory=dict)

    @cached_property
    def fold(self) -> Fold:
        """The reducer; the thresholds are fixed from here on."""
        return CompletingFold(Detection(thresholds=self.thresholds))

    @property
    def key(self) -> str:
        """The key of the partition."""
        return partition_key(CLUSTER, self.partition.topic, self.partition.number)

    @property
    def state(self) -> PartitionState:
        """The state of the partition, which was observed."""
        state = self.fold.partition(self.key)
        assert state is not None
        return state

    def newest(self, name: str) -> Alert:
        """The alert with a name that was raised last."""
        return [a for a in self.alerts.values() if a.labels["alertname"] == name][-1]

    def play(self, *lines: str) -> list[str]:
        """Carries out commands; the lines of all their alerts."""
        return [answer for line in lines for answer in self.run(line)]

    def run(self, line: str) -> list[str]:
        """Carries out one command; a line per alert."""
        command, *words = line.split()
        match command:
            case "thresholds":
                known = msgspec.to_builtins(self.thresholds)
                merged = {**known, **fields_of(words)}
                self.thresholds = msgspec.convert(merged, Thresholds, strict=False)
                return []
            case "partition":
                self.partition.begin(words)
                return []
            case "evidence":
                evidence = self.newest(words[0]).evidence
                return [f"  {key}: {evidence_text(value)}" for key, value in evidence.items()]
            case "pass":
                return self._passes(words)
            case "audit":
                self.clock += 0.001
        # A verb publishes what an audit finds: it is no collector and has no pass.
        is_verb = command in {"audit", "escrow"}
        sender = (f"tidemark-{command}", int(self.clock * 1000)) if is_verb else None
        return self._send([self._event(command, words)], sender)

    def _event(self, command: str, words: list[str]) -> Event:
        partition, at = self.partition, self.clock
        match command:
            case "gone":
                return partition.gone(at)
            case "record":
                return partition.record(words, at)
            case "checkpoint":
                return partition.checkpoint(words, at)
            case "audit":
                return partition.audit(words, at)
            case "escrow":
                return partition.escrow(words, at)
            case "broker":
                return broker_event(words, at)
            case "ack":
                mark = self.newest(words[0]).fingerprint
                place = {"topic": partition.topic, "partition": partition.number}
                return Ack(fingerprint=mark, observed_at=at, by="on-call", **place)  # type: ignore[arg-type]
        raise ValueError(f"unknown command: {command}")

    def _passes(self, words: list[str]) -> list[str]:
        count = int(words.pop(0)) if words and words[0].isdigit() else 1
        flags, given = {word for word in words if "=" not in word}, fields_of(words)
        every = float(given.pop("every", "1"))
        period, add = float(given.pop("period", every)), int(given.pop("add", "0"))
        if "collector" in given:
            name, _, epoch = given.pop("collector").partition("@")
            self.collector = (name, int(epoch))
        fast = given.pop("fast", None)
        self.partition.apply(given)
        lineages = {key: value for key, value in given.items() if key.startswith("lineage")}
        lines = []
        for _ in range(count):
            self.clock += every
            number = self.numbers[self.collector] = self.numbers.get(self.collector, 0) + 1
            self.partition.grow(add)
            events: list[Event] = [self.partition.closing(number, self.clock, period, flags)]
            if not flags & {"missed", "all-missed", "unseen"}:
                seen = self.partition.observation(self.clock, flags, lineages)
                seen.fast_high_watermarks = fast_high_watermarks(fast, self.clock)
                events.insert(0, seen)
            lines += self._send(events)
        return lines

    def _send(self, events: list[Event], sender: tuple[str, int] | None = None) -> list[str]:
        collector, epoch = sender or self.collector
        number = self.numbers.get((collector, epoch), 0)
        batch = Batch(
            v=2,
            cluster=CLUSTER,
            collector=collector,
            collector_epoch=epoch,
            pass_number=number,
            events=events,
        )
        self.batches.append(batch)
        self.fold.record(RawRecord(0, len(self.batches), self.clock, encode_batch(batch)))
        rows, self.fold.rows = self.fold.rows, []
        lines = []
        for row in rows:
            record = None if row.value is None else decode_record(row.value)
            if isinstance(record, Alert):
                self.alerts[record.fingerprint] = record
                lines.append(self._line(_alert_text(record)))
            elif record is None:
                lines.append(self._line(f"tombstone {row.key.decode()}"))
            else:
                assert isinstance(record, View)
                self.views[row.key.decode()] = record
        return lines

    def _line(self, text: str) -> str:
        return f"{self.clock - ORIGIN:6.1f} s  {text}"


def _alert_text(alert: Alert) -> str:
    """`firing critical KafkaOffline broker=1: description`; without one when it resolves."""
    broker = f" broker={alert.labels['broker']}" if "broker" in alert.labels else ""
    state = alert.state if alert.reason is None else f"{alert.state}/{alert.reason}"
    text = "" if alert.state == "resolved" else f": {alert.annotations['description']}"
    return f"{state} {alert.labels['severity']} {alert.labels['alertname']}{broker}{text}"

"""A small world that scenario texts describe: one watched partition, passes, and what the detectors say of them.

Commands (one a line, `key=value` words; what is not named stays as it was):

    thresholds lag_ms=500                 thresholds of the whole scenario; comes first
    partition orders-0 replicas=1,2,3     the partition; sets leader 1, epoch 0, everybody in sync, offsets 0
    pass [N] [every=SECONDS] WORDS        N passes (default 1, one a second), each one observation and its pass record
                                          (period=SECONDS: what a collector calls its period, where others pass in between)
    gone | ack NAME                       the partition is deleted; an operator closes the event alert NAME
    evidence NAME                         what the newest alert NAME carries for machines; times as seconds of the scenario
    record leader=2 epoch=1 isr=2 …       a record of the metadata log (offset and partition epoch count up by themselves;
                                          offset=9 partition_epoch=7 replicas= elr= last_elr= adding= removing= cause=fenced recovering,
                                          age=3600: the controller wrote it so many seconds ago)
    checkpoint 2 hw=90 age=20             broker 2's checkpoint files: high watermark in them, seconds since they were written (topic_id=)
    broker 2 fenced lag=12000             a `broker` event (also unfenced, shutdown, up, voter, observer, incarnation=7, produce=2000, fetch=10,
                                          offline_dirs=1)
    audit 1,2 offset=40 epoch=0           an audit found different content (crcs=11,22)

Words of `pass`: leader=2 (or none) epoch=1 (or none: before 0.11) isr=1,2 elr=3 last_elr=3 adding=4 replicas=… min_isr=2 topic_id=b
leo=100 (all) or leo=1:100,3:90   hw=100 (what the leader reports under its fence; none: it reports none)
unfenced (it refuses to, by error 78, while its replica shows hw)
add=10 (the leader and every in-sync replica that answers gain 10 records each pass; hw follows)
start=1:5   lineage=0:5,2:9 (the leader's, from its first epoch)   lineage@1=0:5,2:9 (a follower's)
down=3:timed_out,1:refused,2:no_answer (or none)   knows=1:0 (the leader epoch a broker knows)   lso=40 (the leader's; none: its high watermark)
leads=3 (others that believe to lead too; or none)   quorum=1:5 (leader and epoch; none:5: it has no leader; none: not asked)
preferred=1:10/3 (broker 1 is the preferred leader of 10 and leads 3 of them)   in_sync=3:40 (broker 3 is in sync with 40)   shard=1/4   removing=3   metadata_age=5
compacted (the topic is)   missed (the pass does not see the partition)   all-missed   unseen (thinned: neither observed nor missed)
leaderless (two brokers agree that nobody leads)   collector=NAME@EPOCH
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.scenarios.words import (
    ORIGIN,
    broker_answer,
    broker_event,
    numbers,
    optional,
    pairs,
    spoken,
)
from tidemark.core.codec import encode_batch
from tidemark.core.events import (
    OK,
    Ack,
    Audit,
    Batch,
    Checkpoint,
    Event,
    Gone,
    MetadataChange,
    Observation,
    Pass,
    Replica,
)
from tidemark.core.records import Alert, View, decode_record
from tidemark.detect.thresholds import Detection, Thresholds
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord

# A broker that answers, and leaves the partition out: nothing is wrong with the broker.
NO_ANSWER = "no_answer"


@dataclass
class World:
    """The partition as it is, the clock, and the fold that watches."""

    topic: str = "orders"
    partition: int = 0
    clock: float = ORIGIN
    # The newest pass of each collector's process: each counts its own.
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)
    thresholds: Thresholds = field(default_factory=Thresholds)
    collector: tuple[str, int] = ("c1", 1)
    words: dict[str, str] = field(default_factory=dict)
    log_ends: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    knows: dict[int, int] = field(default_factory=dict)
    high_watermark: int | None = 0
    metadata_offset: int = 100
    partition_epoch: int = 0
    batches: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fold: Fold | None = None
        self.alerts: dict[str, Alert] = {}

    @property
    def number(self) -> int:
        """The collector's newest pass."""
        return self.numbers.get(self.collector, 0)

    def run(self, line: str) -> list[str]:
        """Carries out one command; returns what came of it, a line each."""
        command, *words = line.split()
        match command:
            case "thresholds":
                self.thresholds = msgspec.convert(
                    {**msgspec.to_builtins(self.thresholds), **dict(w.split("=") for w in words)},
                    Thresholds,
                    strict=False,
                )
                return []
            case "partition":
                self._begin(words)
                return []
            case "pass":
                return self._passes(words)
            case "gone":
                return self._send(
                    [Gone(topic=self.topic, partition=self.partition, observed_at=self.clock)]
                )
            case "record":
                return self._send([self._change(words)])
            case "checkpoint":
                return self._send([self._checkpoint(words)])
            case "broker":
                return self._send([broker_event(words, self.clock)])
            case "audit":
                self.clock += 0.001
                given = dict(word.split("=", 1) for word in words[1:])
                return self._send(
                    [
                        Audit(
                            topic=self.topic,
                            partition=self.partition,
                            observed_at=self.clock,
                            topic_id=given.get("topic_id", self.words.get("topic_id", "a")),
                            brokers=numbers(words[0]),
                            offset=int(given["offset"]),
                            leader_epoch=int(given["epoch"]) if "epoch" in given else None,
                            crcs=numbers(given.get("crcs", "11,22")),
                        )
                    ]
                )
            case "evidence":
                told = [
                    alert.evidence
                    for alert in self.alerts.values()
                    if alert.labels["alertname"] == words[0]
                ]
                return [f"  {key}: {spoken(value)}" for key, value in told[-1].items()]
            case "ack":
                alert = next(
                    alert for alert in self.alerts.values() if alert.labels["alertname"] == words[0]
                )
                event = Ack(
                    fingerprint=alert.fingerprint,
                    observed_at=self.clock,
                    topic=self.topic,
                    partition=self.partition,
                    by="on-call",
                )
                return self._send([event])
        raise ValueError(f"unknown command: {line}")

    def _begin(self, words: list[str]) -> None:
        self.topic, _, number = words[0].rpartition("-")
        self.partition = int(number)
        given = dict(word.split("=", 1) for word in words[1:])
        replicas = given["replicas"]
        self.words = {
            "replicas": replicas,
            "isr": replicas,
            "leader": replicas.split(",")[0],
            "epoch": "0",
            "min_isr": "1",
            "down": "none",
            **given,
        }
        self.log_ends = dict.fromkeys(numbers(replicas), 0)

    def _passes(self, words: list[str]) -> list[str]:
        count = int(words.pop(0)) if words and words[0].isdigit() else 1
        flags = {word for word in words if "=" not in word}
        given = dict(word.split("=", 1) for word in words if "=" in word)
        every = float(given.pop("every", "1"))
        period = float(given.pop("period", every))
        add = int(given.pop("add", "0"))
        self._set(given)
        once = {key: value for key, value in given.items() if key.startswith("lineage")}
        out = []
        for _ in range(count):
            self.clock += every
            self.numbers[self.collector] = self.number + 1
            self._grow(add)
            out += self._send(self._events(flags, once, period))
        return out

    def _change(self, words: list[str]) -> MetadataChange:
        given = dict(word.split("=", 1) for word in words if "=" in word)
        self.metadata_offset = int(given.get("offset", self.metadata_offset + 1))
        self.partition_epoch = int(given.get("partition_epoch", self.partition_epoch + 1))
        leader = given.get("leader", self.words["leader"])
        return MetadataChange(
            topic=self.topic,
            partition=self.partition,
            observed_at=self.clock,
            topic_id=given.get("topic_id", self.words.get("topic_id", "a")),
            metadata_offset=self.metadata_offset,
            record_at=self.clock - float(given["age"]) if "age" in given else None,
            leader=None if leader == "none" else int(leader),
            leader_epoch=int(given.get("epoch", self.words["epoch"])),
            partition_epoch=self.partition_epoch,
            replicas=numbers(given.get("replicas", self.words["replicas"])),
            in_sync_replicas=numbers(given.get("isr", self.words["isr"])),
            eligible_leader_replicas=numbers(given["elr"]) if "elr" in given else None,
            last_known_eligible_leader_replicas=numbers(given["last_elr"])
            if "last_elr" in given
            else None,
            adding=numbers(given.get("adding", "")),
            removing=numbers(given.get("removing", "")),
            recovering="recovering" in words,
            cause=given.get("cause"),  # type: ignore[arg-type]
        )

    def _checkpoint(self, words: list[str]) -> Checkpoint:
        given = dict(word.split("=", 1) for word in words[1:])
        return Checkpoint(
            topic=self.topic,
            partition=self.partition,
            observed_at=self.clock,
            broker=int(words[0]),
            topic_id=given.get("topic_id", self.words.get("topic_id", "a")),
            high_watermark=int(given["hw"]) if "hw" in given else None,
            modified_at=self.clock - float(given.get("age", "0")),
        )

    def _set(self, given: dict[str, str]) -> None:
        for key, value in given.items():
            match key:
                case "leo":
                    self.log_ends |= (
                        pairs(value)
                        if ":" in value
                        else dict.fromkeys(numbers(self.words["replicas"]), int(value))
                    )
                case "hw":
                    self.high_watermark = None if value == "none" else int(value)
                case "start":
                    self.starts |= pairs(value)
                case "knows":
                    self.knows = pairs(value)
                case "collector":
                    name, _, epoch = value.partition("@")
                    self.collector = (name, int(epoch))
                case _ if not key.startswith("lineage"):
                    self.words[key] = value

    def _grow(self, add: int) -> None:
        if not add:
            return
        down, leader, members = (
            pairs(self.words["down"]),
            self.words["leader"],
            numbers(self.words["isr"]),
        )
        if leader == "none":
            return
        for broker in {int(leader), *members}:
            if broker not in down:
                self.log_ends[broker] = self.log_ends.get(broker, 0) + add
        self.high_watermark = min(self.log_ends[broker] for broker in members or [int(leader)])

    def _events(self, flags: set[str], once: dict[str, str], period: float) -> list[Event]:
        events: list[Event] = (
            [] if flags & {"missed", "all-missed", "unseen"} else [self._observation(flags, once)]
        )
        down = pairs(self.words["down"])
        brokers = sorted({1, 2, 3, *numbers(self.words["replicas"])})
        missed: Any = (
            "all"
            if "all-missed" in flags
            else ({self.topic: [(self.partition, self.partition)]} if "missed" in flags else {})
        )
        quorum = self.words.get("quorum", "none")
        quorum_leader, _, quorum_epoch = quorum.partition(":")
        preferred, in_sync = (
            pairs(self.words.get("preferred", "")),
            pairs(self.words.get("in_sync", "")),
        )
        closing = Pass(
            number=self.number,
            started_at=self.clock,
            ended_at=self.clock,
            monotonic=self.clock,
            period_ms=period * 1000,
            brokers=[
                broker_answer(
                    broker,
                    OK if down.get(broker) == NO_ANSWER else str(down.get(broker, OK)),
                    preferred.get(broker),
                    in_sync.get(broker),
                )
                for broker in brokers
            ],
            missed=missed,
            quorum_leader=None if quorum_leader == "none" else int(quorum_leader),
            quorum_epoch=int(quorum_epoch) if quorum_epoch else None,
            shard=self.words.get("shard"),
        )
        return [*events, closing]

    def _observation(self, flags: set[str], once: dict[str, str]) -> Observation:
        words, down = self.words, pairs(self.words["down"])
        leader = None if words["leader"] == "none" else int(words["leader"])
        answers = leader is not None and leader not in down
        log_end = self.log_ends.get(leader, 0) if answers and leader is not None else None
        lineage = list(pairs(once["lineage"]).items()) if "lineage" in once else None
        return Observation(
            topic=self.topic,
            partition=self.partition,
            observed_at=self.clock,
            topic_id=words.get("topic_id", "a"),
            leader=leader,
            leader_epoch=optional(words["epoch"]),
            leaderless="leaderless" in flags,
            replicas=numbers(words["replicas"]),
            in_sync_replicas=numbers(words["isr"]),
            eligible_leader_replicas=numbers(words["elr"]) if "elr" in words else None,
            last_known_eligible_leader_replicas=numbers(words["last_elr"])
            if "last_elr" in words
            else None,
            adding=numbers(words.get("adding", "")),
            removing=numbers(words.get("removing", "")),
            metadata_at=self.clock - float(words["metadata_age"])
            if "metadata_age" in words
            else None,
            effective_min_in_sync_replicas=min(
                int(words["min_isr"]), len(numbers(words["replicas"]))
            ),
            metadata_from=[1, 2],
            samples=[
                self._replica(broker, leader, down.get(broker), once)
                for broker in numbers(words["replicas"])
            ],
            leader_log_end_offset_before=log_end,
            leader_log_end_offset_after=log_end,
            committed=self.high_watermark if answers and "unfenced" not in flags else None,
            lineage=lineage if answers else None,
            lineage_complete_from=0 if lineage and answers else None,
            compacted="compacted" in flags,
        )

    def _replica(
        self, broker: int, leader: int | None, error: str | None, once: dict[str, str]
    ) -> Replica:
        if error is not None:
            return Replica(broker=broker, error=error)
        log_end = self.log_ends.get(broker, 0)
        lineage = once.get(f"lineage@{broker}")
        return Replica(
            broker=broker,
            log_end_offset=log_end,
            high_watermark=min(log_end, self.high_watermark or 0),
            log_start_offset=self.starts.get(broker, 0),
            last_stable_offset=int(self.words["lso"])
            if broker == leader and self.words.get("lso", "none") != "none"
            else None,
            leader_epoch=self.knows.get(broker, optional(self.words["epoch"])),
            leads=broker == leader or broker in numbers(self.words.get("leads", "")),
            lineage=None if lineage is None else list(pairs(lineage).items()),
        )

    def _send(self, events: list[Event]) -> list[str]:
        if self.fold is None:
            self.fold = Fold(GroupState(), Detection(thresholds=self.thresholds), 0, 1)
        name, epoch = self.collector
        batch = Batch(
            v=1,
            cluster="main",
            collector=name,
            collector_epoch=epoch,
            pass_number=self.number,
            events=events,
        )
        self.batches.append(batch)
        self.fold.record(RawRecord(0, len(self.batches), self.clock, encode_batch(batch)))
        rows, self.fold.rows = self.fold.rows, []
        lines = []
        for row in rows:
            record = decode_record(row.value) if row.value is not None else None
            if isinstance(record, Alert):
                self.alerts[record.fingerprint] = record
                lines.append(self._alert_line(record))
            elif record is None:
                lines.append(f"{self._when()}  tombstone {row.key.decode()}")
            else:
                assert isinstance(record, View)
        return lines

    def _alert_line(self, alert: Alert) -> str:
        who = f" broker={alert.labels['broker']}" if "broker" in alert.labels else ""
        state = alert.state if alert.reason is None else f"{alert.state}/{alert.reason}"
        text = "" if alert.state == "resolved" else f": {alert.annotations['description']}"
        return f"{self._when()}  {state} {alert.labels['severity']} {alert.labels['alertname']}{who}{text}"

    def _when(self) -> str:
        return f"{self.clock - ORIGIN:6.1f} s"

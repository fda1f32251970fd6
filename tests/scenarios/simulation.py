"""The partition that a scenario describes, and the events that a collector writes about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tests.scenarios.values import (
    choice,
    fields_of,
    integer,
    numbers,
    numbers_or_none,
    pairs,
)
from tidemark.core.broker_report import LogDirectory
from tidemark.core.events import (
    OK,
    Audit,
    BrokerAnswer,
    BrokerState,
    Checkpoint,
    Escrow,
    FastHighWatermarks,
    MetadataChange,
    Observation,
    OpenTransaction,
    PartitionDeleted,
    Pass,
    Replica,
)

# A broker that answers and leaves the partition out: nothing is wrong with the broker.
NO_ANSWER: Final = "no_answer"


def fast_high_watermarks(text: str | None, at: float) -> FastHighWatermarks | None:
    """`1:0:9@0.7,12@0.2`: leader, its epoch, and offsets with their ages in seconds."""
    if text is None:
        return None
    leader, epoch, listed = text.split(":")
    samples = (sample.split("@") for sample in listed.split(","))
    return FastHighWatermarks(
        leader=int(leader),
        leader_epoch=int(epoch),
        samples=[(at - float(age), int(offset)) for offset, age in samples],
    )


@dataclass
class SimulatedPartition:
    """The partition as the commands made it; `scenario.py` lists them."""

    topic: str = "orders"
    number: int = 0
    # What the commands set last, by word.
    words: dict[str, str] = field(default_factory=dict)
    log_ends: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    known_epochs: dict[int, int] = field(default_factory=dict)
    high_watermark: int | None = 0
    metadata_offset: int = 100
    partition_epoch: int = 0

    def begin(self, words: list[str]) -> None:
        """`orders-0 replicas=1,2,3 …`: leader 1, epoch 0, all replicas in sync, all logs empty."""
        self.topic, _, index = words[0].rpartition("-")
        self.number = int(index)
        given = fields_of(words)
        replicas = given["replicas"]
        defaults = {"isr": replicas, "leader": replicas.split(",")[0], "epoch": "0", "min_isr": "1"}
        self.words = {**defaults, **given}
        self.log_ends = dict.fromkeys(numbers(replicas), 0)

    def apply(self, given: dict[str, str]) -> None:
        """The words of a `pass`."""
        for key, value in given.items():
            match key:
                case "leo":
                    ends = (
                        pairs(value) if ":" in value else dict.fromkeys(self.replicas, int(value))
                    )
                    self.log_ends |= ends
                case "hw":
                    self.high_watermark = integer(value)
                case "start":
                    self.starts |= pairs(value)
                case "knows":
                    self.known_epochs = pairs(value)
                case _ if not key.startswith("lineage"):
                    self.words[key] = value

    def grow(self, add: int) -> None:
        """The leader and every in-sync replica that answers gain records; all commit them."""
        leader, members = self.leader, numbers(self.words["isr"])
        if not add or leader is None:
            return
        for broker in {leader, *members} - self.down.keys():
            self.log_ends[broker] = self.log_ends.get(broker, 0) + add
        self.high_watermark = min(self.log_ends.get(broker, 0) for broker in members or [leader])

    @property
    def replicas(self) -> list[int]:
        return numbers(self.words["replicas"])

    @property
    def leader(self) -> int | None:
        return integer(self.words["leader"])

    @property
    def down(self) -> dict[int, str]:
        """Broker -> why it does not answer."""
        return pairs(self.words.get("down", "none"))

    def _place(self, at: float, given: dict[str, str] | None = None) -> dict[str, Any]:
        topic_id = {**self.words, **(given or {})}.get("topic_id", "a")
        place = {"topic": self.topic, "partition": self.number, "observed_at": at}
        return {**place, "topic_id": None if topic_id == "none" else topic_id}

    def _metadata(self, words: dict[str, str]) -> dict[str, Any]:
        return {
            "leader": integer(words["leader"]),
            "leader_epoch": integer(words["epoch"]),
            "replicas": numbers(words["replicas"]),
            "in_sync_replicas": numbers(words["isr"]),
            "eligible_leader_replicas": numbers_or_none(words.get("elr")),
            "last_known_eligible_leader_replicas": numbers_or_none(words.get("last_elr")),
            "adding": numbers(words.get("adding", "")),
            "removing": numbers(words.get("removing", "")),
        }

    def gone(self, at: float) -> PartitionDeleted:
        """The partition is deleted."""
        return PartitionDeleted(topic=self.topic, partition=self.number, observed_at=at)

    def audit(self, words: list[str], at: float) -> Audit:
        """`1,2 offset=40 epoch=0 crcs=11,22 hw=90`, or `epochs=1,2` for different ones"""
        given = fields_of(words)
        return Audit(
            **self._place(at, given),
            brokers=numbers(words[0]),
            offset=int(given["offset"]),
            leader_epoch=integer(given.get("epoch")),
            crcs=numbers(given.get("crcs", "11,22")),
            leader_epochs=[*numbers(given["epochs"])] if "epochs" in given else None,
            high_watermark=integer(given.get("hw")),
        )

    def escrow(self, words: list[str], at: float) -> Escrow:
        """`50-100:0 until=60`: ranges with their epochs, and the seconds that it keeps them."""
        given = fields_of(words)
        ranges = [(*map(int, word.replace("-", ":").split(":")),) for word in words if ":" in word]
        return Escrow(
            **self._place(at, given),
            ranges=[(start, end, epoch) for start, end, epoch in ranges],
            kept_until=at + float(given.get("until", 3600)),
        )

    def record(self, words: list[str], at: float) -> MetadataChange:
        """`leader=2 epoch=1 isr=2 …`: what it leaves out is the partition's, or else absent."""
        given = fields_of(words)
        self.metadata_offset = int(given.get("offset", self.metadata_offset + 1))
        self.partition_epoch = int(given.get("partition_epoch", self.partition_epoch + 1))
        kept = {key: self.words[key] for key in ("leader", "epoch", "replicas", "isr")}
        return MetadataChange(
            **self._place(at, given),
            **self._metadata({**kept, **given}),
            metadata_offset=self.metadata_offset,
            record_at=at - float(given["age"]) if "age" in given else None,
            partition_epoch=self.partition_epoch,
            recovering="recovering" in words,
            cause=given.get("cause"),  # type: ignore[arg-type]
        )

    def checkpoint(self, words: list[str], at: float) -> Checkpoint:
        """`2 hw=90 age=20 recovery=50`"""
        given = fields_of(words)
        return Checkpoint(
            **self._place(at, given),
            broker=int(words[0]),
            high_watermark=integer(given.get("hw")),
            recovery_point=integer(given.get("recovery")),
            modified_at=at - float(given.get("age", "0")),
        )

    def observation(self, at: float, flags: set[str], lineages: dict[str, str]) -> Observation:
        """One observation; `lineages` are the words `lineage=` and `lineage@2=`."""
        leader, words = self.leader, self.words
        answers = leader is not None and leader not in self.down
        log_end = self.log_ends.get(leader, 0) if answers and leader is not None else None
        lineage = list(pairs(lineages["lineage"]).items()) if "lineage" in lineages else None
        minimum = min(int(words["min_isr"]), len(self.replicas))
        age = words.get("metadata_age")
        return Observation(
            **self._place(at),
            **self._metadata(words),
            leaderless="leaderless" in flags,
            effective_min_in_sync_replicas=minimum,
            metadata_from=numbers(words.get("from", "1,2")),
            metadata_at=None if age is None else at - float(age),
            samples=[self._replica(broker, lineages) for broker in self.replicas],
            leader_log_end_offset_before=log_end,
            leader_log_end_offset_after=log_end,
            committed=self.high_watermark if answers and "unfenced" not in flags else None,
            lineage=lineage if answers else None,
            lineage_complete_from=0 if lineage and answers else None,
            compacted="compacted" in flags,
            open_transaction=self._transaction(at),
        )

    def _transaction(self, at: float) -> OpenTransaction | None:
        producer, _, owner = self.words.get("held", "none").partition(":")
        if producer == "none" or self.leader in self.down:
            return None
        return OpenTransaction(
            producer_id=int(producer),
            producer_epoch=0,
            start_offset=int(self.words["lso"]),
            last_timestamp=at - 60.0,
            transactional_id=None if owner == "none" else owner,
            coordinator=None if owner == "none" else 2,
        )

    def _replica(self, broker: int, lineages: dict[str, str]) -> Replica:
        words = self.words
        error = self.down.get(broker) or pairs(words.get("silent", "none")).get(broker)
        if error is not None:
            return Replica(broker=broker, error=error)
        log_end = self.log_ends.get(broker, 0)
        lineage = lineages.get(f"lineage@{broker}")
        leads = broker == self.leader
        return Replica(
            broker=broker,
            log_end_offset=log_end,
            high_watermark=min(log_end, self.high_watermark or 0),
            log_start_offset=self.starts.get(broker, 0),
            last_stable_offset=integer(words.get("lso")) if leads else None,
            leader_epoch=self.known_epochs.get(broker, integer(words["epoch"])),
            leads=leads or broker in numbers(words.get("leads", "")),
            lineage=None if lineage is None else list(pairs(lineage).items()),
        )

    def closing(self, pass_number: int, at: float, period: float, flags: set[str]) -> Pass:
        """The pass record."""
        words = self.words
        quorum_leader, _, quorum_epoch = words.get("quorum", "none").partition(":")
        missed: Any = {self.topic: [(self.number, self.number)]} if "missed" in flags else {}
        return Pass(
            number=pass_number,
            started_at=at,
            ended_at=at,
            monotonic=at,
            period_ms=period * 1000,
            brokers=[self._answer(broker) for broker in sorted({1, 2, 3, *self.replicas})],
            missed="all" if "all-missed" in flags else missed,
            quorum_leader=integer(quorum_leader),
            quorum_epoch=integer(quorum_epoch),
            shard=words.get("shard"),
        )

    def _answer(self, broker: int) -> BrokerAnswer:
        outcome = self.down.get(broker, OK)
        owned, _, led = pairs(self.words.get("preferred", "")).get(broker, "").partition("/")
        return BrokerAnswer(
            broker=broker,
            outcome=OK if outcome == NO_ANSWER else outcome,
            # The brokers that answer a part of the pass, also where they fail then.
            answered_ms=8.0 if broker in numbers(self.words.get("part", "none")) else None,
            preferred=integer(owned),
            preferred_led=integer(led),
            in_sync=pairs(self.words.get("in_sync", "")).get(broker),
            serving=pairs(self.words.get("serving", "")).get(broker),
            left=pairs(self.words.get("left", "")).get(broker),
        )


def broker_event(words: list[str], at: float) -> BrokerState:
    """`2 fenced lag=12000 voter log_dirs=/a,/b:KAFKA_STORAGE_ERROR`, `2 checkpoint_age=20`"""
    given = fields_of(words)
    paths = [each.partition(":") for each in given.get("log_dirs", "").split(",") if each]
    directories = [LogDirectory(path=path, error=error or None) for path, _, error in paths]
    offline = sum(each.error is not None for each in directories) if directories else None
    age = given.get("checkpoint_age")
    return BrokerState(
        broker=int(words[0]),
        observed_at=at,
        incarnation=integer(given.get("incarnation")),
        fenced=choice(words, "fenced", "unfenced"),
        in_controlled_shutdown=choice(words, "shutdown", "up"),
        is_voter=choice(words, "voter", "observer"),
        metadata_lag_ms=float(given["lag"]) if "lag" in given else None,
        log_directories=directories or None,
        offline_log_dirs=integer(given.get("offline_dirs")) if offline is None else offline,
        produce_purgatory=integer(given.get("produce")),
        fetch_purgatory=integer(given.get("fetch")),
        checkpoint_modified_at=None if age is None else at - float(age),
        checkpoint_directory=None if age is None else given.get("directory", "/data"),
    )

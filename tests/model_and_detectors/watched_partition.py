"""A trace of the model as Tidemark sees it: the events of a collector, the alerts, and the truth.

The truth comes from the model's own logs, which no collector can read: the records below a high
watermark that a leader reported, and whether the present leader holds the same records.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from tidemark.core.events import Audit, Batch, Event, Observation
from tidemark.core.records import Alert, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark_lab.model.action import Trace
from tidemark_lab.model.log import Log
from tidemark_lab.model.observe import PARTITION, TOPIC, TOPIC_ID, build_batch
from tidemark_lab.model.oracle import batch_contents
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.state import Constants, ModelState, presumes_leadership

ORIGIN = 1_000_000.0
LOSS, DIVERGENCE = "KafkaCommittedDataLoss", "KafkaDivergence"


class Reading(NamedTuple):
    """The records below a high watermark that a leader reported, and the leader's epoch."""

    epoch: int
    records: Log


class Claim(NamedTuple):
    """The offsets that a loss alert proves lost, and the committed offsets that were lost then."""

    proven: frozenset[int]
    lost: frozenset[int]


class WatchedPartition:
    """A partition, observed pass by pass.

    `claims` are its loss alerts, `names` the names of all alerts that fired. Without
    `metadata_epochs` only the leader's lineage shows epochs (Kafka 0.11 to 2.0).
    """

    def __init__(
        self, protocol: Protocol, constants: Constants, *, metadata_epochs: bool = True
    ) -> None:
        self._metadata_epochs = metadata_epochs
        self._protocol, self._constants = protocol, constants
        self._fold = Fold(GroupState(), Detection(), 0, 1)
        self._number = 0
        self._at = ORIGIN
        self._readings: set[Reading] = set()
        self.claims: list[Claim] = []
        self.names: set[str] = set()
        # Passes in a row in which the leader's log ended below a reported high watermark.
        self.short_passes = 0

    def observe(
        self, state: ModelState, silent: Collection[int] = frozenset(), seconds: float = 1.0
    ) -> None:
        """A pass, `seconds` after the previous one."""
        self._number, self._at = self._number + 1, self._at + seconds
        batch = build_batch(
            self._protocol, self._constants, state, self._number, self._at, silent=silent
        )
        if not self._metadata_epochs:
            batch.events[:] = [_without_epochs(event) for event in batch.events]
        observation = batch.events[0]
        leader = state.quorum.leader
        if isinstance(observation, Observation) and leader is not None:
            log, committed = state.logs[leader], observation.committed
            if leader not in silent and presumes_leadership(state, leader):
                highest = max((len(reading.records) for reading in self._readings), default=0)
                passes = self.short_passes % 2 + 1 if len(log) < highest else 0
                self.short_passes = max(self.short_passes, passes)
            if committed is not None:
                self._readings.add(Reading(state.quorum.leader_epoch, log[:committed]))
        self._send(batch, state)

    def audit(self, state: ModelState, leader: int, follower: int) -> None:
        """Compares (offset, epoch, CRC) of two logs, and reports the first difference."""
        logs = (batch_contents(state.logs[replica]) for replica in (leader, follower))
        (offset, _, crc), (_, _, other_crc) = next(
            (one, other) for one, other in zip(*logs, strict=False) if one != other
        )
        audit = Audit(
            topic=TOPIC,
            partition=PARTITION,
            topic_id=TOPIC_ID,
            observed_at=self._at,
            brokers=[leader + 1, follower + 1],
            offset=offset,
            crcs=[crc, other_crc],
        )
        batch = Batch(
            v=2,
            cluster="model",
            collector="model",
            collector_epoch=1,
            pass_number=self._number,
            events=[audit],
        )
        self._send(batch, state)

    def _send(self, batch: Batch, state: ModelState) -> None:
        self._fold.batch(batch)
        rows, self._fold.rows = self._fold.rows, []
        for row in rows:
            if row.destination != "alerts" or row.value is None:
                continue
            alert = decode_record(row.value)
            assert isinstance(alert, Alert)
            if alert.state != "resolved":
                self.names.add(alert.labels["alertname"])
                if alert.labels["alertname"] == LOSS:
                    proven = frozenset(range(*alert.evidence["proven"]))
                    self.claims.append(Claim(proven, self.lost(state)))

    def lost(self, state: ModelState, *, provable: bool = False) -> frozenset[int]:
        """Offsets of records that the leader lacks and that an earlier epoch reported as committed.

        With `provable`, without the offsets at which the leader holds a record of no later epoch
        than the reporting leader: a zombie's record in place of a lost one. Epochs cannot
        distinguish the two, so a claim ends before them.
        """
        leader = state.quorum.leader
        if leader is None or not presumes_leadership(state, leader):
            return frozenset()
        log = state.logs[leader]
        return frozenset(
            offset
            for reading in self._readings
            if reading.epoch < state.quorum.leader_epoch
            for offset, record in enumerate(reading.records)
            if offset >= len(log)
            or (log[offset] != record and (not provable or log[offset].epoch > reading.epoch))
        )

    @property
    def proven(self) -> frozenset[int]:
        """All offsets that were claimed as lost."""
        return frozenset().union(*(claim.proven for claim in self.claims))


def _without_epochs(event: Event) -> Event:
    if not isinstance(event, Observation):
        return event
    samples = [replace(sample, leader_epoch=None, lineage=None) for sample in event.samples]
    return replace(event, leader_epoch=None, samples=samples)


def watch(
    protocol: Protocol,
    constants: Constants,
    trace: Trace,
    last: ModelState,
    *,
    metadata_epochs: bool = True,
) -> WatchedPartition:
    """Observes every state of a trace, then `last` in two more passes."""
    watched = WatchedPartition(protocol, constants, metadata_epochs=metadata_epochs)
    for state in (*trace.states[1:], last, last):
        watched.observe(state)
    return watched


def watch_with_gaps(
    protocol: Protocol, constants: Constants, trace: Trace, random: Random
) -> WatchedPartition:
    """Observes some of the states, and not always every replica."""
    watched = WatchedPartition(protocol, constants)
    rate, silence = random.random(), random.random() / 2
    for state in trace.states[1:]:
        if random.random() < rate:
            silent = frozenset(
                replica for replica in constants.all_replicas if random.random() < silence
            )
            watched.observe(state, silent, seconds=random.choice((0.2, 1.0, 5.0)))
    return watched

"""A trace of the model, watched: the records that a collector would write of it, what Tidemark says, and the truth beside it.

The truth is kept from the model's own logs, which no collector can read: what the leader that showed a high watermark held
below it, and whether the leader now holds the same records there.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import NamedTuple

from tidemark.core.events import Audit, Batch, Observation
from tidemark.core.records import Alert, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.model.action import Trace
from tidemark.model.log import Log
from tidemark.model.observe import PARTITION, TOPIC, observed_batch
from tidemark.model.protocols.protocol import Protocol
from tidemark.model.state import ClusterState, Constants, presumes_leadership
from tidemark.model.truth import content_of
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState

ORIGIN = 1_000_000.0
LOSS, DIVERGENCE = "KafkaCommittedDataLoss", "KafkaDivergence"


class Reading(NamedTuple):
    """A high watermark that a collector saw a leader show, as the records below it, and the leader's epoch."""

    epoch: int
    records: Log


class Claim(NamedTuple):
    """What a loss alert says is proven to be gone, and what was gone then of all that was seen to be committed."""

    proven: frozenset[int]
    lost: frozenset[int]


class Watched:
    """One pass at a time; `claims` and `names` (of all alerts that fired) tell what came of it."""

    def __init__(self, protocol: Protocol, constants: Constants) -> None:
        self._protocol, self._constants = protocol, constants
        self._fold = Fold(GroupState(), Detection(), 0, 1)
        self._number = 0
        self._at = ORIGIN
        self._readings: set[Reading] = set()
        self.claims: list[Claim] = []
        self.names: set[str] = set()
        # Passes in a row in which the serving leader's log ended below what was seen to be committed.
        self.short_looks = 0

    def look(
        self, state: ClusterState, silent: Collection[int] = frozenset(), seconds: float = 1.0
    ) -> None:
        """A pass over the state, `seconds` after the one before."""
        self._number, self._at = self._number + 1, self._at + seconds
        batch = observed_batch(
            self._protocol, self._constants, state, self._number, self._at, silent=silent
        )
        seen = batch.events[0]
        leader = state.quorum.leader
        if isinstance(seen, Observation) and leader is not None:
            if leader not in silent and presumes_leadership(state, leader):
                highest = max((len(reading.records) for reading in self._readings), default=0)
                self.short_looks = max(
                    self.short_looks,
                    (self.short_looks % 2 + 1) if len(state.logs[leader]) < highest else 0,
                )
            if seen.committed is not None:
                self._readings.add(
                    Reading(state.quorum.leader_epoch, state.logs[leader][: seen.committed])
                )
        self._send(batch, state)

    def audit(self, state: ClusterState, leader: int, follower: int) -> None:
        """Compares the batches of two replicas, (offset, epoch, CRC) by (offset, epoch, CRC), and reports the first that differ."""
        pairs = zip(content_of(state.logs[leader]), content_of(state.logs[follower]), strict=False)
        one, other = next((one, other) for one, other in pairs if one != other)
        finding = Audit(
            topic=TOPIC,
            partition=PARTITION,
            observed_at=self._at,
            brokers=[leader + 1, follower + 1],
            offset=one[0],
            crcs=[one[2], other[2]],
        )
        self._send(
            Batch(
                v=1,
                cluster="model",
                collector="model",
                collector_epoch=1,
                pass_number=self._number,
                events=[finding],
            ),
            state,
        )

    def _send(self, batch: Batch, state: ClusterState) -> None:
        self._fold.batch(batch)
        rows, self._fold.rows = self._fold.rows, []
        for row in rows:
            if row.destination == "alerts" and row.value is not None:
                alert = decode_record(row.value)
                assert isinstance(alert, Alert)
                if alert.state != "resolved":
                    self.names.add(alert.labels["alertname"])
                    if alert.labels["alertname"] == LOSS:
                        start, end = alert.evidence["proven"]
                        self.claims.append(Claim(frozenset(range(start, end)), self.lost(state)))

    def lost(self, state: ClusterState, *, provable: bool = False) -> frozenset[int]:
        """Offsets seen to be committed under an earlier leader whose records the present leader does not hold.

        `provable`: without those at which it holds a record of no later epoch than the leader that had committed there:
        a zombie's record in the place of a lost one. Epochs cannot tell these two apart, so the claim ends before them.
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
        """All offsets that were claimed to be gone."""
        return frozenset().union(*(claim.proven for claim in self.claims))


def watch(protocol: Protocol, constants: Constants, trace: Trace, last: ClusterState) -> Watched:
    """Watches every state of a trace, then `last` in two passes more."""
    watched = Watched(protocol, constants)
    for state in trace.states[1:]:
        watched.look(state)
    watched.look(last)
    watched.look(last)
    return watched


def watch_through_holes(
    protocol: Protocol, constants: Constants, trace: Trace, random: Random
) -> Watched:
    """Watches some of the states only, and of those not always every replica."""
    watched = Watched(protocol, constants)
    rate, silence = random.random(), random.random() / 2
    for state in trace.states[1:]:
        if random.random() < rate:
            silent = frozenset(
                replica for replica in constants.everyone if random.random() < silence
            )
            watched.look(state, silent, seconds=random.choice((0.2, 1.0, 5.0)))
    return watched

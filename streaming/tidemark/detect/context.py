"""What a detector may know besides the partition's own state."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.core.cluster import ClusterState
from tidemark.core.events import OK
from tidemark.core.partition import Life, PartitionState, ReplicaState
from tidemark.core.views import uncommitted_window
from tidemark.detect.at_risk import sentence
from tidemark.detect.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class Context:
    """One look: at a pass (state detectors) or at an observation (event detectors). `now` is the collector's clock."""

    kafka_cluster: str
    topic: str
    partition: int
    now: float
    period_ms: float
    thresholds: Thresholds
    cluster: ClusterState

    def in_grace(self, broker: int) -> bool:
        """Whether a broker's absence is put down to an orderly restart."""
        return self.cluster.in_grace(broker, self.now)

    def others_answer(self, broker: int) -> bool:
        """Whether the collector reached any other broker: else it is the collector that is cut off."""
        return any(seen.outcome == OK for number, seen in self.cluster.brokers.items() if number != broker)

    @property
    def at_risk(self) -> str:
        """A sentence for internal topics, else empty."""
        return sentence(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """One look at a cluster, at a pass, in its home group."""

    kafka_cluster: str
    now: float
    period_ms: float
    thresholds: Thresholds


def followers(state: PartitionState) -> list[ReplicaState]:
    """Sampled replicas other than the leader, without those a reassignment is adding."""
    return [replica for replica in state.replicas if replica.broker != state.leader and replica.broker in state.settled]


def is_open(state: PartitionState, detector: str, subject: int | None) -> bool:
    """Whether an alert of a detector is firing now."""
    return any(life.firing and life.detector == detector and life.subject == subject for life in state.lives)


def find_life(state: PartitionState, detector: str, subject: int | None) -> Life | None:
    """The life of a detector's alert, counted or firing."""
    return next((life for life in state.lives if life.detector == detector and life.subject == subject), None)


def uncommitted(state: PartitionState, now: float) -> tuple[int, float] | None:
    """(records above the high watermark, milliseconds that the oldest surely waits); None when there are none known."""
    window = uncommitted_window(state, now)
    return None if window is None or window[0] == 0 else (window[0], window[1] or 0.0)

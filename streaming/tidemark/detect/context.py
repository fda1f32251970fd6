"""What a detector may know besides the partition's own state."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.core.cluster import ClusterState
from tidemark.core.events import OK
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import Life, PartitionState, ReplicaState
from tidemark.detect.internal_topics import sentence
from tidemark.detect.thresholds import Thresholds
from tidemark.evolve.in_sync import say_cause


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
        return any(
            seen.outcome == OK for number, seen in self.cluster.brokers.items() if number != broker
        )

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


def answered(state: PartitionState, replica: ReplicaState | None) -> bool:
    """Whether a replica's broker answered in the newest pass, so that what it said may be held against the others."""
    return replica is not None and replica.error is None and replica.sampled_at == state.observed_at


def shows_leader(state: PartitionState) -> bool:
    """Whether the newest look holds the leader's log end, or shows that there is no leader to have one."""
    return state.leaderless or state.leader_log_end_offset is not None


def shows_leader_first(state: PartitionState) -> bool:
    """Likewise of the log end that was read before the followers were asked: what they may be held against."""
    return state.leaderless or state.leader_before is not None


def counted(number: int, thing: str) -> str:
    """One record, 2 records: a number with its noun."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def followers(state: PartitionState) -> list[ReplicaState]:
    """Sampled replicas other than the leader, without those a reassignment is adding."""
    return [
        replica
        for replica in state.replicas
        if replica.broker != state.leader and replica.broker in state.settled
    ]


def is_open(state: PartitionState, detector: str, subject: int | None) -> bool:
    """Whether an alert of a detector is firing now."""
    return any(
        life.firing and life.detector == detector and life.subject == subject
        for life in state.lives
    )


def find_life(state: PartitionState, detector: str, subject: int | None) -> Life | None:
    """The life of a detector's alert, counted or firing."""
    return next(
        (life for life in state.lives if life.detector == detector and life.subject == subject),
        None,
    )


def lasted_ms(state: PartitionState, detector: str, subject: int | None, now: float) -> float:
    """For how long a detector has seen its condition without a break; 0 at its first sight."""
    life = find_life(state, detector, subject)
    return 0.0 if life is None else (now - life.since) * 1000.0


def is_claimed(state: PartitionState) -> bool:
    """Whether an open alert says already what the election of the present leader cost."""
    return any(
        life.firing
        and life.detector == "COMMITTED_DATA_LOSS"
        and life.evidence.get("leader_epoch_after") == state.leader_epoch
        for life in state.lives
    )


def spoken(milliseconds: float) -> str:
    """A duration as people say it: seconds below two minutes, then minutes."""
    return (
        f"{milliseconds / 1000:.0f} s"
        if milliseconds < 120_000
        else f"{milliseconds / 60_000:.0f} min"
    )


def describe_missing(state: PartitionState) -> str:
    """The replicas out of sync, as `describe` names them."""
    return describe(state, state.missing)


def describe(state: PartitionState, brokers: list[int]) -> str:
    """Replicas by their brokers: how each fails to answer, else why it left the in-sync set where that was seen."""
    causes = {broker: cause for _, broker, _, cause in state.shrinks}
    return ", ".join(
        f"broker {broker}{_absence(state.replica(broker), causes.get(broker))}"
        for broker in brokers
    )


def _absence(replica: ReplicaState | None, cause: str | None) -> str:
    if replica is not None and replica.error is not None:
        return f" (does not answer: {replica.error})"
    return f" (answers; {say_cause(cause)})" if cause is not None else ""


def uncommitted(state: PartitionState, now: float) -> tuple[int, float] | None:
    """(records above the high watermark, milliseconds that the oldest surely waits); None when there are none known."""
    window = uncommitted_window(state, now)
    return None if window is None or window[0] == 0 else (window[0], window[1] or 0.0)


def uncommitted_window(state: PartitionState, now: float) -> tuple[int, float | None] | None:
    """Records above the high watermark and the age of the oldest; (0, 0.0) when all is committed, None when unknown."""
    if state.high_watermark is None or state.leader_log_end_offset is None:
        return None
    records = max(0, state.leader_log_end_offset - state.high_watermark)
    return (records, age_ms(state.ring, state.high_watermark, now)) if records else (0, 0.0)

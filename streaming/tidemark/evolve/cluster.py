"""The state of a cluster after a pass, or after an event about one of its brokers.

These functions change the `ClusterState` that they are given.
"""

from __future__ import annotations

from typing import Final

from tidemark.core.cluster import (
    MAX_BROKERS,
    MAX_COLLECTORS,
    MAX_PURGATORY_SAMPLES,
    BrokerSeen,
    ClusterState,
    CollectorClock,
    NodeState,
    PurgatorySample,
)
from tidemark.core.events import CONTROLLED_SHUTDOWN, OK, REFUSED, BrokerAnswer, BrokerState, Pass

# Collectors that share a cluster take turns: another one's pass within this part of a period
# counts as the same moment.
TURN: Final = 0.75
# A broker that came back keeps its grace this long, to fetch its way into the in-sync sets.
RETURN_SECONDS: Final = 60.0
# After this many passes of an older process without one of the newer process, the newer one is
# gone: its clock was ahead.
SET_BACK_PASSES: Final = 30
PURGATORY_SECONDS: Final = 10.0
_NODE_FIELDS: Final = (
    "fenced",
    "in_controlled_shutdown",
    "is_voter",
    "metadata_log_end_offset",
    "metadata_lag_ms",
    "offline_log_dirs",
)


def advance_clock(cluster: ClusterState, name: str, collector_epoch: int, event: Pass) -> bool:
    """Moves a collector's clock. False for a repeated pass, or one of a replaced process."""
    clock = cluster.collectors.get(name)
    if clock is not None and clock.collector_epoch > collector_epoch:
        clock.older_at = max(clock.older_at, event.ended_at)
        clock.older_passes += 1
        if clock.older_passes < SET_BACK_PASSES:
            return False
    elif clock is not None and (clock.collector_epoch, clock.pass_number) >= (
        collector_epoch,
        event.number,
    ):
        return False
    fresh = CollectorClock(
        collector_epoch,
        event.number,
        event.ended_at,
        event.monotonic,
        event.period_ms,
        event.shard,
        event.ended_at,
    )
    is_new_process = clock is None or clock.collector_epoch != collector_epoch
    if clock is not None and not is_new_process:
        fresh.began_at, fresh.older_at = clock.began_at, clock.older_at
        fresh.refused, fresh.refused_pass = clock.refused, clock.refused_pass
        fresh.contested, fresh.contested_from = clock.contested, clock.contested_from
    for answer in event.brokers:
        if answer.preferred is not None and answer.preferred_led is not None:
            fresh.preferred[answer.broker] = (answer.preferred, answer.preferred_led)
    cluster.collectors[name] = fresh
    _measure_silence(cluster, name, is_new_process=is_new_process)
    fresh.contested = fresh.contested + 1 if _is_contested(cluster, name, fresh) else 0
    if fresh.contested == 1:
        fresh.contested_from = event.monotonic
    if len(cluster.collectors) > MAX_COLLECTORS:
        oldest = min(cluster.collectors, key=lambda known: cluster.collectors[known].ended_at)
        del cluster.collectors[oldest]
        for other in cluster.collectors.values():
            other.silent_from.pop(oldest, None)
    return True


def _measure_silence(cluster: ClusterState, name: str, *, is_new_process: bool) -> None:
    """At a pass of a collector: begins to measure the silence of those that passed before it."""
    monotonic = cluster.collectors[name].monotonic
    for rival, other in cluster.collectors.items():
        if rival != name and (is_new_process or name not in other.silent_from):
            other.silent_from[name] = monotonic


def _is_contested(cluster: ClusterState, name: str, clock: CollectorClock) -> bool:
    """Whether a newer process with another name is alive."""
    return any(
        other.collector_epoch > clock.collector_epoch and not cluster.is_silent(rival, name)
        for rival, other in cluster.collectors.items()
        if rival != name
    )


def apply_pass(cluster: ClusterState, event: Pass) -> None:
    """What a pass reports of the cluster itself."""
    cluster.cluster_id = event.cluster_id or cluster.cluster_id
    cluster.partitions = cluster.partitions if event.partitions is None else event.partitions
    cluster.quorum_leader, cluster.quorum_epoch = event.quorum_leader, event.quorum_epoch
    silent = bool(event.brokers) and not any(answer.outcome == OK for answer in event.brokers)
    blind = event.missed == "all" or silent
    cluster.blind_passes = cluster.blind_passes + 1 if blind else 0


def is_due(cluster: ClusterState, name: str, event: Pass) -> bool:
    """Whether to judge the cluster at a pass; if so, notes that it was.

    Collectors of its shares take turns, so that one moment does not count once for each of them.
    """
    since_ms = abs(event.ended_at - cluster.judged_at) * 1000.0
    if name != cluster.judged_by and since_ms < TURN * event.period_ms:
        return False
    cluster.judged_at, cluster.judged_by = event.ended_at, name
    return True


def note_refused(cluster: ClusterState, name: str, collector_epoch: int, pass_number: int) -> None:
    """Counts a pass with events of a collector that does not own the partition, once per pass."""
    clock = cluster.collectors.get(name)
    if clock is None or clock.collector_epoch != collector_epoch:
        return
    if pass_number > max(clock.pass_number, clock.refused_pass):
        clock.refused, clock.refused_pass = clock.refused + 1, pass_number


def apply_broker(cluster: ClusterState, event: BrokerState) -> None:
    """A `broker` event; fields that it leaves out stay as they were. An older event is ignored."""
    known = cluster.nodes.get(event.broker)
    if known is None:
        if len(cluster.nodes) >= MAX_BROKERS:
            return
        known = cluster.nodes[event.broker] = NodeState(event.observed_at)
    elif event.observed_at < known.observed_at:
        return
    known.observed_at = event.observed_at
    if event.incarnation is not None and event.incarnation != known.incarnation:
        if known.incarnation is not None:
            known.restarted_at = event.observed_at
        known.incarnation = event.incarnation
    for name in _NODE_FIELDS:
        value = getattr(event, name)
        if value is not None:
            setattr(known, name, value)
    if event.produce_purgatory is None and event.fetch_purgatory is None:
        return
    samples = known.purgatories
    if not samples or event.observed_at - samples[-1].at >= PURGATORY_SECONDS:
        sample = PurgatorySample(event.observed_at, event.produce_purgatory, event.fetch_purgatory)
        known.purgatories = [*samples, sample][-MAX_PURGATORY_SAMPLES:]


def newly_refusing(cluster: ClusterState, answers: list[BrokerAnswer]) -> list[int]:
    """Brokers that refuse connections in this pass and did not in the last one.

    They are candidates for restart grace. A group knows its own partitions only; the collector's
    count says whether a broker was in sync with any other.
    """
    return [
        answer.broker
        for answer in answers
        if (
            answer.outcome == CONTROLLED_SHUTDOWN
            or (answer.outcome == REFUSED and not answer.in_sync)
        )
        and (seen := cluster.brokers.get(answer.broker)) is not None
        and seen.outcome not in (REFUSED, CONTROLLED_SHUTDOWN)
    ]


def apply_answers(cluster: ClusterState, answers: list[BrokerAnswer], at: float) -> None:
    """How each broker answered. Brokers that the pass does not name are forgotten."""
    known = cluster.brokers
    cluster.brokers = {}
    for answer in answers:
        seen = known.get(answer.broker)
        if seen is None:
            seen = BrokerSeen(answer.outcome, at, passes=0)
        if seen.outcome == answer.outcome:
            seen.passes += 1
        else:
            if answer.outcome == OK:
                seen.grace_until = min(seen.grace_until, at + RETURN_SECONDS)
            elif seen.outcome == OK:
                # A new absence needs a new grace.
                seen.grace_until = 0.0
            seen.outcome, seen.since, seen.passes = answer.outcome, at, 1
        cluster.brokers[answer.broker] = seen


def grant_grace(cluster: ClusterState, brokers: list[int], at: float, grace_ms: float) -> None:
    """Grants restart grace. A second broker that does not answer ends the grace of all."""
    for broker in brokers:
        cluster.brokers[broker].grace_until = at + grace_ms / 1000.0
    if sum(seen.outcome != OK for seen in cluster.brokers.values()) > 1:
        for seen in cluster.brokers.values():
            seen.grace_until = 0.0

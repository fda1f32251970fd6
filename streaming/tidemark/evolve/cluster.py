"""The state of a cluster after a pass, or after an event about one of its brokers.

These functions change the `ClusterState` that they are given.
"""

from __future__ import annotations

from typing import Final

from tidemark.core.cluster import (
    LINK_SECONDS,
    MAX_BROKERS,
    MAX_COLLECTORS,
    MAX_PURGATORY_SAMPLES,
    MAX_QUORUM_EPOCHS,
    BrokerStop,
    CheckpointFiles,
    ClusterState,
    CollectorClock,
    NodeState,
    PurgatorySample,
)
from tidemark.core.events import MAX_LINKS, OK, BrokerState, Pass
from tidemark.evolve.jmx import apply_figures

# Collectors that share a cluster take turns: another one's pass within this part of a period
# counts as the same moment.
TURN: Final = 0.75
# After this many passes of an older process without one of the newer process, the newer one is
# gone: its clock was ahead.
SET_BACK_PASSES: Final = 30
# How far a record may be ahead of its collector's newest pass: records of some passes may be lost,
# which takes the time of these passes.
PASSES_AHEAD: Final = 100
PASSES_PER_SECOND: Final = 10
# A little less than the default time between two reads of JMX.
PURGATORY_SECONDS: Final = 9.0
# Elections of the metadata quorum are counted over this time; its epoch is kept so often.
QUORUM_WINDOW_SECONDS: Final = 600.0
QUORUM_EPOCH_SECONDS: Final = 20.0
# The fields of a node that replace what is known, by the source that reports them: each group has
# an order of its own.
FIELD_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "registration": ("incarnation", "fenced", "in_controlled_shutdown"),
    "quorum": ("is_voter", "metadata_log_end_offset", "metadata_lag_ms"),
    "log_directories": ("offline_log_dirs", "log_directories"),
    "configuration": ("configuration",),
    "jmx": ("produce_purgatory", "fetch_purgatory", "elect_leader_purgatory", "jmx"),
}
# What apply_broker handles itself.
_SPECIAL: Final = frozenset({"incarnation", *FIELD_GROUPS["jmx"]})


def advance_clock(
    cluster: ClusterState, name: str, collector_epoch: int, event: Pass, stored_at: float = 0.0
) -> bool:
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
        fresh.in_sync = clock.in_sync
        fresh.blind_passes = clock.blind_passes
    fresh.blind_passes = fresh.blind_passes + 1 if _is_blind(event) else 0
    fresh.partitions, fresh.stored_at = event.partitions, stored_at
    fresh.links = _recent_links({} if is_new_process or clock is None else clock.links, event)
    for answer in event.brokers:
        if answer.preferred is not None and answer.preferred_led is not None:
            fresh.preferred[answer.broker] = (answer.preferred, answer.preferred_led)
        if answer.led_shrinks is not None:
            of_absent = answer.led_shrinks_of_absent or 0
            fresh.led_shrinks[answer.broker] = (answer.led_shrinks, of_absent)
    cluster.collectors[name], cluster.passed_by = fresh, name
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


def has_reached(clock: CollectorClock, pass_number: int, stored_at: float) -> bool:
    """Whether a collector can have begun a pass when Kafka stored its record.

    One that it has not reached would make all its passes up to there old ones. It does at most one
    in each period, and the period may become shorter.
    """
    passes = PASSES_AHEAD + PASSES_PER_SECOND * max(0.0, stored_at - clock.stored_at)
    return clock.stored_at == 0.0 or pass_number <= clock.pass_number + passes


def _recent_links(
    known: dict[tuple[int, int], tuple[float, int, float]], event: Pass
) -> dict[tuple[int, int], tuple[float, int, float]]:
    now = event.ended_at
    recent = {pair: seen for pair, seen in known.items() if 0.0 <= now - seen[0] <= LINK_SECONDS}
    for leader, follower, moving, late in event.links or ():
        pair = (leader, follower)
        _, _, late_at = recent.get(pair, (0.0, 0, 0.0))
        if pair in recent or len(recent) < MAX_LINKS:
            recent[pair] = (now, moving, now if 2 * late > moving else late_at)
    return recent


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
    if event.cluster_id is not None and cluster.cluster_id not in (None, event.cluster_id):
        cluster.former_cluster_id = cluster.cluster_id
        cluster.cluster_changed_at = event.ended_at
    cluster.cluster_id = event.cluster_id or cluster.cluster_id
    counted = _partitions(cluster, event)
    cluster.partitions = cluster.partitions if counted is None else counted
    cluster.quorum_leader, cluster.quorum_epoch = event.quorum_leader, event.quorum_epoch
    _note_quorum_epoch(cluster, event)
    cluster.reassigning = event.reassigning
    cluster.blind_passes = cluster.blind_passes + 1 if _is_blind(event) else 0


def _note_quorum_epoch(cluster: ClusterState, event: Pass) -> None:
    """Keeps what the epoch was at the beginning of the window, and every so often since."""
    now, known = event.ended_at, cluster.quorum_epochs
    if event.quorum_epoch is None or (known and now - known[-1][0] < QUORUM_EPOCH_SECONDS):
        return
    recent = [seen for seen in known if now - seen[0] <= QUORUM_WINDOW_SECONDS]
    cluster.quorum_epochs = [*recent, (now, event.quorum_epoch)][-MAX_QUORUM_EPOCHS:]


def _is_blind(event: Pass) -> bool:
    """Whether it missed the whole group, or no broker answered."""
    silent = bool(event.brokers) and not any(answer.outcome == OK for answer in event.brokers)
    return event.missed == "all" or silent


def _partitions(cluster: ClusterState, event: Pass) -> int | None:
    """Of all shares, or of the pass where no live collector counts its own."""
    shares = cluster.live_shares(cluster.passed_by).values()
    counted = [clock.partitions for clock in shares if clock.partitions is not None]
    return sum(counted) if counted else event.partitions


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
    """A `broker` event; fields that it leaves out stay as they were.

    Of each group of fields, an older event is ignored.
    """
    if event.checkpoint_modified_at is not None or event.stopped_clean is not None:
        _apply_log_directories(cluster, event)
        return
    known = _node(cluster, event.broker, event.observed_at)
    if known is None:
        return
    at = event.observed_at
    known.observed_at = max(known.observed_at, at)
    for group, names in FIELD_GROUPS.items():
        values = {name: v for name in names if (v := getattr(event, name)) is not None}
        if not values or at < known.reported_at.get(group, 0.0):
            continue
        known.reported_at[group] = at
        if group == "registration":
            _apply_registration(known, event)
        for name in values.keys() - _SPECIAL:
            setattr(known, name, values[name])
        if event.log_directories is not None and group == "log_directories":
            known.log_directories_at = at
        if group == "configuration":
            known.configuration_at = at
        if group == "jmx":
            _apply_jmx(cluster, known, event)


def _apply_jmx(cluster: ClusterState, known: NodeState, event: BrokerState) -> None:
    apply_figures(cluster, known, event)
    if event.produce_purgatory is None and event.fetch_purgatory is None:
        return
    samples = known.purgatories
    if not samples or event.observed_at - samples[-1].at >= PURGATORY_SECONDS:
        sample = PurgatorySample(event.observed_at, event.produce_purgatory, event.fetch_purgatory)
        known.purgatories = [*samples, sample][-MAX_PURGATORY_SAMPLES:]


def _node(cluster: ClusterState, broker: int, observed_at: float) -> NodeState | None:
    """What is known of a node; None where MAX_BROKERS others are."""
    known = cluster.nodes.get(broker)
    if known is None and len(cluster.nodes) < MAX_BROKERS:
        known = cluster.nodes[broker] = NodeState(observed_at)
    return known


def _apply_log_directories(cluster: ClusterState, event: BrokerState) -> None:
    """What a reader on the broker's host found. It has another clock than the collectors.

    So it neither moves their times nor is ordered by them: the newest record counts.
    """
    if event.cluster_id is not None and cluster.cluster_id not in (None, event.cluster_id):
        return
    known = _node(cluster, event.broker, 0.0)
    if known is None:
        return
    if event.checkpoint_modified_at is not None:
        known.checkpoint = CheckpointFiles(
            event.checkpoint_modified_at, event.observed_at, event.checkpoint_directory
        )
    if event.stopped_clean is not None:
        at = event.observed_at if event.stopped_at is None else event.stopped_at
        known.last_stop = BrokerStop(event.stopped_clean, at)


def _apply_registration(known: NodeState, event: BrokerState) -> None:
    """When the process started again, and when its controlled shutdown began."""
    if event.incarnation is not None and event.incarnation != known.incarnation:
        if known.incarnation is not None:
            known.restarted_at = event.observed_at
        known.incarnation = event.incarnation
    if event.in_controlled_shutdown and not known.in_controlled_shutdown:
        known.stopping_since = event.observed_at
    elif event.in_controlled_shutdown is False:
        known.stopping_since = None

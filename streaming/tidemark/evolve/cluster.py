"""The state of a cluster after a pass, or after an event about one of its brokers.

These functions change the `ClusterState` that they are given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidemark.core.cluster import (
    MAX_BROKERS,
    MAX_COLLECTORS,
    MAX_PURGATORY_SAMPLES,
    BrokerSeen,
    BrokerStop,
    CheckpointFiles,
    ClusterState,
    CollectorClock,
    NodeState,
    PurgatorySample,
)
from tidemark.core.events import (
    CONTROLLED_SHUTDOWN,
    OK,
    REFUSED,
    UNREACHABLE,
    BrokerAnswer,
    BrokerState,
    Pass,
)
from tidemark.evolve.jmx import apply_figures

# Collectors that share a cluster take turns: another one's pass within this part of a period
# counts as the same moment.
TURN: Final = 0.75
# A broker that came back keeps its grace this long, or as long as it was absent, to fetch its way
# into the in-sync sets.
RETURN_SECONDS: Final = 60.0
# What a pause of a process leaves behind is over after this time.
PAUSE_SECONDS: Final = 10.0
# From the first pass without an answer to the one that reads what the controller did before it. A
# session lasts longer after its last heartbeat (6 s, with one every 2 s, and more since 2.5).
STOP_SECONDS: Final = 3.0
# How long a controlled shutdown may take, from its record to the end of the process.
CONTROLLED_SHUTDOWN_SECONDS: Final = 300.0
# How long a broker that has just started may leave requests without an answer.
SLOW_SECONDS: Final = 5.0
_CLOSED: Final = (REFUSED, UNREACHABLE)
# After this many passes of an older process without one of the newer process, the newer one is
# gone: its clock was ahead.
SET_BACK_PASSES: Final = 30
# A little less than the default time between two reads of JMX.
PURGATORY_SECONDS: Final = 9.0
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
        fresh.in_sync = clock.in_sync
        fresh.blind_passes = clock.blind_passes
    fresh.blind_passes = fresh.blind_passes + 1 if _is_blind(event) else 0
    fresh.partitions = event.partitions
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
    counted = _partitions(cluster, event)
    cluster.partitions = cluster.partitions if counted is None else counted
    cluster.quorum_leader, cluster.quorum_epoch = event.quorum_leader, event.quorum_epoch
    cluster.reassigning = event.reassigning
    cluster.blind_passes = cluster.blind_passes + 1 if _is_blind(event) else 0


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
    """What is known of a node; None where there is no room for another one."""
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


def stopping_in_order(cluster: ClusterState, at: float) -> dict[int, bool]:
    """Brokers that closed their port just now, after they had handed over what they served.

    Where the metadata log is read, also those with a recorded controlled shutdown.

    They are candidates for restart grace. The controller takes a broker that dies out of the
    in-sync sets only when its session has ended, seconds after its port is closed. False: no
    collector counts what it serves, so that a group can judge by its own partitions only.
    """
    stopping = {}
    for broker, seen in cluster.brokers.items():
        if not seen.answered_at or seen.in_order:
            continue
        is_counted = cluster.serving_of(broker) is not None
        handed_over = at == seen.since
        if is_counted:
            read_by = seen.absent_since + STOP_SECONDS
            # One that dies before it serves again had nothing to hand over.
            handed_over = seen.idle_since is not None and (
                seen.returned_at <= seen.idle_since <= read_by
            )
        recorded = not handed_over and _is_recorded(cluster.nodes.get(broker), seen)
        is_stopping = handed_over or recorded
        if seen.outcome == CONTROLLED_SHUTDOWN or (seen.outcome in _CLOSED and is_stopping):
            is_counted = is_counted and not recorded
            stopping[broker] = is_counted and seen.outcome != CONTROLLED_SHUTDOWN
    return stopping


def _is_recorded(node: NodeState | None, seen: BrokerSeen) -> bool:
    """Whether the absence began in a controlled shutdown, by the metadata log.

    Only once it has handed over what this group sees: it may be killed in the middle.
    """
    since = None if node is None else node.stopping_since
    if since is None or seen.returned_at > since:
        return False
    return -STOP_SECONDS <= seen.absent_since - since <= CONTROLLED_SHUTDOWN_SECONDS


def apply_answers(cluster: ClusterState, answers: list[BrokerAnswer], at: float) -> None:
    """How each broker answered. Brokers that the pass does not name are forgotten."""
    known = cluster.brokers
    cluster.brokers = {}
    any_answers = any(answer.outcome == OK for answer in answers)
    for answer in answers:
        seen = known.get(answer.broker)
        if seen is None:
            seen = BrokerSeen(answer.outcome, at, passes=0, absent_since=at)
        if answer.outcome == OK:
            _note_answer(seen, at)
        else:
            _note_absence(seen, answer.outcome, at)
            if any_answers and at >= seen.grace_until:
                seen.failed_at = at
        if seen.outcome == answer.outcome:
            seen.passes += 1
        else:
            seen.outcome, seen.since, seen.passes = answer.outcome, at, 1
        seen.rack = answer.rack
        cluster.brokers[answer.broker] = seen


def _note_answer(seen: BrokerSeen, at: float) -> None:
    if seen.outcome != OK:
        absent = at - seen.absent_since if seen.absent_since else 0.0
        seen.returned_at = at
        seen.grace_until = min(seen.grace_until, at + max(RETURN_SECONDS, absent))
        if seen.failed_at > seen.answered_at:
            seen.returning_until = at + min(max(absent, PAUSE_SECONDS), RETURN_SECONDS)
    seen.answered_at = at


def _note_absence(seen: BrokerSeen, outcome: str, at: float) -> None:
    if seen.outcome == OK:
        seen.absent_since, seen.in_order, seen.port_closed = at, False, False
    seen.port_closed |= outcome == REFUSED
    # The state of an older version does not say how the absence began.
    is_other = bool(seen.absent_since) and not seen.in_order
    if is_other and (outcome in _CLOSED or at - seen.absent_since >= SLOW_SECONDS):
        # A new absence needs a new grace. A broker that is slow after its start keeps it.
        seen.grace_until = 0.0


def grant_grace(cluster: ClusterState, brokers: Iterable[int], at: float, grace_ms: float) -> None:
    """Grants restart grace: what these brokers left, they left in a controlled shutdown.

    Where no collector counts what a broker serves, a second absent broker ends the grace.
    """
    for broker in brokers:
        seen = cluster.brokers[broker]
        seen.grace_until, seen.failed_at, seen.in_order = at + grace_ms / 1000.0, 0.0, True
        if seen.departures and not seen.departures[-1].has_returned:
            seen.departures[-1].orderly = True
    if sum(seen.outcome != OK for seen in cluster.brokers.values()) > 1:
        for seen in cluster.brokers.values():
            if seen.in_sync is None:
                seen.grace_until, seen.in_order = 0.0, False
                if seen.outcome != OK:
                    seen.failed_at = at

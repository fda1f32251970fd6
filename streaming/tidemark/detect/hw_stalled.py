"""HW_STALLED: records wait above a high watermark that does not move.

Names the replica that holds it. Info while another alert has the cause: UNDER_MIN_ISR, or
BROKER_DOWN of the broker that holds it, which Kafka removes from the in-sync set. Info at first
during a reassignment, which elects leaders and shares its throttle with them.
"""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.core.text import counted
from tidemark.core.tracked_alert import tracked
from tidemark.detect.default_thresholds import CAUGHT_UP_PASSES, REMOVED_MS
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import (
    answered,
    followers,
    is_below_minimum,
    is_in_sync,
    is_reassigned,
    shows_leader,
    uncommitted,
)
from tidemark.detect.suspect import describe_missing, suspect_of

ID = "HW_STALLED"
# replica.lag.time.max.ms by default: for so long a leader waits for a replica that was caught up.
CAUGHT_UP_MS: Final = 30_000.0
# When a silent replica has left the in-sync set, the high watermark moves within some fetch rounds.
LEFT_SECONDS: Final = 10.0


# The suspected cause, what holds the high watermark, and the replica that the leader waits for.
_Holder = tuple[int | None, str, int | None]


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Both the stall and the wait must have lasted. A high watermark that moves late is lag."""
    limit_ms = context.thresholds.high_watermark_stalled_ms
    still_ms = (context.now - state.high_watermark_moved_at) * 1000.0
    high_watermark, end = state.high_watermark, state.leader_log_end_offset
    if state.leader is None or high_watermark is None or end is None or still_ms < limit_ms:
        return
    leader = state.replica(state.leader)
    log_start = (leader.log_start_offset if leader is not None else None) or 0
    window = uncommitted(state, context.now)
    records = end - max(high_watermark, log_start)
    if window is None or window[1] < limit_ms or records <= 0:
        return
    suspect, why, held_by = _find(state, context, log_start)
    passes = is_reassigned(state, context.now) or _is_failover(state, held_by, context)
    is_short = context.held_ms(ID, None) < REMOVED_MS
    explained = is_below_minimum(state) or (passes and is_short)
    yield Condition(
        severity=context.severity(ID, None, explained=explained),
        broker=suspect,
        hold_ms=context.while_churning(REMOVED_MS, state.assigned, suspect),
        description=f"The high watermark of {context.name} has been {high_watermark} for "
        f"{still_ms / 1000:.1f} s with {counted(records, 'record')} above it: {why}.",
        evidence={
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "high_watermark": high_watermark,
            "leader_log_end_offset": end,
            "uncommitted_records": records,
            "uncommitted_ms": round(window[1]),
            "in_sync_replicas": state.in_sync_replicas or [],
            "held_by": held_by,
            "log_ends": _log_ends(state, context),
        },
    )


def _is_failover(state: PartitionState, holder: int | None, context: Context) -> bool:
    """Whether an absent broker holds it, or has just left the in-sync set."""
    cluster, now = context.cluster, context.now
    if holder is not None and cluster.is_absent(holder, now):
        return True
    changed = bool(state.isr_history) and now - state.isr_history[-1].at < LEFT_SECONDS
    return changed and any(cluster.is_absent(broker, now) for broker in state.missing)


def _find(state: PartitionState, context: Context, log_start: int) -> _Holder:
    leader, high_watermark = state.leader, state.high_watermark or 0
    if high_watermark < log_start:
        return leader, f"that of leader {leader} is broken, below its log start {log_start}", None
    if is_below_minimum(state):
        members, minimum = state.in_sync_replicas or [], state.effective_min_in_sync_replicas
        why = f"the in-sync set {members} is below min ISR {minimum}, so it cannot move"
        return describe_missing(state, context).broker, why, None
    waits_for = [r for r in followers(state) if _may_hold(state, r, context)]
    if not waits_for:
        return None, "the replica that holds it is not known", None
    names = " or ".join(f"broker {replica.broker}" for replica in waits_for)
    # A new leader that does not know yet what is committed reports its log end offset only once.
    before = state.leader_end_before
    needed = state.leader_log_end_offset if before is None else before
    if all(r.error is None and (r.log_end_offset or 0) >= (needed or 0) for r in waits_for):
        why = f"leader {leader} has not seen the next fetch of {names}, or does not advance it"
        return None, why, None
    holding = [r for r in waits_for if r.error or not _has_fetched(state, r, context)]
    if not holding:
        why = f"leader {leader} does not advance it, although {names} fetched above it"
        return leader, why, None
    # The last answer of a silent one is a lower bound. It comes first where the ends are equal.
    lowest = min(holding, key=lambda r: (r.log_end_offset or 0, r.error is None))
    suspect = suspect_of(state, lowest.broker, context)
    # The suspected cause first: it is the broker to look at.
    why = f"{suspect.why}. Broker" if suspect.why else "broker"
    return suspect.broker, f"{why} {lowest.broker} holds it", lowest.broker


def _may_hold(state: PartitionState, replica: ReplicaState, context: Context) -> bool:
    """Whether the leader waits for it, in sync or about to join (maybeIncrementLeaderHW).

    One that is not in sync has been caught up lately if it has a record above the high watermark.
    """
    if is_in_sync(state, replica.broker):
        return replica.error is not None or replica.log_end_offset is not None
    end, high_watermark = replica.log_end_offset, state.high_watermark
    if not answered(state, replica) or end is None or high_watermark is None:
        return False
    waits_ms = age_ms(state.offset_history, end, context.now) or 0.0
    return end >= high_watermark and waits_ms < CAUGHT_UP_MS


def _log_ends(state: PartitionState, context: Context) -> dict[str, list[int | None]]:
    """By broker, the log ends that were seen first and last with this high watermark."""
    known = _known_ends(state, context)
    return {
        str(r.broker): [known.get(str(r.broker), [r.log_end_offset])[0], r.log_end_offset]
        for r in followers(state)
    }


def _known_ends(state: PartitionState, context: Context) -> dict[str, list[int | None]]:
    """The same of the passes before."""
    alert = tracked(context.alerts, ID, None)
    if alert is None or alert.evidence.get("high_watermark") != state.high_watermark:
        return {}
    found: dict[str, list[int | None]] = alert.evidence["log_ends"]
    return found


def _has_fetched(state: PartitionState, replica: ReplicaState, context: Context) -> bool:
    """Whether its log rose while it ended above the high watermark, before the newest pass.

    Then it fetched from there, and the leader knows what it has. How far it is above shows nothing:
    one response may bring a late follower any number of records. Nor does the newest pass, which
    reads the high watermark before the log ends.
    """
    first, last = _known_ends(state, context).get(str(replica.broker), [None, None])
    return first is not None and last is not None and last > first > (state.high_watermark or 0)


DETECTOR = Detector(
    ID,
    "state",
    "The high watermark does not move while records wait above it.",
    severities=("warning", "info"),
    wakes_on=activity.LAG,
    state=evaluate,
    waits_ms=lambda thresholds: thresholds.high_watermark_stalled_ms,
    can_judge=shows_leader,
    clear_passes=CAUGHT_UP_PASSES,
)

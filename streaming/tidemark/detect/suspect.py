"""Which broker is the suspected cause where a follower is missing or late: the label, and why.

Every detector that reports followers asks here, so that they name the same broker. A broker is
named with evidence only: a healthy follower of a slow leader is no suspect.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.assess.blame import Blame, blame
from tidemark.core.offset_history import age_ms
from tidemark.core.partition import PartitionState, ReplicaState
from tidemark.detect.default_thresholds import REMOVED_MS
from tidemark.detect.detector import Context
from tidemark.detect.measures import answered, describe_replicas, followers, is_in_sync

# A leader adds a follower that has every record within a few fetch rounds.
JOIN_SECONDS: Final = 10.0
# Under load the newest records are on their way to it: two fetch rounds.
CAUGHT_UP_MS: Final = 1_000.0


class Suspect(NamedTuple):
    """The broker, for the label, and the evidence, a sentence without its full stop."""

    broker: int | None = None
    why: str = ""


def describe_missing(state: PartitionState, context: Context) -> Suspect:
    """All missing replicas of a partition: the first suspected cause, and what to say of each."""
    suspects = {broker: suspect_of(state, broker, context) for broker in state.missing}
    named = (suspect.broker for suspect in suspects.values() if suspect.broker is not None)
    explained = [broker for broker, suspect in suspects.items() if suspect.why]
    why = dict.fromkeys(suspect.why for suspect in suspects.values() if suspect.why)
    described = describe_replicas(state, state.missing, explained)
    return Suspect(next(named, None), ". ".join([described, *why]))


def suspect_of(state: PartitionState, broker: int, context: Context) -> Suspect:
    """The suspected cause of one follower's absence or lag."""
    replica = state.replica(broker)
    leader, in_sync = state.leader, is_in_sync(state, broker)
    if replica is None or replica.error is not None:
        if not any(answered(state, each) for each in state.replicas):
            # The collector is cut off, or every broker is: silence says nothing of one.
            return Suspect()
        silent_since = None if replica is None else replica.sampled_at
        is_overdue = in_sync and leader is not None and silent_since is not None
        if is_overdue and (context.now - (silent_since or 0.0)) * 1000.0 > REMOVED_MS:
            return Suspect(
                broker,
                f"Kafka should have removed broker {broker} from the in-sync set long ago: check "
                f"leader {leader} too, and its connection to the controller",
            )
        return Suspect(broker)
    if leader is None:
        return Suspect()
    if not in_sync and _is_ready(state, replica, context):
        return Suspect(
            leader,
            f"Broker {broker} has every record that is older than a second, and leader {leader} "
            f"does not add it: check broker {leader} and its connection to the controller",
        )
    found = blame(context.cluster.links, leader, broker, _beside(state, broker, context))
    if not in_sync:
        throttle = _throttle(state, broker, context, found)
        if throttle is not None:
            return throttle
        # What drove it out is the cause until it is in sync again: one that was stopped catches up.
        shrink = next((s for s in reversed(state.shrinks) if s.broker == broker), None)
        named = None if found is None else found.broker
        if shrink is not None and shrink.suspected not in (None, named):
            since_ms = 1000.0 * (context.cluster.seen(broker).returned_at - shrink.at)
            was_away = shrink.suspect is None and since_ms >= -REMOVED_MS
            if was_away or named is None:
                return Suspect(shrink.suspected)
    return Suspect() if found is None else Suspect(found.broker, found.evidence)


def _is_ready(state: PartitionState, replica: ReplicaState, context: Context) -> bool:
    """Whether it is caught up, so that its leader could add it, long after the set changed."""
    end, node = replica.log_end_offset, context.cluster.nodes.get(replica.broker)
    changed_at = state.isr_history[-1].at if state.isr_history else 0.0
    return (
        end is not None
        and answered(state, replica)
        and replica.broker in state.settled
        and state.leader_end_before is not None
        and (age_ms(state.offset_history, end, context.now) or 0.0) < CAUGHT_UP_MS
        and context.now - changed_at >= JOIN_SECONDS
        and not (node is not None and (node.fenced or node.in_controlled_shutdown))
        and not context.in_grace(replica.broker)
        and not context.cluster.is_absent(replica.broker, context.now)
    )


def _beside(state: PartitionState, broker: int, context: Context) -> dict[int, bool]:
    """The partition's other followers that answer, and whether they are late, as this one is."""
    late = {
        follower.broker: (age_ms(state.offset_history, follower.log_end_offset, context.now) or 0.0)
        > context.thresholds.lag_ms
        for follower in followers(state)
        if answered(state, follower) and follower.log_end_offset is not None
    }
    return late if late.pop(broker, False) else {}


def _throttle(
    state: PartitionState, broker: int, context: Context, found: Blame | None
) -> Suspect | None:
    """A throttle that may hold the follower back. Kafka throttles no replica that is in sync."""
    for throttled, side in ((state.leader, "leader"), (broker, "follower")):
        node = context.cluster.nodes.get(throttled if throttled is not None else -1)
        rates = node.configuration.replication_throttles if node and node.configuration else None
        is_listed = throttled in (state.throttled_replicas or [])
        contradicts = found is not None and found.cause not in (side, "link")
        if rates and side in rates and is_listed and not contradicts:
            name = f"{side}.replication.throttled.rate"
            return Suspect(
                throttled,
                f"Broker {throttled} has {name}={rates[side]}, which throttles this replica. "
                'To remove it: kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --alter '
                f"--entity-type brokers --entity-name {throttled} --delete-config {name}",
            )
    return None

"""FOLLOWER_UNREACHABLE: a broker does not answer for a replica that counts as in sync.

It answers otherwise. A broker that does not answer at all is one fault: BROKER_DOWN.
"""

from __future__ import annotations

from tidemark.core import activity
from tidemark.core.events import CONTROLLED_SHUTDOWN, REFUSED, TIMED_OUT, UNREACHABLE
from tidemark.core.partition import PartitionState
from tidemark.core.tracked_alert import is_firing
from tidemark.detect.detector import Condition, Conditions, Context, Detector
from tidemark.detect.measures import followers, is_in_sync

ID = "FOLLOWER_UNREACHABLE"
_NO_CONNECTION = frozenset({REFUSED, TIMED_OUT, UNREACHABLE, CONTROLLED_SHUTDOWN})


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """Begins while the follower is in sync, lasts while it is silent."""
    for follower in followers(state):
        broker, error = follower.broker, follower.error
        if error not in _NO_CONNECTION or not context.cluster.seen(broker).answers:
            continue
        in_sync = is_in_sync(state, broker)
        if not in_sync and not is_firing(context.alerts, ID, broker):
            continue
        silent = "since the collector started"
        if follower.sampled_at is not None:
            silent = f"for {max(0.0, context.now - follower.sampled_at):.1f} s"
        yield Condition(
            severity="warning",
            subject=broker,
            broker=broker,
            description=f"Broker {broker} has not answered for its replica of {context.name} "
            f"{silent} ({error}); it answers other requests. The replica is "
            f"{'still' if in_sync else 'no longer'} in the in-sync set.",
            evidence={
                "outcome": error,
                "silent_passes": follower.silent_passes,
                "last_answer_at": follower.sampled_at,
                "in_sync_replicas": state.in_sync_replicas,
            },
        )


DETECTOR = Detector(
    ID,
    "state",
    "A follower does not answer although it counts as in sync.",
    severities=("warning",),
    wakes_on=activity.UNANSWERED,
    state=evaluate,
)

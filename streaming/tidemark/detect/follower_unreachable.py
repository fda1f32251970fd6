"""FOLLOWER_UNREACHABLE: a broker does not answer while the metadata counts its replica as in sync."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.core.events import CONTROLLED_SHUTDOWN, REFUSED, TIMED_OUT, UNREACHABLE
from tidemark.core.partition import PartitionState
from tidemark.detect.context import Context, followers, is_open
from tidemark.detect.detector import Condition, Detector

ID = "FOLLOWER_UNREACHABLE"
_SILENCE = frozenset({REFUSED, TIMED_OUT, UNREACHABLE, CONTROLLED_SHUTDOWN})


def evaluate(state: PartitionState, context: Context) -> Iterator[Condition]:
    """Starts while the follower is in sync (a broker that left in good order is no news), goes on while it is silent."""
    for follower in followers(state):
        if (
            follower.error not in _SILENCE
            or not context.others_answer(follower.broker)
            or context.in_grace(follower.broker)
        ):
            continue
        in_sync = follower.broker in (state.in_sync_replicas or [])
        if not in_sync and not is_open(state, ID, follower.broker):
            continue
        silent = (
            "ever"
            if follower.sampled_at is None
            else f"for {max(0.0, context.now - follower.sampled_at):.1f} s"
        )
        yield Condition(
            severity="warning",
            subject=follower.broker,
            broker=follower.broker,
            description=f"Broker {follower.broker} has not answered {silent} ({follower.error}); its replica of "
            f"{context.topic}-{context.partition} is {'still' if in_sync else 'no longer'} in the in-sync set.",
            evidence={
                "outcome": follower.error,
                "silent_passes": follower.silent_passes,
                "last_answer_at": follower.sampled_at,
                "in_sync_replicas": state.in_sync_replicas,
            },
        )


FOLLOWER_UNREACHABLE = Detector(
    ID, "state", "A follower does not answer although it counts as in sync.", state=evaluate
)

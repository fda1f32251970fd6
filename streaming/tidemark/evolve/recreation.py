"""Was a topic deleted and created again under the same name?

The topic id decides where brokers have one (2.8 and later). A collector may still read the new logs
under the metadata of the old topic, because ListOffsets and Fetch up to version 12 ask by name. An
observation that may mix the two is held: it counts once metadata that was read after it still shows
the same topic. Without topic ids, a leader epoch that goes back at every replica means a new topic.
"""

from __future__ import annotations

from typing import Final

from tidemark.core.events import Observation, Replica
from tidemark.core.partition import PartitionState

# A new topic may have had one election before it is seen.
HIGHEST_NEW_EPOCH: Final = 1
# Metadata that is not read again within this time holds no observation.
MAX_HOLD_SECONDS: Final = 60.0


def is_other_topic(state: PartitionState, topic_id: str | None) -> bool:
    """Whether both topic ids are known and differ: the topic was deleted and created again."""
    return topic_id is not None and state.topic_id is not None and topic_id != state.topic_id


def is_new_topic(state: PartitionState, event: Observation) -> bool:
    """Whether an observation is of another topic than the state: by its id, or without one by
    leader epochs that went back at all replicas, in two observations.
    """
    if is_other_topic(state, event.topic_id):
        return True
    return is_epoch_back(state, event) and _is_reread(state, event)


def may_mix_topics(state: PartitionState, event: Observation) -> bool:
    """Whether to hold an observation: its samples may be of another topic than its metadata."""
    since = _mixed_since(state)
    if since is not None and (
        _is_reread(state, event) or event.observed_at - since > MAX_HOLD_SECONDS
    ):
        return False
    return is_epoch_back(state, event) or (
        state.topic_id is not None
        and event.leader_epoch == state.leader_epoch is not None
        and _shows_new_log(state, event)
    )


def may_be_recreated(state: PartitionState, committed: int) -> bool:
    """Whether a new topic explains that every replica ends below what was committed.

    Only where topics have no id. Leader epochs start at 0, so a new topic does not reach a higher
    one between two observations.
    """
    return (
        state.topic_id is None
        and (state.leader_epoch or 0) <= HIGHEST_NEW_EPOCH
        and {replica.broker for replica in state.replicas} >= set(state.assigned)
        and all(
            replica.error is None
            and replica.log_end_offset is not None
            and replica.log_end_offset < committed
            for replica in state.replicas
        )
    )


def is_epoch_back(state: PartitionState, event: Observation) -> bool:
    """Whether the metadata and every replica show an older epoch, where topics have no id.

    The leader epoch of a topic never goes back. A broker with an old image may show an older one;
    all replicas do not.
    """
    known, epoch = state.leader_epoch, event.leader_epoch
    if state.topic_id is not None or event.topic_id is not None:
        return False
    if known is None or epoch is None or epoch >= known or not event.samples:
        return False
    return all(
        sample.error is None and sample.leader_epoch is not None and sample.leader_epoch < known
        for sample in event.samples
    )


def _shows_new_log(state: PartitionState, event: Observation) -> bool:
    """Whether the leader's log is shorter than it was, or another log became empty since the
    metadata was read.

    Within a leadership no leader cuts its log, and no truncation empties one.
    """
    is_old = _read_at(event) <= state.observed_at
    return any(
        _fell(state, sample)
        and (
            sample.broker == event.leader
            or (is_old and sample.log_end_offset == sample.log_start_offset)
        )
        for sample in event.samples
        if sample.error is None
    )


def _fell(state: PartitionState, sample: Replica) -> bool:
    known = state.replica(sample.broker)
    if known is None or known.log_end_offset is None or sample.log_end_offset is None:
        return False
    return sample.log_end_offset < known.log_end_offset


def _mixed_since(state: PartitionState) -> float | None:
    return None if state.sparse is None else state.sparse.mixed_since


def _is_reread(state: PartitionState, event: Observation) -> bool:
    """Whether the metadata was read after the first observation that was held."""
    since = _mixed_since(state)
    return since is not None and _read_at(event) > since


def _read_at(event: Observation) -> float:
    """When the metadata was read."""
    return event.observed_at if event.metadata_at is None else event.metadata_at

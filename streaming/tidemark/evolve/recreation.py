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
from tidemark.core.sparse_state import LogReset, copy_of

# A new topic may have had one election, and one more in each of these times, before it is seen.
SECONDS_PER_ELECTION: Final = 2.0
# So long after its reset, a log may be that of a new topic.
RESET_SECONDS: Final = 60.0
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
    """Whether a new topic explains that the leader, or every log, ends below what was committed.

    Only where topics have no id. Leader epochs start at 0, so it takes a new topic some time to
    reach a higher one.
    """
    if state.topic_id is not None:
        return False
    epoch = state.leader_epoch
    leader = state.replica(state.leader)
    if epoch is None and state.lineage and leader is not None:
        # Metadata has none: that of the leader's newest record. A lineage above the end of its log
        # is of the log before.
        newest, end = state.lineage[-1]
        epoch = newest if end <= (leader.log_end_offset or 0) else None
    earlier = [entry for entry in state.committed if entry.epoch != epoch]
    read_at = max((entry.read_at or entry.at for entry in earlier), default=0.0)
    unseen = state.observed_at - read_at
    if (epoch or 0) > 1 + unseen / SECONDS_PER_ELECTION:
        return False
    answers = [replica for replica in state.replicas if replica.error is None]
    if any((replica.log_end_offset or 0) >= committed for replica in answers):
        return False
    return may_be_new_log(state, state.leader) or {replica.broker for replica in answers} >= set(
        state.assigned
    )


def may_be_new_log(state: PartitionState, broker: int | None) -> bool:
    """Whether a replica's log may be of a new topic, where topics have no id (before 2.8)."""
    return any(reset.broker == broker for reset in state.resets)


def apply_resets(after: PartitionState, before: PartitionState, event: Observation) -> None:
    """Notes the replicas whose logs may be of a new topic.

    A log ends below its own high watermark only after an unclean election, on another disk, or in a
    new topic. A replica that no reassignment added, of a broker that was not assigned, is of a new
    topic, or ZooKeeper's controller reassigned it.
    """
    resets: list[LogReset] = []
    if before.topic_id is None and event.topic_id is None:
        fresh = [s.broker for s in event.samples if _is_reset(before, event, s)]
        kept = (r for r in before.resets if event.observed_at - r.at <= RESET_SECONDS)
        resets = [reset for reset in kept if reset.broker not in fresh]
        resets += [LogReset(broker, event.observed_at) for broker in fresh]
    if resets or after.resets:
        after.sparse = copy_of(after.sparse)
        after.sparse.resets = resets


def _is_reset(before: PartitionState, event: Observation, sample: Replica) -> bool:
    if not before.assigned:
        return False
    if sample.broker not in before.assigned:
        return sample.broker not in event.adding
    known = before.by_broker.get(sample.broker)
    return (
        known is not None
        and known.high_watermark is not None
        and sample.log_end_offset is not None
        and sample.log_end_offset < known.high_watermark
    )


def is_epoch_back(state: PartitionState, event: Observation) -> bool:
    """Whether the metadata and the replicas show an older epoch, where topics have no id.

    The leader epoch that a broker knows of a topic never goes back. One with an old image may show
    an older one than the others, but all replicas do not.
    """
    known, epoch = state.leader_epoch, event.leader_epoch
    if state.topic_id is not None or event.topic_id is not None:
        return False
    if known is None or epoch is None or epoch >= known or not event.samples:
        return False
    answers = [sample for sample in event.samples if sample.error is None]
    if any(sample.leader_epoch is None or sample.leader_epoch >= known for sample in answers):
        return False
    return len(answers) == len(event.samples) or any(_forgot(state, each) for each in answers)


def _forgot(state: PartitionState, sample: Replica) -> bool:
    known = state.by_broker.get(sample.broker)
    if known is None or known.leader_epoch is None or sample.leader_epoch is None:
        return False
    return sample.leader_epoch < known.leader_epoch


def _shows_new_log(state: PartitionState, event: Observation) -> bool:
    """Whether the leader's log is shorter than it was, or another log became empty since the
    metadata was read.

    Within a leadership no leader cuts its log, and no truncation empties one. After an election,
    which shows as a higher epoch at the replica, it may have.
    """
    is_old = event.metadata_read_at <= state.observed_at
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
    known = state.by_broker.get(sample.broker)
    if known is None or known.log_end_offset is None or sample.log_end_offset is None:
        return False
    if (sample.leader_epoch or 0) > (known.leader_epoch or 0):
        return False
    return sample.log_end_offset < known.log_end_offset


def _mixed_since(state: PartitionState) -> float | None:
    return None if state.sparse is None else state.sparse.mixed_since


def _is_reread(state: PartitionState, event: Observation) -> bool:
    """Whether the metadata was read after the first observation that was held."""
    since = _mixed_since(state)
    return since is not None and event.metadata_read_at > since

"""Was a topic deleted and created again under the same name?

The topic id decides where brokers have one (2.8 and later). A collector may still read the new logs
under the metadata of the old topic, because ListOffsets and Fetch up to version 12 ask by name. An
observation that may mix the two is held: it counts once metadata that was read after it still shows
the same topic. Without topic ids, a leader epoch that goes back at every replica means a new topic;
with the same id, metadata that was restored from a backup.

Without topic ids, what the leader's log lacks is lost only where a log is seen to go on: the
leader's, since that was committed; or another one that has it, of a broker that does not lead.
"""

from __future__ import annotations

from math import inf
from typing import Final

from msgspec.structs import replace

from tidemark.core.events import Observation, Replica
from tidemark.core.leader_epochs import NO_EPOCH, LineageEntries, begin_apart
from tidemark.core.partition import LossCandidate, PartitionState, ReplicaState
from tidemark.core.sparse_state import (
    FORMER_TOPIC_SECONDS,
    FormerTopic,
    LogReset,
    SparseState,
    copy_of,
)

# A new topic may have had one election, and one more in each of these times, before it is seen.
SECONDS_PER_ELECTION: Final = 2.0
# Where all of its logs were reset at once, so many.
SUDDEN_ELECTIONS: Final = 3
# So long after its reset, a log may be that of a new topic.
RESET_SECONDS: Final = 60.0
# Metadata that is not read again within this time holds no observation.
MAX_HOLD_SECONDS: Final = 60.0
# So long, two brokers show an earlier epoch that no replica contradicts, until it is the one.
BACK_SECONDS: Final = 5.0
# The id of the former topic counts again after so many observations in a row.
RETURNS: Final = 3


def is_other_topic(state: PartitionState, topic_id: str | None) -> bool:
    """Whether both topic ids are known and differ: the topic was deleted and created again."""
    return topic_id is not None and state.topic_id is not None and topic_id != state.topic_id


def is_new_topic(state: PartitionState, event: Observation) -> bool:
    """Whether an observation is of another topic than the state: by its id, or by a second leader
    of its epoch, which has one, or by leader epochs that went back at all replicas, in two
    observations.
    """
    if is_other_topic(state, event.topic_id):
        return not is_of_former_topic(state, event)
    is_led_by_other = None not in (state.leader, event.leader) and state.leader != event.leader
    if is_led_by_other and event.leader_epoch == state.leader_epoch is not None:
        return True
    since = _back_since(state)
    is_long = since is not None and event.observed_at - since >= BACK_SECONDS
    return (is_long and is_behind(state, event)) or (
        is_epoch_back(state, event) and _is_reread(state, event)
    )


def is_of_former_topic(state: PartitionState, event: Observation) -> bool:
    """Whether an observation shows the id of the topic before: by an old image, or another cluster.

    After RETURNS of them in a row it is the topic that is there.
    """
    former = state.former_topic
    return (
        former is not None
        and state.topic_id is not None
        and event.topic_id == former.topic_id != state.topic_id
        and former.in_a_row < RETURNS - 1
    )


def note_return(state: PartitionState, event: Observation) -> SparseState:
    """The sparse state after an observation that `is_of_former_topic`."""
    sparse, former = copy_of(state.sparse), state.former_topic
    assert former is not None
    sparse.former_topic = replace(
        former,
        at=event.observed_at,
        returned=former.returned + 1,
        in_a_row=former.in_a_row + 1,
    )
    return sparse


def state_of_new_topic(state: PartitionState, event: Observation) -> PartitionState:
    """The state to begin with, after an observation that `is_new_topic`.

    Without an id, a log that goes on shows that it is the same topic.
    """
    if state.topic_id is None and not _shares_history(state, event.lineage):
        return PartitionState()
    former = _former_topic(state, event)
    # The alerts of a topic that goes on do too.
    alerts = state.alerts if former.restored else []
    return PartitionState(sparse=SparseState(former_topic=former), alerts=alerts)


def _former_topic(state: PartitionState, event: Observation) -> FormerTopic:
    """The topic before its epochs went back, or before it was created again."""
    restored = not is_other_topic(state, event.topic_id)
    return FormerTopic(state.topic_id, state.leader_epoch, event.observed_at, restored)


def recent_former_topic(state: PartitionState) -> FormerTopic | None:
    """The topic before, after an observation of this one; None: there was none of late."""
    former = state.former_topic
    if former is None or (
        not former.restored and state.observed_at - former.at > FORMER_TOPIC_SECONDS
    ):
        return None
    return replace(former, in_a_row=0) if former.in_a_row else former


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


def may_be_recreated(
    state: PartitionState, leader: ReplicaState, committed: int, found: LossCandidate | None
) -> bool:
    """Whether a new topic explains that the leader, or every log, lacks what was committed.

    Only where topics have no id. Leader epochs start at 0, so it takes a new topic some time to
    reach a higher one. `found`: what the leader's log lacks.
    """
    if state.topic_id is not None:
        return False
    epoch = state.leader_epoch
    # A lineage above the end of its log is of the log before.
    if epoch is None and state.lineage and state.lineage[-1][1] <= (leader.log_end_offset or 0):
        # Metadata has none: that of the leader's newest record.
        epoch = state.lineage[-1][0]
    known_at = min(
        (
            e.at
            for e in state.committed
            if (e.surviving >= committed if found is None else e.epoch == found.epoch_before)
        ),
        default=0.0,
    )
    # What was committed since a log was reset was committed in its topic.
    resets = [reset for reset in state.resets if reset.at >= known_at]
    # After a time in which nobody watched, any log may be of a new topic, and so its copies.
    marks = [reset for reset in resets if reset.unwatched or reset.broker == state.leader]
    if not marks or _shares_history(
        state,
        state.lineage,
        before=min(mark.at for mark in marks),
        log_end=leader.log_end_offset or 0,
    ):
        return False
    unwatched = any(mark.unwatched for mark in marks)
    earlier = [entry for entry in state.committed if entry.epoch not in (epoch, NO_EPOCH)]
    read_at = max((e.read_at or e.at for e in earlier), default=0.0)
    if not unwatched and _is_beyond(
        epoch, read_at, state.observed_at, at_once=_are_reset_at_once(state)
    ):
        return False
    answers = [replica for replica in state.replicas if replica.error is None]
    if found is not None:
        # Only a log that was not reset goes on; that of a deposed leader may be of a deleted topic.
        fresh = {reset.broker for reset in resets}
        answers = [r for r in answers if not (unwatched or r.leads or r.broker in fresh)]
    return all((replica.log_end_offset or 0) < committed for replica in answers)


def is_renumbered(state: PartitionState) -> bool:
    """Whether an epoch begins elsewhere in the leader's log than in that of a leader before it.

    Then two leaderships have its number: the topic was created again, or its metadata restored. A
    topic id shows both; and where records are compacted away, epochs begin later.
    """
    whole = not any(entry.log_start_offset for entry in state.committed)
    return (
        state.topic_id is None
        and not state.compacted
        and any(begin_apart(e.lineage, state.lineage or [], whole=whole) for e in state.committed)
    )


def _are_reset_at_once(state: PartitionState) -> bool:
    """Whether a new topic reset all logs: disks do not fail at the same time.

    A deposed leader beside two or more others may still have the log of a deleted topic.
    """
    times = [reset.at for reset in state.resets]
    reset = {reset.broker for reset in state.resets}
    deposed = {r.broker for r in state.replicas if r.leads and len(reset) > 1} - {state.leader}
    return max(times) - min(times) <= SECONDS_PER_ELECTION and reset | deposed >= {*state.assigned}


def may_be_new_log(state: PartitionState, broker: int | None) -> bool:
    """Whether a replica's log was seen to begin anew, where topics have no id (before 2.8)."""
    return any(reset.broker == broker and not reset.unwatched for reset in state.resets)


def apply_resets(
    after: PartitionState, before: PartitionState, event: Observation, *, unwatched: bool
) -> None:
    """Notes the replicas whose logs may be of a new topic.

    A log ends below its own high watermark only after an unclean election, on another disk, or in a
    new topic, where its replica knows no epoch of the old one. A replica that no reassignment
    added, of a broker that was not assigned, is of a new topic, or ZooKeeper's controller
    reassigned it. While the leader's log goes on from pass to pass, none is. `unwatched`: there was
    a gap before the observation.
    """
    resets: list[LogReset] = []
    if before.topic_id is None and event.topic_id is None:
        # No reassignment moves all replicas in one pass.
        has_moved = not {*before.assigned, *event.adding}.intersection(event.replicas)
        unwatched |= (has_moved and bool(before.assigned)) or _leader_cut_log(before, event)
        goes_on = not has_moved and _goes_on(
            before, event, unwatched=unwatched, is_timed=after.collector == before.collector
        )
        unwatched = unwatched and not _shares_history(before, event.lineage)
        fresh = [
            sample.broker
            for sample in event.samples
            if not goes_on and (unwatched or _is_reset(before, event, sample))
        ]
        kept = (r for r in before.resets if event.observed_at - r.at <= RESET_SECONDS)
        resets = [reset for reset in kept if reset.broker not in fresh]
        resets += [LogReset(broker, event.observed_at, unwatched) for broker in fresh]
    if resets or after.resets:
        after.sparse = copy_of(after.sparse)
        after.sparse.resets = resets


def _is_beyond(epoch: int | None, since: float, now: float, *, at_once: bool) -> bool:
    """Whether a topic that is newer than `since` cannot have had so many elections.

    `at_once`: all logs were reset at the same time, so it may have had several at its beginning. A
    time that goes back is of two clocks, and shows nothing.
    """
    most = (SUDDEN_ELECTIONS if at_once else 1) + (now - since) / SECONDS_PER_ELECTION
    return now >= since and (epoch or 0) > most


def _begins_anew(known: LineageEntries, lineage: LineageEntries) -> bool:
    """Whether the oldest epoch had records, and its first ones are of a later epoch now."""
    return bool(known) and known[0][1] > 0 and (known[0][0], 0) in lineage


def _leader_cut_log(before: PartitionState, event: Observation) -> bool:
    """Whether an epoch ends lower in the leader's log than it did, within one leadership.

    No leader cuts its log, so it is that of a new topic. Losses show when a leadership begins.
    """
    return (
        before.leader_epoch is not None
        and (event.leader, event.leader_epoch) == (before.leader, before.leader_epoch)
        and any(
            epoch == known and end < known_end
            for epoch, end in event.lineage or []
            for known, known_end in before.lineage or []
        )
    )


def _goes_on(
    before: PartitionState, event: Observation, *, unwatched: bool, is_timed: bool
) -> bool:
    """Whether the topic is the same as in the pass before.

    A new one cannot have had so many elections since. Or the leader's log was read then too, and
    was no longer; another broker may still answer with the log of a deleted topic. A log that may
    be of a new topic shows nothing of the one before it.
    """
    if (
        before.resets
        or any(_forgot(before, sample) for sample in event.samples)
        or _begins_anew(before.lineage or [], event.lineage or [])
    ):
        return False
    sample = next((each for each in event.samples if each.broker == event.leader), None)
    known = None if sample is None else before.by_broker.get(sample.broker)
    # Followers also cut their logs to that of a leader with a new disk, which was down before.
    are_emptied = known is not None and known.error is None and _are_emptied(before, event)
    if is_timed and _is_beyond(
        event.leader_epoch, before.observed_at, event.observed_at, at_once=are_emptied
    ):
        return True
    return (
        not (unwatched or are_emptied)
        # One that is cut off names itself.
        and event.metadata_from != [event.leader]
        and known is not None
        and sample is not None
        and known.sampled_at == before.observed_at
        and bool(known.log_end_offset)
        and (sample.log_end_offset or 0) >= (known.log_end_offset or 0)
        and (sample.leader_epoch or 0) >= (known.leader_epoch or 0)
    )


def _are_emptied(before: PartitionState, event: Observation) -> bool:
    """Whether all logs, or all but the leader's, became empty since then: two or more.

    Disks do not fail at the same time. A leader that keeps its log is cut off from the controller,
    and its topic is deleted.
    """
    emptied = {
        sample.broker
        for sample in event.samples
        if sample.log_end_offset == 0 and _is_reset(before, event, sample)
    }
    return len(emptied) > 1 and emptied | {event.leader} >= {*event.replicas}


def _shares_history(
    known: PartitionState,
    lineage: LineageEntries | None,
    before: float = inf,
    log_end: float = inf,
) -> bool:
    """Whether an epoch ended in a leader's log where it did in one `before` then, above 0."""
    closed = {entry for entry in (lineage or [])[:-1] if 0 < entry[1] <= log_end}
    lineages = [known.lineage or [], *(e.lineage for e in known.committed if e.at < before)]
    return any(closed & {*each[:-1]} for each in lineages if each is not lineage)


def _is_reset(before: PartitionState, event: Observation, sample: Replica) -> bool:
    if before.assigned and sample.broker not in before.assigned:
        return sample.broker not in event.adding
    known = before.by_broker.get(sample.broker)
    marks = (
        None if known is None else known.high_watermark,
        # That of the partition too: the leader's may not have been read in the last pass.
        before.high_watermark if sample.broker == before.leader else None,
        # An empty log shows nothing from before.
        1 if any(entry.high_watermark for entry in before.committed) else None,
    )
    lineage = event.lineage if sample.broker == event.leader else sample.lineage
    return (
        _forgot(before, sample)
        or _begins_anew(before.lineage or [], lineage or [])
        or any(
            mark is not None and sample.log_end_offset is not None and sample.log_end_offset < mark
            for mark in marks
        )
    )


def is_epoch_back(state: PartitionState, event: Observation) -> bool:
    """Whether the metadata and the replicas show an older epoch of what may be the same topic.

    The leader epoch that a broker knows of a topic never goes back. One with an old image may show
    an older one than the others, but all replicas do not.
    """
    known = _later_epoch(state, event)
    if known is None or is_other_topic(state, event.topic_id) or not event.samples:
        return False
    answers = [sample for sample in event.samples if sample.error is None]
    if any(sample.leader_epoch is None or sample.leader_epoch >= known for sample in answers):
        return False
    # The newest epoch may be one of the metadata log, which no broker has applied yet.
    forgot = any(_forgot(state, sample) for sample in answers)
    if state.topic_id is not None:
        return forgot and {sample.broker for sample in answers} >= set(state.assigned) > set()
    return forgot or len(answers) == len(event.samples)


def is_behind(state: PartitionState, event: Observation) -> bool:
    """Whether two brokers show an older epoch of the topic, and no replica a newer one.

    As `is_epoch_back`, but replicas may be silent: it takes long until that is more than the images
    of brokers that are cut off from the controller.
    """
    known = _later_epoch(state, event)
    return (
        known is not None
        and event.topic_id == state.topic_id
        and len(event.metadata_from) > 1
        and all(each.leader_epoch is None or each.leader_epoch < known for each in event.samples)
        # The metadata log is ahead of brokers that are cut off from the controller.
        and (
            state.metadata_position is None
            or any(replica.leader_epoch == known for replica in state.replicas)
        )
    )


def with_older_epochs(state: PartitionState, event: Observation) -> PartitionState:
    """The state to go on from: counts observations that show an older epoch of the same topic.

    No broker that is up forgets an epoch of a topic: if all have, it is a new one, or its metadata
    was restored from a backup, and nothing that was committed before proves a loss.
    """
    since, back = _back_since(state), is_behind(state, event)
    forgets = _all_forgot(state, event)
    if not (back or since is not None or forgets):
        return state
    sparse = copy_of(state.sparse)
    sparse.back_since = (since or event.observed_at) if back else None
    state = replace(state, sparse=sparse)
    if forgets:
        sparse.former_topic = _former_topic(state, event)
        state.loss_candidate, state.committed = None, []
        state.high_watermark, state.offset_history = None, []
    return state


def _later_epoch(state: PartitionState, event: Observation) -> int | None:
    """The known leader epoch where the metadata shows an older one."""
    known, epoch = state.leader_epoch, event.leader_epoch
    return known if known is not None and epoch is not None and epoch < known else None


def _all_forgot(state: PartitionState, event: Observation) -> bool:
    """Whether all assigned replicas answer, and each knows an older epoch than it did."""
    # The first that does not ends it: it is asked of every observation.
    if not all(sample.error is not None or _forgot(state, sample) for sample in event.samples):
        return False
    answers = {sample.broker for sample in event.samples if sample.error is None}
    return bool(answers) and answers.issuperset(state.assigned)


def _back_since(state: PartitionState) -> float | None:
    return None if state.sparse is None else state.sparse.back_since


def _forgot(state: PartitionState, sample: Replica) -> bool:
    known = state.by_broker.get(sample.broker)
    if known is None or known.leader_epoch is None or sample.leader_epoch is None:
        return False
    return sample.leader_epoch < known.leader_epoch


def _shows_new_log(state: PartitionState, event: Observation) -> bool:
    """Whether the leader's log is shorter than it was, or another log became empty since the
    metadata was read.

    Within a leadership no leader cuts its log, and no truncation empties one. After an election,
    which shows as a higher epoch at the replica, it may have cut its log, but not emptied it.
    """
    return any(
        _fell(state, sample)
        and (
            sample.broker == event.leader
            or (
                event.metadata_read_at <= state.observed_at
                and sample.log_end_offset == sample.log_start_offset
            )
        )
        for sample in event.samples
        if sample.error is None
    )


def _fell(state: PartitionState, sample: Replica) -> bool:
    known = state.by_broker.get(sample.broker)
    if known is None or known.log_end_offset is None or sample.log_end_offset is None:
        return False
    is_elected = (sample.leader_epoch or 0) > (known.leader_epoch or 0)
    is_emptied = sample.log_end_offset == sample.log_start_offset
    return (is_emptied or not is_elected) and sample.log_end_offset < known.log_end_offset


def _mixed_since(state: PartitionState) -> float | None:
    return None if state.sparse is None else state.sparse.mixed_since


def _is_reread(state: PartitionState, event: Observation) -> bool:
    """Whether the metadata was read after the first observation that was held."""
    since = _mixed_since(state)
    return since is not None and event.metadata_read_at > since

"""The state of a partition after an observation. It draws no conclusion.

Order: passes of one collector process count up, so a late or repeated observation is dropped. A
lower leader epoch never overwrites a higher one of the same topic id; a new topic id is a new
partition. What a leader reported under the fence of its epoch merges by maximum and may be late.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from tidemark.core.cluster import ClusterState
from tidemark.core.events import Observation
from tidemark.core.partition import PartitionState, copy_to_change
from tidemark.core.sparse_state import copy_of
from tidemark.evolve.elections import note_election
from tidemark.evolve.leadership import renew_leadership
from tidemark.evolve.loss_reads import apply_loss
from tidemark.evolve.membership import apply_metadata
from tidemark.evolve.recreation import (
    apply_resets,
    is_new_topic,
    is_of_former_topic,
    may_mix_topics,
    note_return,
    state_of_new_topic,
    with_older_epochs,
)
from tidemark.evolve.sampled_leadership import Shown, is_confirmed, note_leadership
from tidemark.evolve.samples import (
    apply_former_leader,
    apply_leader,
    apply_log_start,
    apply_samples,
    note_policy,
)
from tidemark.evolve.sparse_state import apply_sparse

# Null where they were not read: a state keeps them, under the same names.
KEPT_WHEN_NULL: Final = ("compacted", "unclean_leader_election", "throttled_replicas")
# A topic is not deleted and created again within a shorter time unseen.
GAP_SECONDS: Final = 5.0
# Longer than a collector is silent before another one takes over.
HANDOVER_SECONDS: Final = 60.0


def evolve(
    state: PartitionState | None,
    event: Observation,
    collector: str,
    collector_epoch: int,
    pass_number: int,
    cluster: ClusterState | None = None,
) -> PartitionState:
    """The state after an observation that `is_newer` accepted; the given state does not change.

    `cluster` helps to name the suspected cause of a shrink.
    """
    if state is None:
        state = PartitionState()
    elif is_new_topic(state, event):
        state = state_of_new_topic(state, event)
    else:
        state = with_older_epochs(state, event)
    after = copy_to_change(state)
    after.collector, after.collector_epoch = collector, collector_epoch
    after.pass_number = pass_number
    if is_of_former_topic(state, event):
        after.sparse = note_return(state, event)
        return after
    if may_mix_topics(state, event):
        # Its samples count once the topic is known to be the same.
        after.sparse = copy_of(state.sparse)
        after.sparse.mixed_since = after.sparse.mixed_since or event.observed_at
        return after
    apply_resets(after, state, event, unwatched=_is_after_gap(after, state, event, cluster))
    after.topic_id = event.topic_id or state.topic_id
    after.observed_at, after.missed_passes = event.observed_at, 0
    for name in KEPT_WHEN_NULL:
        value = getattr(event, name)
        if value is not None:
            setattr(after, name, value)
    known, epoch = state.leader_epoch, event.leader_epoch
    is_stale = known is not None and (epoch is None or epoch < known)
    if not is_stale:
        apply_metadata(after, state, event, cluster)
    apply_samples(after, state, event)
    is_of_leader = (event.leader, epoch) == (after.leader, after.leader_epoch)
    shown = Shown(
        event.leader,
        event.metadata_from,
        event.in_sync_replicas,
        event.committed if is_of_leader else None,
        {sample.broker: sample.lineage for sample in event.samples if sample.lineage is not None},
        event.lineage,
        event.compacted,
        event.open_transaction,
    )
    is_legitimate = after.leader_epoch is not None or is_confirmed(after, shown)
    if is_stale:
        apply_former_leader(after, state, event)
    else:
        renew_leadership(after, state)
        # Cut off, the leader of the pass before commits nothing; one that is named again may have
        # the log of a deleted topic.
        goes_on = is_legitimate or event.leader == state.leader
        apply_leader(after, event, is_legitimate=goes_on)
    apply_log_start(after)
    note_policy(after, state)
    if state.collector != collector:
        _take_over(after, state.observed_at)
    note_leadership(after, state, shown)
    note_election(after, state)
    apply_loss(after, state, is_legitimate=is_legitimate)
    apply_sparse(after, state, shown)
    return after


def _is_after_gap(
    after: PartitionState, before: PartitionState, event: Observation, cluster: ClusterState | None
) -> bool:
    """Whether passes that saw the partition are missing before this observation.

    Between two observations of a quiet partition the same collector has seen it in each pass.
    """
    if not before.observed_at:
        return False
    passed = event.observed_at - before.observed_at
    if (after.collector, after.collector_epoch) != (before.collector, before.collector_epoch):
        # The clocks of two collectors may differ, and show no time.
        return after.collector != before.collector or not 0.0 <= passed <= GAP_SECONDS
    if passed <= GAP_SECONDS:
        return False
    clock = None if cluster is None else cluster.collectors.get(after.collector)
    return (
        before.missed_passes > 0
        or after.pass_number == before.pass_number + 1
        # It saw no broker, or it made no pass, or its passes are lost.
        or (
            clock is not None
            and (clock.blind_passes > 0 or event.observed_at - clock.ended_at > GAP_SECONDS)
        )
    )


def _take_over(after: PartitionState, last_observed_at: float) -> None:
    """Another collector observes the partition from now on. Changes `after`.

    Where its clock differs, or nothing was observed for long, nothing waits for a time of the other
    clock, and no condition that does not fire yet has held meanwhile.
    """
    now = after.observed_at
    if 0.0 <= now - last_observed_at <= HANDOVER_SECONDS:
        return
    if after.published_at > now:
        after.published_at = 0.0
    for entry in after.committed:
        entry.at = min(entry.at, now)
    after.alerts = [
        alert if alert.firing else structs.replace(alert, since=now) for alert in after.alerts
    ]


def is_newer(
    state: PartitionState | None,
    collector: str,
    collector_epoch: int,
    pass_number: int,
    owner_silent: bool,
) -> bool:
    """Whether an observation may be folded.

    Of two collectors, the newer process owns the partition while it is alive.
    """
    if state is None or not state.collector:
        return True
    if (state.collector, state.collector_epoch) == (collector, collector_epoch):
        return pass_number > state.pass_number
    return collector_epoch > state.collector_epoch or owner_silent

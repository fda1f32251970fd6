"""Whether a partition is quiet, and so observed only at intervals (`collect.thin_seconds`)."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from tidemark.core.events import Observation, Replica

# Fields in which observations of a quiet partition differ, those that are as the others let expect,
# and those sent seldom. Any other one counts, also a new one.
_TIMES: Final = {
    *("observed_at", "metadata_from", "metadata_at", "leader_before_at", "leader_after_at"),
    *("requested_ms", "answered_ms"),
}
_EXPECTED: Final = {
    *("leader_log_end_offset_before", "leader_log_end_offset_after", "lineage"),
    *("lineage_complete_from", "log_end_offset", "high_watermark", "last_stable_offset", "error"),
}
_SELDOM: Final = {"size_bytes", "unclean_leader_election", "throttled_replicas", "compacted"}


def _content(fields: tuple[str, ...]) -> attrgetter[Any]:
    return attrgetter(*sorted({*fields} - _TIMES - _EXPECTED - _SELDOM))


# What `metadata` has of an observation, and the samples, which are compared apart.
_APART: Final = {
    *("topic", "partition", "topic_id", "leader", "leader_epoch", "leaderless", "replicas"),
    *("in_sync_replicas", "eligible_leader_replicas", "last_known_eligible_leader_replicas"),
    *("adding", "removing", "effective_min_in_sync_replicas", "samples"),
}
_of_leader = _content(tuple(name for name in Observation.__struct_fields__ if name not in _APART))
_of_sample = _content(Replica.__struct_fields__)


def quiet_state(observation: Observation, metadata: object) -> object | None:
    """What counts of a quiet observation; null when it is not quiet.

    `metadata`: what it shows of the metadata. While the state is the same, the partition counts as
    seen without another observation.
    """
    if not is_quiet(observation):
        return None
    return metadata, _of_leader(observation), list(map(_of_sample, observation.samples))


def is_quiet(observation: Observation) -> bool:
    """Whether nothing that this observation shows can lead to an alert, now or by going on.

    All replicas answered, every log ends at the committed offset, all replicas are in sync, not
    fewer than the minimum, and know the leader's epoch, and none is reassigned. This must agree
    with `tidemark.core.activity.Activity` of the reducer: a quiet observation wakes no detector. A
    partition that stays quiet counts as seen between its observations.
    """
    end, epoch = observation.committed, observation.leader_epoch
    in_sync = observation.in_sync_replicas or ()
    if end is None or observation.leader is None or len(in_sync) != len(observation.replicas):
        return False
    if observation.adding or observation.removing:
        return False
    # Before Kafka 3.7 the minimum may be above the number of replicas.
    if len(in_sync) < (observation.effective_min_in_sync_replicas or 0):
        return False
    # Brokers before 0.11 report no last stable offset, those before 2.1 no leader epoch.
    ends, epochs = (None, end), (None, epoch)
    for sample in observation.samples:
        if (
            sample.error is not None
            or not sample.log_end_offset == sample.high_watermark == end
            or sample.last_stable_offset not in ends
            or (epoch is not None and sample.leader_epoch not in epochs)
        ):
            return False
    return True

"""Whether a partition is quiet, and so observed only at intervals (`collect.thin_seconds`)."""

from __future__ import annotations

from tidemark.core.events import Observation


def is_quiet(observation: Observation) -> bool:
    """Whether nothing that this observation shows can lead to an alert, now or by going on.

    All replicas answered, every log ends at the committed offset, all replicas are in sync and know
    the leader's epoch, and none is reassigned. This must agree with
    `tidemark.core.activity.Activity` of the reducer: a quiet observation wakes no detector. A
    partition that stays quiet counts as seen between its observations.
    """
    end, epoch = observation.committed, observation.leader_epoch
    in_sync = observation.in_sync_replicas or ()
    if end is None or observation.leader is None or len(in_sync) != len(observation.replicas):
        return False
    if observation.adding or observation.removing:
        return False
    for sample in observation.samples:
        # Brokers before 0.11 report no last stable offset, those before 2.1 no leader epoch.
        if (
            sample.error is not None
            or not sample.log_end_offset == sample.high_watermark == end
            or sample.last_stable_offset not in (None, end)
            or (epoch is not None and sample.leader_epoch not in (None, epoch))
        ):
            return False
    return True

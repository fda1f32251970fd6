"""High watermarks that were read between passes, folded before the observation that carries them.

Each of them is what a pass at its time would have read: the high watermark of the leader of an
epoch, under the fence of that epoch, while the collector knew no later epoch. So it counts as
committed under that epoch. It shows no log end offset, and no other answer of a pass.
"""

from __future__ import annotations

from tidemark.core.events import FastHighWatermarks, Observation
from tidemark.core.leader_epochs import Committed, committed_under, record_committed
from tidemark.core.partition import PartitionState, copy_to_change
from tidemark.evolve.recreation import is_new_topic, may_mix_topics


def with_fast_high_watermarks(state: PartitionState, event: Observation) -> PartitionState:
    """The state with the fast high watermarks of `event`, which is not folded itself.

    The given state does not change; it is returned where none of them counts: of another topic, of
    a leader that the state contradicts, or read after the epoch was known to be over.
    """
    read = event.fast_high_watermarks
    if read is None or is_new_topic(state, event) or may_mix_topics(state, event):
        return state
    found = _newest(state, event, read)
    if found is None:
        return state
    at, offset = found
    epoch = read.leader_epoch
    after = copy_to_change(state)
    record_committed(after.committed, Committed(epoch, offset, at, offset, read.leader))
    if epoch != state.leader_epoch:
        _note_last_reading(after, epoch, at)
        return after
    after.high_watermark_read_at = max(state.high_watermark_read_at, at)
    if state.high_watermark is None or offset > state.high_watermark:
        after.high_watermark, after.high_watermark_moved_at = offset, at
    return after


def _newest(
    state: PartitionState, event: Observation, read: FastHighWatermarks
) -> tuple[float, int] | None:
    """(time, offset) of the first sample with the highest offset; None: no sample counts."""
    known, epoch, until = state.leader_epoch, read.leader_epoch, event.observed_at
    if known is None or epoch > known:
        return None
    if epoch == known:
        if state.leader not in {None, read.leader}:
            return None
    else:
        # A record of the metadata log, or another collector, has shown a later epoch. Its leader
        # may have gone on after that, and what it then reported was not committed.
        entry = committed_under(state.committed, epoch)
        if entry is None or entry.leader != read.leader or entry.over_at is None:
            return None
        until = min(until, entry.over_at)
    # It never falls in an epoch: the pass read another log, perhaps that of a new topic.
    limit = event.committed if epoch == event.leader_epoch else None
    samples = [
        (at, offset)
        for at, offset in read.samples
        if at <= until and (limit is None or offset <= limit)
    ]
    return max(samples, key=lambda sample: (sample[1], -sample[0]), default=None)


def _note_last_reading(after: PartitionState, epoch: int, at: float) -> None:
    """Of an epoch that is over: when its leader was read last."""
    entry = committed_under(after.committed, epoch)
    if entry is not None and entry.over_at is not None:
        entry.read_at = max(entry.read_at or entry.at, at)

"""What a partition's newest leader committed and wrote, as far as it was seen.

Elections are judged against it. While the leader answers it is of now; otherwise it is of the last
sample, and what the leader wrote afterwards is unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.core.records import ReplicaView, View


class Baseline(NamedTuple):
    """`committed`: every record below it was committed. `written`: the leader's log end offset.

    Both are lower bounds, and None where nothing is known. `seen_at` is the time of the last
    sample (Unix seconds), None while the leader answers. `log_end_offsets` are (time, offset),
    newest last.
    """

    broker: int | None
    committed: int | None
    written: int | None
    seen_at: float | None
    log_end_offsets: list[tuple[float, int]]

    @property
    def is_live(self) -> bool:
        return self.broker is not None and self.seen_at is None

    def age_ms(self, offset: int) -> float | None:
        """How long before the last sample the record was written: a lower bound."""
        if self.seen_at is None:
            return None
        written_at = next((at for at, end in self.log_end_offsets if end > offset), None)
        return None if written_at is None else max(0.0, (self.seen_at - written_at) * 1000.0)


def baseline_of(view: View) -> Baseline:
    """The newest leader's offsets in a partition's view."""
    leader = find_replica(view, view.leader)
    if leader is not None and leader.error is None and view.log_end_offset is not None:
        return Baseline(view.leader, view.high_watermark, view.log_end_offset, None, [])
    last = view.last_committed
    if last is None:
        return _of_followers(view)
    silent = find_replica(view, last.leader)
    written = last.log_end_offset
    if silent is not None and silent.leader_epoch == last.leader_epoch:
        written = max(written, silent.log_end_offset or 0)
    return Baseline(
        last.leader,
        last.high_watermark,
        written,
        view.at if last.read_at is None else last.read_at,
        last.log_end_offsets,
    )


def find_replica(view: View, broker: int | None) -> ReplicaView | None:
    """The replica on a broker; None where there is none."""
    return next((each for each in view.replicas if each.broker == broker), None)


def _of_followers(view: View) -> Baseline:
    """No leader was ever seen. A follower's high watermark is a lower bound of the leader's."""
    epochs = [r.leader_epoch for r in view.replicas if r.leader_epoch is not None]
    newest = max(epochs, default=None)
    known = [
        replica.high_watermark
        for replica in view.replicas
        if replica.error is None
        and replica.high_watermark is not None
        and replica.leader_epoch == newest
    ]
    return Baseline(None, max(known, default=None), None, view.at, [])

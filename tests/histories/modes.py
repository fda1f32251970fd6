"""The generations of Kafka that differ in what replicas do and in what a collector can read."""

from __future__ import annotations

from typing import Final, NamedTuple


class Mode(NamedTuple):
    """One generation.

    `truncation`: "high_watermark" (0.10), "epoch" (once per leadership, KIP-101), "fetch" (each
    fetch, KIP-595). `fenced`: requests carry the leader epoch, and metadata shows it (KIP-320).
    `lineages`: Fetch shows epoch ends (2.7). `leader_lineages`: OffsetForLeaderEpoch does, at the
    leader, and a leader that has not written has no epoch of its own (0.11). `strict`: below min
    ISR the high watermark is frozen.
    """

    name: str
    truncation: str
    fenced: bool
    lineages: bool
    topic_ids: bool
    quorum: bool
    strict: bool = False
    elr: bool = False
    bump_on_shrink: bool = False
    leader_lineages: bool = False


MODES: Final = {
    mode.name: mode
    for mode in (
        Mode("0.10", "high_watermark", False, False, False, False, bump_on_shrink=True),
        Mode("0.11", "epoch", False, False, False, False, bump_on_shrink=True),
        Mode(
            "1.1",
            "epoch",
            False,
            False,
            False,
            False,
            bump_on_shrink=True,
            leader_lineages=True,
        ),
        Mode("2.1", "epoch", True, False, False, False, bump_on_shrink=True),
        Mode("2.7", "fetch", True, True, False, False, bump_on_shrink=True),
        Mode("2.8", "fetch", True, True, True, True, bump_on_shrink=True),
        Mode("3.7", "fetch", True, True, True, True, strict=True),
        Mode("4.1", "fetch", True, True, True, True, strict=True, elr=True),
    )
}

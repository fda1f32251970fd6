"""What a consumer group's committed offset says about lost records. Pure.

The offset alone says little: after the election new records have the lost offsets. The leader
epoch in the commit (KIP-320) is that of the last record which the group read, so it tells records
of the old leader from new ones. What a consumer does next depends on the client and its reset
policy, which no broker knows.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from tidemark.assess.losses import Loss

# read: the commit covers lost records. may_have_read: it may. after_loss: it was made on the new
# log. before: it covers none. share: its position is not a committed offset. unknown: not read.
Standing = Literal["read", "may_have_read", "unknown", "after_loss", "share", "before"]
# Worst first.
STANDINGS: Final[tuple[Standing, ...]] = (
    *("read", "may_have_read", "unknown", "after_loss", "share", "before"),
)


class GroupReach(Struct, kw_only=True):
    """A group and a loss. Encoded as part of `inspect --losses --groups --json`."""

    group: str
    standing: Standing
    text: str
    # The current commit, null: unknown.
    committed: int | None = None
    leader_epoch: int | None = None


def judge_commit(
    loss: Loss, group: str, committed: int, leader_epoch: int | None, log_end: int | None
) -> GroupReach:
    """What the newest commit of a group says about a loss.

    `leader_epoch`: that of the commit, null where the client sent none. `log_end`: the log end
    offset of the partition now, null: unknown.
    """
    standing, text = _judge(loss, committed, leader_epoch, log_end)
    return GroupReach(
        group=group,
        standing=standing,
        text=text,
        committed=committed,
        leader_epoch=leader_epoch,
    )


def _judge(
    loss: Loss, committed: int, epoch: int | None, log_end: int | None
) -> tuple[Standing, str]:
    if committed <= loss.start:
        return "before", "its commit covers none of the lost records"
    covered = f"[{loss.start}, {min(committed, loss.end)})"
    next_text = f"it {_next(loss, committed, log_end)}"
    if epoch is None:
        return "may_have_read", (
            f"may have read the lost records {covered}: the commit has no leader epoch; {next_text}"
        )
    after = loss.leader_epoch_after
    if after is not None and epoch >= after:
        return "after_loss", (
            f"committed after the election, by the epoch of its last record ({epoch}): whether it "
            "read lost records before is not known"
        )
    before = loss.leader_epoch_before
    if before is not None and epoch <= before:
        return "read", (
            f"read the lost records {covered}, by the epoch of its last one ({epoch}); {next_text}"
        )
    return "may_have_read", (
        f"may have read the lost records {covered}: it is not known which leader had epoch "
        f"{epoch}; {next_text}"
    )


def _next(loss: Loss, committed: int, log_end: int | None) -> str:
    """What may happen when the group goes on from its commit."""
    if log_end is not None and log_end < committed:
        return (
            f"may be reset as auto.offset.reset of its client says, or skip new records up to "
            f"{committed}: the log ends at {log_end}"
        )
    return (
        f"may skip the new records [{loss.start}, {committed}), which have the same offsets, or "
        "read some twice if its client checks epochs (KIP-320)"
    )

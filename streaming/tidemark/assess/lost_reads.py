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
    standing, text = _judge(loss, committed, leader_epoch)
    if standing in ("read", "may_have_read"):
        text += f"; it {_next(loss, committed, leader_epoch, log_end)}"
    return GroupReach(
        group=group,
        standing=standing,
        text=text,
        committed=committed,
        leader_epoch=leader_epoch,
    )


def _judge(loss: Loss, committed: int, epoch: int | None) -> tuple[Standing, str]:
    if committed <= loss.start:
        return "before", "its commit covers none of the lost records"
    covered = f"[{loss.start}, {min(committed, loss.end)})"
    may_have = f"may have read the lost records {covered}: "
    if epoch is None:
        return "may_have_read", f"{may_have}the commit has no leader epoch"
    if loss.leader_epoch_after is not None and epoch >= loss.leader_epoch_after:
        return "after_loss", (
            f"committed after the election, by the epoch of its last record ({epoch}): whether it "
            "read lost records before is not known"
        )
    if loss.leader_epoch_before is None or epoch > loss.leader_epoch_before:
        return "may_have_read", f"{may_have}it is not known which leader had epoch {epoch}"
    # The epoch is that of the last record alone.
    return "read", (
        f"read lost records up to offset {committed - 1}, by the epoch of that one ({epoch}): all "
        f"of {covered}, unless it began within or skipped some"
    )


def _next(loss: Loss, committed: int, epoch: int | None, log_end: int | None) -> str:
    """What may happen when the group goes on. A running client knows epochs without a commit."""
    who = "its client" if epoch is not None else "it runs on with a client that"
    back = f"or, if {who} checks epochs (KIP-320), begin with the first new record or stop"
    if log_end is not None and log_end < committed:
        return (
            f"may be reset as auto.offset.reset of its client says, skip new records up to "
            f"{committed}, {back}: the log ends at {log_end}"
        )
    return (
        f"may skip the new records [{loss.start}, {committed}), which have the same offsets, {back}"
    )

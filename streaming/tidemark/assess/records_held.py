"""The first sentence about a loss: which disk to save while it still can be, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from tidemark.core.text import rfc3339

Held = Literal["held", "cut", "unknown"]


class Holder(Struct, frozen=True, kw_only=True):
    """What one replica's last sample shows of the lost records [start, end).

    `held`: its log had them, up to `held_to` (exclusive). `cut`: it knows the leader that lacks
    them, and its log lacks them too.
    """

    broker: int
    state: Held
    held_to: int | None = None
    sampled_at: float | None = None
    # Whether it answered in the newest pass.
    answers: bool = False
    leads: bool = False
    # Of its whole log, in bytes.
    size_bytes: int | None = None


def first_sentence(
    name: str,
    lost: tuple[int, int],
    holders: Sequence[Holder],
    leader: int | None,
    leader_before: int | None,
) -> str:
    """What to do now: `name` is topic-partition, `lost` half open, `leader` the one of now."""
    held = _most_urgent_first(holders)
    if held:
        others = [f"broker {each.broker}" for each in held[1:]]
        more = (
            f" {', '.join(others).capitalize()} had them too: do the same there." if others else ""
        )
        return _save(name, lost, held[0]) + more
    former = next((h for h in holders if h.broker == leader_before), None)
    records = f"the lost records of {name}"
    if leader_before is not None and leader_before == leader:
        return (
            f"No replica is known to hold {records}: broker {leader} led then too, and its own "
            f"disk lost them. Copy the log of {name} on every other replica before it restarts."
        )
    if former is not None and former.state == "cut":
        return (
            f"Broker {leader_before} came back and cut {records}; no replica is known to hold "
            "them. Send them again from upstream, or read them from a backup of its disk."
        )
    if leader_before is not None:
        when = "now" if former is not None and former.answers else "before it starts again"
        return (
            f"Broker {leader_before} led before, and it is unknown whether it has {records}. "
            f"Copy its log of {name} {when}, from the segment that holds offset "
            f"{lost[0]} on."
        )
    return (
        f"No replica is known to hold {records}. Copy the log of {name} on every replica but "
        "the leader before one restarts."
    )


def before_it_starts(name: str, broker: int, leader: int | None) -> str:
    """The same of an unclean election, before it is known what was lost."""
    return (
        f"Keep the disk of broker {broker}, which led {name} before: copy its log before it starts "
        f"again or follows broker {leader}, because then it cuts what that one lacks."
    )


def _most_urgent_first(holders: Sequence[Holder]) -> list[Holder]:
    held = [holder for holder in holders if holder.state == "held"]
    return sorted(held, key=lambda h: (not h.leads, not h.answers, -(h.held_to or 0), h.broker))


def _save(name: str, lost: tuple[int, int], holder: Holder) -> str:
    start, end = lost
    to = holder.held_to
    part = "" if to is None or to >= end else f" below {to}"
    records = f"the lost records of {name}{part}"
    size = (
        ""
        if holder.size_bytes is None
        else f" (its whole log when read last: {_bytes(holder.size_bytes)})"
    )
    copy = f"copy its log of {name}, from the segment that holds offset {start} on{size}"
    at = "" if holder.sampled_at is None else f" ({rfc3339(holder.sampled_at)[11:19]} UTC)"
    if holder.leads:
        return f"Broker {holder.broker} leads and has {records}: {copy}, before it restarts."
    if holder.answers:
        return (
            f"Broker {holder.broker} is back and still had {records}{at}: {copy}, now, before it "
            "cuts them."
        )
    return (
        f"Broker {holder.broker} had {records} when it last answered{at}. Before it starts "
        f"again, {copy}, then start it."
    )


def _bytes(size: int) -> str:
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= limit:
            return f"{size / limit:.1f} {unit}"
    return f"{size} bytes"

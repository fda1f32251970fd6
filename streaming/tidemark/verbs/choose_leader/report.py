"""The report of `choose-leader`: as text, and as one JSON object."""

from __future__ import annotations

from typing import Any, Final

from tidemark.assess.election_commands import Command
from tidemark.assess.leader_choice import Choice, Gain, LeaderChoice
from tidemark.assess.leader_death import range_text, records_of
from tidemark.assess.losses import open_losses
from tidemark.core.records import View
from tidemark.core.text import counted, duration, printable, table, utc

_STANDINGS: Final = {
    "leader": "leader",
    "in_sync": "in sync",
    "eligible": "eligible",
    "out_of_sync": "out of sync",
}
ELECT_NO_OTHER: Final = (
    "Elect no other: that brings none back by itself, and loses what was written since."
)
_HEADINGS: Final = (
    "broker",
    "state",
    "sampled",
    "last epoch",
    "log end",
    "committed lost",
    "possibly lost",
    "oldest",
)


def as_text(view: View, made: LeaderChoice, commands: list[Command]) -> list[str]:
    """The replicas as a table, what others would truncate, the choice and its commands."""
    told = [f"LOST ALREADY: {printable(loss.description)}" for loss in open_losses(view)]
    lines = [_heading(view), *told, *_baseline(made), ""]
    rows = [_row(choice, view.at) for choice in made.choices]
    lines += table([_HEADINGS, *rows], right=(3, 4)) if rows else ["No replica was ever sampled."]
    lines.append("")
    for choice in made.choices:
        lines += _details(choice, is_first=not told)
    lines += ["", *verdict(view, made)]
    for command in commands:
        lines += [f"  # {command.purpose}", f"  {command.text}"]
    if commands:
        lines.append("Tidemark does not run these commands.")
    return lines


def verdict(view: View, made: LeaderChoice) -> list[str]:
    """Which replica to elect, what that loses, and what waiting would save."""
    best, lost = made.best, ", ".join(map(str, open_losses(view)))
    if best is None:
        lines = ["No replica answers: no election can succeed now."]
    elif best.standing == "leader" and lost:
        lines = [f"Broker {best.broker} leads without the lost offsets {lost}.", ELECT_NO_OTHER]
    elif best.standing == "leader":
        lines = [
            f"Broker {best.broker} leads and has every committed record: no election is needed."
        ]
    elif best.loses_nothing:
        more = f" besides {lost}, which are lost already" if lost else ""
        lines = [f"Elect broker {best.broker}: no committed record is lost{more}."]
    elif view.leader is not None:
        lines = [f"Broker {view.leader} leads: Kafka elects no other replica that is out of sync."]
    else:
        lines = [f"Of those that answer, broker {best.broker} loses the least: {losses(best)}."]
    return [*lines, *(gain_text(gain) for gain in made.gains)]


def losses(choice: Choice) -> str:
    """`12 committed records [5, 17), and possibly what was written after 17`."""
    parts = []
    if choice.committed is not None:
        number = counted(records_of(choice.committed), "committed record")
        parts.append(f"{number} {choice.committed}")
    if choice.possible is not None:
        parts.append(f"possibly {range_text(choice.possible)}")
    if not parts:
        return "no record that was seen"
    return ", and ".join(parts)


def gain_text(gain: Gain) -> str:
    seen = "" if gain.sampled_at is None else f" (last sampled {utc(gain.sampled_at)})"
    saved = counted(records_of(gain.saved), "record")
    committed = records_of(gain.committed)
    kept = f", {committed} of them committed" if committed else ""
    return (
        f"If broker {gain.broker}{seen} comes back and is elected, {saved} more survive: "
        f"{gain.saved}{kept}, and what it wrote later."
    )


def document(view: View, made: LeaderChoice, commands: list[Command]) -> dict[str, Any]:
    """The JSON form. Ranges are [from, to); a `to` of null is unknown."""
    best = made.best
    return {
        "cluster": view.kafka_cluster,
        "topic": view.topic,
        "partition": view.partition,
        "leader": view.leader,
        "leader_epoch": view.leader_epoch,
        "in_sync_replicas": view.in_sync_replicas,
        "eligible_leader_replicas": view.eligible_leader_replicas,
        "baseline": made.baseline._asdict(),
        "choices": [
            choice._asdict() | {"truncations": [cut._asdict() for cut in choice.truncations]}
            for choice in made.choices
        ],
        "best": None if best is None else best.broker,
        "loses_nothing": best is not None and best.loses_nothing,
        "lost_already": [[loss.start, loss.end] for loss in open_losses(view)],
        "waiting": [gain._asdict() for gain in made.gains],
        "commands": [command._asdict() for command in commands],
    }


def _heading(view: View) -> str:
    members = "unknown" if view.in_sync_replicas is None else view.in_sync_replicas
    leader = "none" if view.leaderless else "unknown" if view.leader is None else view.leader
    return (
        f"{view.topic}-{view.partition} of {view.kafka_cluster}: leader {leader}, "
        f"epoch {_known(view.leader_epoch)}, in sync {members} of {view.assigned}, "
        f"eligible {_known(view.eligible_leader_replicas)}"
    )


def _baseline(made: LeaderChoice) -> list[str]:
    base = made.baseline
    if base.committed is None:
        return ["No high watermark is known: what was committed is unknown."]
    if base.is_live:
        return [f"Leader {base.broker} has committed up to {base.committed}."]
    if base.broker is None:
        line = f"No leader was sampled. At least everything below {base.committed} was committed"
        return [f"{line}, by the high watermarks of followers."]
    seen_at = "" if base.seen_at is None else f" at {utc(base.seen_at)}"
    seen = f"committed up to {base.committed}, log end {_known(base.written)}"
    return [f"Leader {base.broker} was last seen{seen_at}: {seen}. What it wrote later is unknown."]


def _row(choice: Choice, now: float) -> tuple[str, ...]:
    sampled = "never" if choice.sampled_at is None else "now"
    if not choice.answers and choice.sampled_at is not None:
        sampled = f"{duration(max(0.0, now - choice.sampled_at) * 1000)} ago"
    unknown = choice.log_end_offset is None
    lost = choice.committed is not None or choice.possible is not None
    return (
        str(choice.broker),
        _STANDINGS[choice.standing] + ("" if choice.answers else ", silent"),
        sampled,
        _known(choice.last_epoch),
        _known(choice.log_end_offset),
        "unknown" if unknown else range_text(choice.committed),
        "unknown" if unknown else range_text(choice.possible),
        "" if not lost or not choice.lost_ms else f"≥ {duration(choice.lost_ms)}",
    )


def _details(choice: Choice, *, is_first: bool) -> list[str]:
    """Why a choice may lose records, and which others would truncate."""
    cuts = [
        f"broker {cut.broker} truncates from {cut.end} to {cut.start}"
        + ("" if cut.exact else " or below")
        for cut in choice.truncations
    ]
    kept = "no committed record is lost" if is_first else "no more committed record is lost"
    proof = kept if choice.doubt is None else choice.doubt
    return [f"{choice.broker}: {'; '.join([proof, *cuts])}"]


def _known(value: object) -> str:
    return "unknown" if value is None else str(value)

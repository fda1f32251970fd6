"""`tidemark inspect --losses`: losses from the topic of alerts or from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from tidemark.assess.losses import Loss, LossFilter, read_losses
from tidemark.assess.lost_reads import GroupReach
from tidemark.command_line.options import FINDING
from tidemark.command_line.output import echo
from tidemark.core.text import counted, csv_text, table
from tidemark.observations.alerts import alerts_of_file, alerts_of_topic
from tidemark.observations.loss_groups import as_text
from tidemark.settings import Settings

COLUMNS: Final = Loss.__struct_encode_fields__
_HEADING: Final = (
    *("CLUSTER", "TOPIC", "PARTITION", "LOST", "RECORDS", "WRITTEN BETWEEN", "EXPOSED"),
    *("OLD LEADER", "CONFIDENCE", "STATE", "FOUND", "FINGERPRINT"),
)


def show_losses(
    settings: Settings,
    wanted: LossFilter,
    source: str | None,
    form: str,
    reaches_of: Callable[[Sequence[Loss]], list[list[GroupReach]]] | None = None,
) -> int:
    """Prints the losses of a file or of the topic as csv, json or table; 3 if there are any.

    `reaches_of`: the groups that each reaches; they are shown too.
    """
    alerts = (
        alerts_of_topic(settings)
        if source is None
        else alerts_of_file(source, settings.detect, "inspect")
    )
    known = read_losses(alerts)
    losses = [loss for loss in known if wanted.matches(loss)]
    reaches = None if reaches_of is None or not losses else reaches_of(losses)
    if form == "csv":
        echo(as_csv(losses), nl=False)
    elif form == "json":
        for number, loss in enumerate(losses):
            more = {} if reaches is None else {"groups": reaches[number]}
            echo(msgspec.json.encode({**msgspec.to_builtins(loss), **more}))
    elif losses:
        records = counted(sum(loss.end - loss.start for loss in losses), "committed record")
        echo("\n".join(as_table(losses)))
        echo(
            f"\n{records} lost in {counted(len(losses), 'range')}. "
            "The second offset of a range is not lost."
        )
        for loss, groups in zip(losses, reaches or (), strict=False):
            echo("\n" + "\n".join(as_text(loss, groups)))
    else:
        elsewhere = sorted({f"{loss.cluster}/{loss.topic}-{loss.partition}" for loss in known})
        where = f" there; other losses: {', '.join(elsewhere)}" if elsewhere else ""
        echo(f"no committed record is known to be lost{where}.")
    return FINDING if losses else 0


def as_csv(losses: Iterable[Loss]) -> str:
    """A heading and a line per loss. Unknown values are empty."""
    return csv_text([COLUMNS, *map(msgspec.structs.astuple, losses)])


def as_table(losses: Sequence[Loss]) -> list[str]:
    """Aligned columns under a heading. Unknown values are `?`."""
    rows = [
        (
            *(loss.cluster, loss.topic, str(loss.partition)),
            *(f"[{loss.start}, {loss.end})", str(loss.end - loss.start)),
            f"{loss.from_time or '?'} … {loss.to_time or '?'}",
            "?" if loss.exposed_from is None else f"[{loss.exposed_from}, {loss.exposed_to})",
            "?" if loss.leader_before is None else str(loss.leader_before),
            *(loss.confidence, loss.state, loss.found_at, loss.fingerprint),
        )
        for loss in losses
    ]
    return table([_HEADING, *rows])

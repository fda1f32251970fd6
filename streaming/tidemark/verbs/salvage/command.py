"""`tidemark salvage`: the records of a lost range, from saved logs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import click

from tidemark.assess.losses import LossFilter, read_losses
from tidemark.command_line.options import (
    FINDING,
    bootstrap_option,
    cluster_option,
    command_config_option,
    config_option,
    load_with,
)
from tidemark.command_line.output import echo
from tidemark.command_line.places import NamedPlace, choose_cluster_name, partition_of
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.kafka.client import choose_connection
from tidemark.observations.alerts import alerts_of_file, alerts_of_topic
from tidemark.record_log.segments import Place
from tidemark.settings import Settings
from tidemark.verbs.salvage.folders import escrow_folders, held_lines, saved_folders
from tidemark.verbs.salvage.produce import Target, check_target
from tidemark.verbs.salvage.run import Run, print_records, produce
from tidemark.verbs.salvage.saved_log import LostRange, ranges_of

_offset = click.IntRange(0, 2**63 - 1)


@click.command("salvage")
@click.argument(
    "folders",
    metavar="DIR…",
    nargs=-1,
    type=click.Path(path_type=Path),
)
@config_option
@command_config_option
@click.option("--from-escrow", is_flag=True, help="Read the escrow instead; alone: list it.")
@click.option("--losses", is_flag=True, help="Look for the losses in Tidemark's topic of alerts.")
@click.option("--alerts", metavar="FILE|-", help="Losses in a file of events or alerts instead.")
@click.option("--exposed", is_flag=True, help="With losses: also what the old leader wrote above.")
@click.option("--from", "start", metavar="OFFSET", type=_offset, help="First offset.")
@click.option("--to", "end", metavar="OFFSET", type=_offset, help="First offset beyond the range.")
@click.option(
    "--epoch",
    type=click.IntRange(0, 2**31 - 1),
    help="Newest leader epoch of the lost records. Batches of later epochs are left out.",
)
@click.option(
    "--partition",
    "named",
    metavar="TOPIC-PARTITION",
    type=partition_of,
    help="The partition that is looked for.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "jsonl", "csv"]),
    default="table",
    show_default=True,
    help="A table shows the first records only.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format jsonl.")
@click.option(
    "--values",
    type=click.Choice(["base64", "text"]),
    default="base64",
    show_default=True,
    help="Keys, values and headers in JSON and CSV. What is not UTF-8 remains base64.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the records to a new file.",
)
@click.option("--produce-to", "topic", metavar="TOPIC", help="Show what would be sent to TOPIC.")
@click.option("--execute", is_flag=True, help="Send it.")
@click.option("--to-original", is_flag=True, help="Allow TOPIC to be the records' own topic.")
@click.option(
    "--to-partition",
    metavar="N",
    type=click.IntRange(0, 2**31 - 1),
    help="Partition of TOPIC. Default: the records' own number.",
)
@click.option(
    "--open-transactions", is_flag=True, help="Also send records of undecided transactions."
)
@bootstrap_option
@cluster_option
def salvage(
    folders: tuple[Path, ...],
    config: Path | None,
    command_config: Path | None,
    from_escrow: bool,
    losses: bool,
    alerts: str | None,
    exposed: bool,
    start: int | None,
    end: int | None,
    epoch: int | None,
    named: NamedPlace | None,
    form: str,
    as_json: bool,
    values: str,
    output: Path | None,
    topic: str | None,
    execute: bool,
    to_original: bool,
    to_partition: int | None,
    open_transactions: bool,
    bootstrap: str | None,
    name: str | None,
) -> int:
    """Read the records of lost offsets from saved logs, and send them to a topic.

    --from-escrow reads what `tidemark escrow` kept, and needs no DIR.

    DIR is the saved folder of a partition (orders-0), or a folder with such folders: log.dirs of a
    broker, or a copy. Several are searched together. Nothing is written to them.

    The offsets are those of the losses that Tidemark proved, or --from and --to.

    --produce-to shows what would be sent to a topic of the cluster that --bootstrap or --cluster
    names. Only --execute sends it. Headers tidemark.origin.* name topic, partition, offset and
    leader epoch of each record.

    Exit status: 0 every offset has its record, 3 some have none, 1 no record was found.
    """
    settings = load_with(config, command_config)
    form = "jsonl" if as_json else form
    place = None if named is None else (named.topic, named.partition or 0)
    name = choose_cluster_name([] if named is None else [named], name)
    if bool(folders) == from_escrow:
        raise ConfigError("give the saved folders, or --from-escrow.")
    _check_sending(topic, execute or to_original or open_transactions, to_partition, output)
    if topic is None:
        settings.kafka = choose_connection(settings, bootstrap)
    if from_escrow and not (losses or alerts or start is not None or end is not None):
        echo("\n".join(held_lines(settings, name)))
        return 0
    _check_options(losses or alerts is not None, exposed, start, end, epoch)
    by_range = start is not None and end is not None
    if from_escrow and by_range and place is None:
        raise ConfigError("--from and --to need --partition TOPIC-PARTITION with --from-escrow.")
    wanted = [] if by_range else _losses(settings, alerts, place, name, exposed=exposed)
    with ExitStack() as stack:
        if from_escrow:
            places = {lost.place for lost in wanted} or {place or ("", 0)}
            copies = Path(stack.enter_context(TemporaryDirectory(prefix="tidemark-escrow-")))
            folders = tuple(escrow_folders(settings, name, places, copies))
        saved = saved_folders(folders, place)
        if start is not None and end is not None:
            wanted = [LostRange(_one_place(saved, place), start, end, epoch)]
        run = Run(saved, wanted)
        if topic is None:
            found = print_records(run, form, _open(stack, output), text=values == "text")
        else:
            target = Target(topic, to_partition, open_transactions)
            check_target(target, {lost.place[0] for lost in wanted}, to_original=to_original)
            found = produce(run, settings, bootstrap, name, target, execute=execute)
    if not any(each.tally.found for each in found):
        raise ClusterError(
            "no record of the range was found. Is this the log of the old leader, saved before it "
            "started again?"
        )
    return FINDING if any(each.missing for each in found) else 0


def _check_options(
    by_losses: bool, exposed: bool, start: int | None, end: int | None, epoch: int | None
) -> None:
    by_range = start is not None or end is not None
    if by_losses == by_range:
        raise ConfigError(
            "give the lost offsets: either --losses (or --alerts), or --from and --to."
        )
    if by_range and (start is None or end is None or start >= end):
        raise ConfigError("give --from and a larger --to, the first offset that is not lost.")
    if by_losses and epoch is not None:
        raise ConfigError("--epoch belongs to --from and --to; losses have their epochs.")
    if by_range and exposed:
        raise ConfigError("--exposed belongs to --losses.")


def _check_sending(
    topic: str | None, sending: bool, to_partition: int | None, output: Path | None
) -> None:
    if topic is None and (sending or to_partition is not None):
        raise ConfigError(
            "--execute, --to-original, --to-partition and --open-transactions need --produce-to."
        )
    if topic is not None and output is not None:
        raise ConfigError("--produce-to and --output exclude each other.")


def _one_place(saved: dict[Place, list[Path]], place: Place | None) -> Place:
    """The partition of --from and --to."""
    if place is None and len(saved) == 1:
        return next(iter(saved))
    if place is None:
        raise ConfigError(
            f"logs of {len(saved)} partitions are saved there; choose one with "
            "--partition TOPIC-PARTITION."
        )
    if place not in saved:
        raise ConfigError(f"no log of {place[0]}-{place[1]} is saved there.")
    return place


def _losses(
    settings: Settings, source: str | None, place: Place | None, name: str | None, *, exposed: bool
) -> list[LostRange]:
    wanted = LossFilter(None if place is None else lambda *found: found == place, name)
    alerts = (
        alerts_of_topic(settings)
        if source is None
        else alerts_of_file(source, settings.detect, "salvage")
    )
    losses = [loss for loss in read_losses(alerts) if wanted.matches(loss)]
    clusters = sorted({loss.cluster for loss in losses})
    if len(clusters) > 1:
        raise ConfigError(
            f"there are losses of several clusters; choose one with --cluster: "
            f"{', '.join(clusters)}."
        )
    if not losses:
        raise ClusterError(
            "no loss is known there. `tidemark inspect --losses` lists all; --from and --to name "
            "other offsets."
        )
    return ranges_of(losses, exposed=exposed)


def _open(stack: ExitStack, output: Path | None) -> IO[str] | None:
    if output is None:
        return None
    try:
        return stack.enter_context(output.open("x", encoding="utf-8", newline=""))
    except OSError as error:
        raise ConfigError(
            f"cannot write {output}: {error.strerror}; give the name of a new file."
        ) from None

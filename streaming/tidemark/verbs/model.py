"""`tidemark model`: the replication model's stories, and the search for the shortest way to break a protocol."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import click

from tidemark.core.errors import ConfigError
from tidemark.model.invariants import INVARIANTS, Invariant
from tidemark.model.kraft import max_partition_epoch
from tidemark.model.protocols import PROTOCOLS
from tidemark.model.render import trace_document, trace_lines
from tidemark.model.scenarios import SCENARIOS
from tidemark.model.scenarios.told import tell
from tidemark.model.search import MAX_STATES, Progress, Verdict, check, walk
from tidemark.model.state import MAX_EPOCH, MAX_LOG_SIZE, MAX_RECORDS, MAX_REPLICAS, Constants
from tidemark.model.table import aligned

FOUND = 3
CAP_REACHED = 1
# Measured (tests/bench): three replicas under kip-966. The largest search keeps to what a large machine has.
MEBIBYTES_A_MILLION = 350
LARGEST_SEARCH = 50_000_000


@click.group()
def model() -> None:
    """Kafka's replication protocols, step by step and searched for what breaks them."""


@model.command("list")
def list_all() -> None:
    """List scenarios, protocols and invariants."""
    scenarios = [(scenario.name, ", ".join(scenario.protocols)) for scenario in SCENARIOS.values()]
    protocols = [(protocol.name, f"Kafka {protocol.kafka}") for protocol in PROTOCOLS.values()]
    click.echo(
        "Scenarios (tidemark model show NAME --protocol P), and the protocols under which each is worth telling:"
    )
    for line, scenario in zip(aligned(scenarios), SCENARIOS.values(), strict=True):
        click.echo(f"  {line}")
        click.echo(
            textwrap.fill(scenario.question, 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
        )
    click.echo("\nProtocols (tidemark model check --protocol P):")
    click.echo("\n".join(f"  {line}" for line in aligned(protocols)))
    click.echo("\nInvariants (--invariant I):")
    for invariant in INVARIANTS.values():
        click.echo(f"  {invariant.name}: {invariant.statement} Holds: {invariant.holds_where}.")


@model.command()
@click.argument("name")
@click.option(
    "--protocol", type=click.Choice(list(PROTOCOLS)), help="Play it under another protocol."
)
def show(name: str, protocol: str | None) -> None:
    """Play a scenario as a table and drawings."""
    if name not in SCENARIOS:
        raise ConfigError(f"there is no scenario {name}. There are: {', '.join(SCENARIOS)}.")
    click.echo("\n".join(tell(SCENARIOS[name], protocol)))


def _invariant(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """The invariant of a name, however that is hyphenated: WeakIsr, weak-isr."""
    wanted = re.sub(r"[^a-z]", "", (value or "").lower())
    name = next((name for name in INVARIANTS if name.lower() == wanted), None)
    if value is not None and name is None:
        raise click.BadParameter(
            f"there is no invariant {value}. There are: {', '.join(INVARIANTS)}."
        )
    return name


@model.command("check")
@click.option("--protocol", type=click.Choice(list(PROTOCOLS)), required=True)
@click.option("--replicas", type=click.IntRange(1, MAX_REPLICAS), default=2, show_default=True)
@click.option(
    "--log-size",
    type=click.IntRange(1, MAX_LOG_SIZE),
    default=2,
    show_default=True,
    help="Offsets in a log.",
)
@click.option(
    "--records",
    type=click.IntRange(0, MAX_RECORDS),
    default=2,
    show_default=True,
    help="Records that producers write.",
)
@click.option(
    "--max-epoch",
    type=click.IntRange(0, MAX_EPOCH),
    default=2,
    show_default=True,
    help="Leader epochs run from 0 to this.",
)
@click.option(
    "--invariant", "chosen", metavar="I", callback=_invariant, help="Check this one alone."
)
@click.option("--min-isr", type=click.IntRange(1, MAX_REPLICAS), default=1, show_default=True)
@click.option(
    "--unclean-election",
    is_flag=True,
    help="Let the controller elect replicas that are not in sync.",
)
@click.option("--lossy-disk", is_flag=True, help="Let brokers die with what they had not flushed.")
@click.option(
    "--max-states",
    type=click.IntRange(1, LARGEST_SEARCH),
    default=MAX_STATES,
    show_default=True,
    help=f"Stop after so many states (a million take {MEBIBYTES_A_MILLION} MiB).",
)
@click.option("--seed", type=int, help="Walk at random from this seed, instead of breadth first.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def check_protocol(
    protocol: str,
    replicas: int,
    log_size: int,
    records: int,
    max_epoch: int,
    chosen: str | None,
    min_isr: int,
    max_states: int,
    seed: int | None,
    *,
    unclean_election: bool,
    lossy_disk: bool,
    as_json: bool,
) -> int:
    """Search a protocol for the shortest way to break an invariant.

    Exit 0: it holds over the whole space. 3: a counterexample. 1: the cap was reached, or walks ended, and nothing broke.
    """
    constants = Constants(
        replicas, log_size, records, max_epoch, min_isr, unclean_election, lossy_disk
    )
    invariants = list(INVARIANTS.values()) if chosen is None else [INVARIANTS[chosen]]
    with _progress(max_states, quiet=as_json) as progress:
        if seed is None:
            verdict = check(PROTOCOLS[protocol], constants, invariants, max_states, progress)
        else:
            verdict = walk(
                PROTOCOLS[protocol], constants, invariants, Random(seed), max_states, progress
            )
    name = chosen if verdict.invariant is None else verdict.invariant.name
    if as_json:
        document = {
            "protocol": protocol,
            "invariant": name,
            "holds": verdict.holds,
            "complete": verdict.complete,
            "states": verdict.states,
        }
        traced = (
            {"initial": None, "steps": []}
            if verdict.trace is None
            else trace_document(verdict.trace)
        )
        click.echo(json.dumps(document | traced))
    else:
        click.echo(
            "\n".join(told(protocol, constants, verdict, invariants, walked=seed is not None))
        )
    return 0 if verdict.holds else CAP_REACHED if verdict.holds is None else FOUND


def told(
    protocol: str,
    constants: Constants,
    verdict: Verdict,
    invariants: list[Invariant],
    *,
    walked: bool,
) -> list[str]:
    """A verdict in words, and the counterexample if there is one."""
    space = f"{constants.replicas} replicas, log of {constants.log_size}, {constants.records} records, epochs 0 to {constants.max_epoch}"
    faults = [f"min ISR {constants.min_isr}"] * (constants.min_isr > 1)
    faults += ["unclean elections"] * constants.unclean_election + [
        "lossy disks"
    ] * constants.lossy_disk
    if PROTOCOLS[protocol].kraft:
        space = f"{space}, partition epochs 0 to {max_partition_epoch(constants)}"
    space = ", ".join((space, *faults))
    seen = f"{verdict.states:,} state{'s' * (verdict.states != 1)}"
    subject = invariants[0].name if len(invariants) == 1 else "every invariant"
    if verdict.holds:
        return [f"{protocol} keeps {subject} over the whole space: {seen} ({space})."]
    if verdict.trace is None or verdict.invariant is None:
        way = (
            "on random walks"
            if walked
            else "and there are more: raise --max-states, or walk at random by --seed"
        )
        return [f"{protocol}: {subject} held in {seen}, {way} ({space})."]
    length = "a way of" if walked else "the shortest way has"
    return [
        f"{protocol} breaks {verdict.invariant.name}: {length} {len(verdict.trace.steps)} steps ({space}).",
        verdict.invariant.statement,
        "",
        *trace_lines(verdict.trace),
    ]


@contextmanager
def _progress(max_states: int, *, quiet: bool) -> Iterator[Progress | None]:
    """A bar on standard error where a person looks at it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(
        length=max_states, label="states", file=sys.stderr, show_pos=True
    ) as bar:
        yield bar.update

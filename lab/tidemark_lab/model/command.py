"""`tidemark model`: shows replication scenarios, and searches protocols for violations."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import click

from tidemark.core.text import counted, table
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.kraft_controller import max_partition_epoch
from tidemark_lab.model.pages.command import export, serve
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.rehearse_command import rehearse
from tidemark_lab.model.render import trace_document, trace_lines
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.search import MAX_STATES, Progress, SearchResult, check, walk
from tidemark_lab.model.show import show
from tidemark_lab.model.state import MAX_EPOCH, MAX_LOG_SIZE, MAX_RECORDS, MAX_REPLICAS, Constants

FOUND = 3
LIST_WIDTH = 110
CAP_REACHED = 1
# Measured by tests/bench with three replicas under kip-966.
MEBIBYTES_PER_MILLION_STATES = 350
LARGEST_SEARCH = 50_000_000


@click.group()
def model() -> None:
    """Show Kafka's replication protocols step by step, and search them for violations."""


@model.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def list_all(as_json: bool) -> None:
    """List scenarios, protocols and invariants."""
    if as_json:
        click.echo(json.dumps(_catalogue()))
        return
    scenarios = [(scenario.name, ", ".join(scenario.protocols)) for scenario in SCENARIOS.values()]
    width = min(LIST_WIDTH, shutil.get_terminal_size((LIST_WIDTH, 0)).columns)
    protocols = [(protocol.name, protocol.releases) for protocol in PROTOCOLS.values()]
    click.echo(
        "Scenarios (tidemark model show NAME --protocol kip-320), with their main protocols:"
    )
    for line, scenario in zip(table(scenarios), SCENARIOS.values(), strict=True):
        indent = " " * 6
        question = textwrap.fill(
            scenario.question, width, initial_indent=indent, subsequent_indent=indent
        )
        click.echo(f"  {line}\n{question}")
    click.echo("\nProtocols (tidemark model check --protocol kip-320):")
    click.echo("\n".join(f"  {line}" for line in table(protocols)))
    click.echo("\nInvariants (--invariant I):")
    for invariant in INVARIANTS.values():
        words = f"{invariant.plain} {invariant.statement}"
        click.echo(f"  {invariant.name}: {words} Holds: {invariant.holds_where}.")


def _catalogue() -> dict[str, list[dict[str, Any]]]:
    return {
        "scenarios": [
            {"name": each.name, "question": each.question, "protocols": list(each.protocols)}
            for each in SCENARIOS.values()
        ],
        "protocols": [
            {"name": each.name, "releases": each.releases} for each in PROTOCOLS.values()
        ],
        "invariants": [
            {"name": each.name, "statement": each.statement, "holds_where": each.holds_where}
            for each in INVARIANTS.values()
        ],
    }


model.add_command(show)
model.add_command(rehearse)
model.add_command(serve)
model.add_command(export)


def _invariant(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """The name of an invariant. Case and hyphens do not matter: WeakIsr, weak-isr."""
    wanted = re.sub(r"[^a-z]", "", (value or "").lower())
    name = next((name for name in INVARIANTS if name.lower() == wanted), None)
    if value is not None and name is None:
        raise click.BadParameter(
            f"unknown invariant {value}. Known invariants: {', '.join(INVARIANTS)}."
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
    help="Maximum number of records in a log.",
)
@click.option(
    "--records",
    type=click.IntRange(0, MAX_RECORDS),
    default=2,
    show_default=True,
    help="Number of records that producers write.",
)
@click.option(
    "--max-epoch",
    type=click.IntRange(0, MAX_EPOCH),
    default=2,
    show_default=True,
    help="Largest leader epoch; the first one is 0.",
)
@click.option(
    "--invariant", "chosen", metavar="I", callback=_invariant, help="Check only this invariant."
)
@click.option("--min-isr", type=click.IntRange(1, MAX_REPLICAS), default=1, show_default=True)
@click.option(
    "--unclean-election",
    is_flag=True,
    help="Allow the controller to elect any replica that is not in sync. Under kip-966 it elects "
    "the last known leader without that.",
)
@click.option(
    "--lossy-disk",
    is_flag=True,
    help="Allow unclean shutdowns in which brokers lose records that they did not flush.",
)
@click.option(
    "--max-states",
    type=click.IntRange(1, LARGEST_SEARCH),
    default=MAX_STATES,
    show_default=True,
    help=f"Stop after this many states (one million take {MEBIBYTES_PER_MILLION_STATES} MiB).",
)
@click.option(
    "--seed", type=int, help="Search by random walks from this seed instead of breadth first."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
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
    """Search a protocol for the shortest violation of an invariant.

    Exit codes: 0 if it holds in every state; 3 if there is a counterexample; 1 if the search ended
    at --max-states, or the random walks ended, without a violation.
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
        trace = verdict.trace
        steps = {"initial": None, "steps": []} if trace is None else trace_document(trace)
        click.echo(json.dumps(document | steps))
    else:
        subject = chosen or "every invariant"
        bounds = _bounds(protocol, constants)
        lines = _verdict_lines(protocol, subject, bounds, verdict, walked=seed is not None)
        click.echo("\n".join(lines))
    return 0 if verdict.holds else CAP_REACHED if verdict.holds is None else FOUND


def _bounds(protocol: str, constants: Constants) -> str:
    """The bounds of the search as text, and the faults that it includes or excludes."""
    bounds = [
        f"{constants.replicas} replicas",
        f"log size {constants.log_size}",
        f"{constants.records} records",
        f"epochs 0 to {constants.max_epoch}",
    ]
    if PROTOCOLS[protocol].kraft:
        bounds.append(f"partition epochs 0 to {max_partition_epoch(constants)}")
    bounds += [
        f"min ISR {constants.min_isr}",
        "unclean elections" if constants.unclean_election else "no unclean elections",
        "lossy disks" if constants.lossy_disk else "no lossy disks",
    ]
    return ", ".join(bounds)


def _verdict_lines(
    protocol: str, subject: str, bounds: str, verdict: SearchResult, *, walked: bool
) -> list[str]:
    """A verdict as text, with the counterexample if there is one."""
    states = f"{verdict.states:,} state{'s' * (verdict.states != 1)}"
    if verdict.holds:
        space = "over the whole space within these bounds"
        return [f"{protocol} keeps {subject} {space}: {states} ({bounds})."]
    if verdict.trace is None or verdict.invariant is None:
        more = (
            "found by random walks"
            if walked
            else "and there are more: raise --max-states, or use --seed for random walks"
        )
        return [f"{protocol} keeps {subject} in the {states} searched, {more} ({bounds})."]
    kind = "a random walk" if walked else "the shortest counterexample"
    steps = counted(len(verdict.trace.steps), "step")
    return [
        f"{protocol} breaks {verdict.invariant.name}: {kind} has {steps} ({bounds}).",
        f"{verdict.invariant.plain} {verdict.invariant.statement}",
        "",
        *trace_lines(verdict.trace),
    ]


@contextmanager
def _progress(max_states: int, *, quiet: bool) -> Iterator[Progress | None]:
    """A progress bar on standard error, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(
        length=max_states, label="states", file=sys.stderr, show_pos=True
    ) as bar:
        yield bar.update

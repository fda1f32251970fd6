"""`tidemark model rehearse`: a recording of a cluster under another protocol or setting."""

from __future__ import annotations

import json
from collections import Counter

import click

from tidemark.core.codec import decode_batch
from tidemark.core.errors import ConfigError, WireError
from tidemark.core.text import counted, utc
from tidemark.observations.recorded_lines import check_sources, read_lines
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.rehearse import Finding, Rule
from tidemark_lab.model.rehearse import rehearse as findings_of
from tidemark_lab.model.state import MAX_REPLICAS

_LIMITS = (
    "Each verdict is about one event, as the samples show it: not about records that no sample "
    "shows, a disk that lost the end of its log between two samples, or what came later. Writes "
    "with acks=1 and changes of the in-sync set alone are not rehearsed."
)


@click.command()
@click.argument("recording")
@click.option("--protocol", type=click.Choice(list(PROTOCOLS)), required=True)
@click.option("--min-isr", type=click.IntRange(1, MAX_REPLICAS), help="Use another min ISR.")
@click.option(
    "--elr",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Whether eligible leader replicas may be elected, under kip-966.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each event.")
def rehearse(recording: str, protocol: str, min_isr: int | None, elr: str, as_json: bool) -> None:
    """Say what another protocol would have kept or lost at each election of a recording.

    RECORDING holds one batch of events per line, as `tidemark replay` reads it; - is standard
    input.
    """
    check_sources((recording,))
    rule = Rule(PROTOCOLS[protocol], min_isr, elr == "on")
    verdicts: Counter[str] = Counter()
    try:
        batches = (decode_batch(line.data) for line in read_lines((recording,)))
        for finding in findings_of(batches, rule):
            verdicts[finding.verdict] += 1
            click.echo(json.dumps(finding._asdict()) if as_json else _line(finding))
    except WireError as error:
        raise ConfigError(f"{recording} is no recording of tidemark collect: {error}") from None
    if not as_json:
        counts = ", ".join(f"{verdicts[each]} {each}" for each in ("kept", "lost", "not known"))
        click.echo(f"{counted(verdicts.total(), 'event')} under {protocol}: {counts}.\n{_LIMITS}")


def _line(found: Finding) -> str:
    below = "" if found.committed is None else f", committed below {found.committed}"
    place = f"{found.topic}-{found.partition}"
    verdict = f"{found.verdict.upper()}: {found.why}"
    return f"{utc(found.at)}  {place}  {found.event}{below}\n    {verdict}."

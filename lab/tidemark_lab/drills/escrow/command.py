"""`tidemark drill escrow`."""

from __future__ import annotations

import base64
import os
import random
import signal
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from tidemark_lab.brokers.signals import exit_on
from tidemark_lab.drills.escrow.run import Report, run_rounds
from tidemark_lab.drills.escrow.service import VIEW_SECONDS
from tidemark_lab.drills.worker import quiet_logs


@click.command("escrow")
@click.option("--rounds", type=click.IntRange(1), default=1, help="Of one election a topic.")
@click.option("--seed", type=int, help="Of sizes and times. Default: a random one.")
@click.option("--kills", is_flag=True, help="Kill the escrow once in each round.")
@click.option(
    "--delay",
    type=click.FloatRange(0, 10),
    default=VIEW_SECONDS,
    show_default=True,
    help="Seconds from a pass to its views: what Kafka and Spark take.",
)
@click.option("--encrypted", is_flag=True, help="With a key; needs the package cryptography.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def escrow(
    rounds: int, seed: int | None, kills: bool, delay: float, encrypted: bool, as_json: bool
) -> int:
    """Unclean elections that lose the old leader's disk: what `tidemark escrow` gives back."""
    exit_on(signal.SIGTERM, signal.SIGHUP)
    quiet_logs()
    seed = random.randrange(2**32) if seed is None else seed
    report = Report(seed=seed, delay_seconds=delay)
    with tempfile.TemporaryDirectory(prefix="tidemark-drill-") as folder:
        say = partial(click.echo, err=True)
        key = Path(folder) / "key"
        key.write_bytes(base64.b64encode(os.urandom(32)))
        options: dict[str, Any] = {"kills": kills, "key_file": str(key) if encrypted else None}
        run_rounds(report, rounds, Path(folder), say, **options)
    shown = msgspec.json.encode(report).decode() if as_json else "\n".join(report.lines())
    click.echo(shown)
    return 3 if report.failed else 0

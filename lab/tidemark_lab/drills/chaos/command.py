"""`tidemark drill chaos`: random faults on real brokers."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from tidemark.core.errors import ConfigError
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.layout import Layout
from tidemark_lab.brokers.signals import exit_on
from tidemark_lab.brokers.versions import VERSIONS
from tidemark_lab.drills.chaos.judgement import PASSED, TABLE, judge_recording
from tidemark_lab.drills.chaos.run import Run, run_chaos
from tidemark_lab.drills.worker import quiet_logs

KRAFT: Final = [number for number, version in VERSIONS.items() if version.layout is Layout]
FINDING: Final = 3
_folder = click.Path(path_type=Path, file_okay=False)


@click.command("chaos")
@click.option("--seconds", type=click.FloatRange(min=0), default=300.0, help="Length of a run.")
@click.option("--seed", type=int, help="Of the faults. Default: a random one, which is printed.")
@click.option("--hostile", is_flag=True, help="Faults that lose records.")
@click.option(
    "--replication-factor",
    "factors",
    type=click.IntRange(2, 3),
    multiple=True,
    default=(3, 2),
    help="Of benign runs, one each. Default: 3, then 2.",
)
@click.option(
    "--kafka", "version", type=click.Choice(KRAFT), default=KAFKA_VERSION, help="Of the brokers."
)
@click.option("--metadata-log", is_flag=True, help="The collector reads the metadata log too.")
@click.option(
    "--escrow", is_flag=True, help="`tidemark escrow` watches all topics, of benign runs."
)
@click.option("--record", type=_folder, metavar="DIR", help="Keep the recording here.")
@click.option(
    "--judge",
    "judged",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    multiple=True,
    metavar="DIR",
    help="Judge a recording again, without brokers.",
)
def chaos(
    seconds: float,
    seed: int | None,
    hostile: bool,
    factors: tuple[int, ...],
    version: str,
    metadata_log: bool,
    escrow: bool,
    record: Path | None,
    judged: tuple[Path, ...],
) -> int:
    """Inject random faults one after another, and judge every alert.

    Benign faults fail on a needless alert, an untrue claim and a lost record. Hostile ones lose
    records, and fail on a claim of a record that survived, on a loss that was sampled and is not
    claimed, and on a clean election that an alert calls unclean. A seed repeats the faults. The
    recording of a run that fails is kept.
    """
    if judged:
        return max(map(_judge, judged))
    exit_on(signal.SIGTERM, signal.SIGHUP)
    quiet_logs()
    seed = random.randrange(10_000) if seed is None else seed
    runs = [
        Run(seed, hostile, version, factor, metadata_log, escrow and not hostile)
        for factor in factors
    ]
    if hostile:
        del runs[1:]
    return max(_run(run, seconds, _of(record, run, len(runs))) for run in runs)


def _of(record: Path | None, run: Run, runs: int) -> Path | None:
    return record if record is None or runs == 1 else record / f"rf{run.replication_factor}"


def _run(run: Run, seconds: float, record: Path | None) -> int:
    """One run on a new cluster and its verdict."""
    kind = "hostile" if run.hostile else f"replication factor {run.replication_factor}"
    click.echo(f"seed {run.seed}, {kind}, Kafka {run.kafka}")
    with recording(record) as (folder, kept):
        try:
            run_chaos(run, seconds, folder, kept, click.echo)
        finally:
            run.write(kept)
        return _judge(kept)


@contextlib.contextmanager
def recording(record: Path | None) -> Iterator[tuple[Path, Path]]:
    """A folder for a cluster, which is removed, and one for the recording.

    Without `record`, the recording is removed too where the run passes.
    """
    folder = Path(tempfile.mkdtemp(prefix="tidemark-chaos-"))
    kept = record or Path(tempfile.mkdtemp(prefix="tidemark-chaos-record-"))
    kept.mkdir(parents=True, exist_ok=True)
    passed = False
    try:
        yield folder, kept
        passed = (kept / TABLE).read_text(encoding="utf-8").endswith(f"{PASSED}\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if record is None and passed:
            shutil.rmtree(kept, ignore_errors=True)
        else:
            click.echo(f"recording: {kept}")


def _judge(folder: Path) -> int:
    try:
        lines = judge_recording(folder)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{folder} is no recording: {error.filename} is missing. Give what --record kept."
        ) from None
    for line in lines:
        click.echo(line)
    return 0 if lines[-1] == PASSED else FINDING

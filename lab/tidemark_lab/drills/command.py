"""`tidemark drill`: faults on real brokers of this machine, and what Tidemark makes of them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.core.text import counted, table
from tidemark_lab.brokers.signals import exit_on
from tidemark_lab.brokers.versions import kafka_version
from tidemark_lab.drills.chaos.command import chaos
from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.schedules.table import DRILLS, NOT_PLAYED, find_drill
from tidemark_lab.drills.side_by_side import MAX_JOBS, Row, run_side_by_side
from tidemark_lab.judge.report import as_table, document, exit_code, junit
from tidemark_lab.judge.verdict import Result


@click.group("drill")
def drill() -> None:
    """Inject faults into a local cluster, and check alerts against the brokers' disks.

    A drill starts three brokers on 127.0.0.1, writes to them, watches them, injects its faults and
    compares the alerts with what happened: the producer's record of acknowledged offsets and the
    logs of every replica. The brokers end with it.

    Exit status: 0 all passed, 3 a check failed, 1 a check could not be made.
    """


drill.add_command(chaos)


@drill.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def list_drills(as_json: bool) -> None:
    """List the drills, and the stories of `tidemark model` that brokers cannot play."""
    if as_json:
        listed = [
            {"name": d.name, "shows": d.shows, "kafka_versions": list(d.versions)}
            for d in DRILLS.values()
        ]
        click.echo(json.dumps({"drills": listed, "not_played": NOT_PLAYED}, indent=1))
        return
    rows = [[d.name, ", ".join(d.versions), d.shows] for d in DRILLS.values()]
    for line in table([("DRILL", "KAFKA", "SHOWS"), *rows]):
        click.echo(line)
    click.echo("\nStories of `tidemark model list` without a drill:")
    for line in table([[f"  {name}", why] for name, why in NOT_PLAYED.items()]):
        click.echo(line)


_version = click.option(
    "--kafka", "version", metavar="VERSION", help="Only this version. Default: those of the drill."
)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
_junit = click.option(
    "--junit",
    "junit_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the checks as JUnit XML.",
)
_jobs = click.option(
    "--jobs",
    type=click.IntRange(1, MAX_JOBS),
    default=1,
    metavar="N",
    help="Run so many side by side, each with brokers of its own. Default: 1.",
)
_record = click.option(
    "--record",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep events, alerts and truth of each drill, in a folder of DIR.",
)


@drill.command("run")
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@_version
@_json
@_junit
@_record
@_jobs
def run(
    names: tuple[str, ...],
    version: str | None,
    as_json: bool,
    junit_file: Path | None,
    record: Path | None,
    jobs: int,
) -> int:
    """Run drills by name."""
    return _run([find_drill(name) for name in names], version, as_json, junit_file, record, jobs)


@drill.command("all")
@_version
@_json
@_junit
@_record
@_jobs
def run_all(
    version: str | None,
    as_json: bool,
    junit_file: Path | None,
    record: Path | None,
    jobs: int,
) -> int:
    """Run every drill, on each of its versions."""
    chosen: Iterable[Drill] = DRILLS.values()
    if version is not None:
        chosen = [d for d in chosen if version in d.versions]
    return _run(list(chosen), version, as_json, junit_file, record, jobs)


def _run(
    drills: Sequence[Drill],
    version: str | None,
    as_json: bool,
    junit_file: Path | None,
    record: Path | None,
    jobs: int,
) -> int:
    if version is not None:
        _check_version(drills, version)
    _check_writable(junit_file, record)
    exit_on(signal.SIGTERM, signal.SIGHUP)
    # Progress goes to standard error: standard output has the result.
    console = Console(stderr=True, markup=False, highlight=False)
    plan = [(d, v) for d in drills for v in d.versions if version in (None, v)]
    results = _play(console, plan, jobs, record)
    if as_json:
        click.echo(json.dumps(document(results), indent=1))
    else:
        for line in as_table(results):
            click.echo(line)
    if junit_file is not None:
        _write_junit(junit_file, results)
    return exit_code(results)


def _folder(row: Row, record: Path | None) -> Path | None:
    return None if record is None else record / f"{row[0].name}-{row[1]}"


def _play(console: Console, plan: Sequence[Row], jobs: int, record: Path | None) -> list[Result]:
    """Says what the drills do, and prints each result as it comes."""
    ended = 0
    with console.status(f"{counted(len(plan), 'drill')}, {jobs} side by side") as status:

        def say(line: str) -> None:
            if console.is_interactive:
                status.update(f"{ended} of {len(plan)} {line}")
            else:
                console.print(line, soft_wrap=True)

        def done(_number: int, result: Result) -> None:
            nonlocal ended
            ended += 1
            _print_result(console, f"{ended} of {len(plan)}", result)

        return run_side_by_side(plan, jobs, lambda row: _folder(row, record), say, done)


def _print_result(console: Console, of: str, result: Result) -> None:
    verdict = f"{result.verdict} in {result.seconds:.0f} s ({of})"
    console.print(f"{result.name} on {result.version}: {verdict}", soft_wrap=True)
    for finding in result.findings:
        console.print(f"  {finding}", soft_wrap=True)


def _check_version(drills: Sequence[Drill], version: str) -> None:
    kafka_version(version)
    for one in drills:
        if version not in one.versions:
            known = ", ".join(one.versions)
            raise ConfigError(f"the drill {one.name} runs on Kafka {known}, not on {version}.")
    if not drills:
        known = ", ".join(sorted({v for d in DRILLS.values() for v in d.versions}))
        raise ConfigError(f"no drill runs on Kafka {version}; there are drills on {known}.")


def _check_writable(junit_file: Path | None, record: Path | None) -> None:
    """Before the drills: they take minutes. Raises ConfigError. A file keeps its content."""
    option = "--record"
    try:
        if record is not None:
            record.mkdir(parents=True, exist_ok=True)
        option = "--junit"
        if junit_file is not None:
            is_new = not junit_file.exists()
            junit_file.open("ab").close()
            if is_new:
                junit_file.unlink()
    except OSError as error:
        raise ConfigError(
            f"{option}: cannot write {error.filename}: {error.strerror}. Choose another."
        ) from None


def _write_junit(path: Path, results: Sequence[Result]) -> None:
    try:
        path.write_bytes(junit(results))
    except OSError as error:
        raise TidemarkError(f"--junit: cannot write {path}: {error.strerror}.") from None

"""`tidemark drill`: faults on real brokers of this machine, and what Tidemark makes of them."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.core.text import counted, table
from tidemark_lab.brokers.signals import exit_on
from tidemark_lab.brokers.versions import kafka_version
from tidemark_lab.drills.chaos.command import chaos
from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.escrow.command import escrow
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
drill.add_command(escrow)


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


# Of `run` and of `all`.
_OPTIONS: Final = (
    click.Option(
        ["--kafka", "version"],
        metavar="VERSION",
        help="Only this version. Default: those of the drill.",
    ),
    click.Option(
        ["--unlisted"],
        is_flag=True,
        help="Run a version that no table lists, with the jars that the registry serves.",
    ),
    click.Option(["--json", "as_json"], is_flag=True, help="One JSON document."),
    click.Option(
        ["--junit", "junit_file"],
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Also write the checks as JUnit XML.",
    ),
    click.Option(
        ["--record"],
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Keep events, alerts and truth of each drill, in a folder of DIR.",
    ),
    click.Option(
        ["--jobs"],
        type=click.IntRange(1, MAX_JOBS),
        default=1,
        metavar="N",
        help="Run so many side by side, each with brokers of its own. Default: 1.",
    ),
)
_NAMES: Final = click.Argument(["names"], metavar="NAME…", nargs=-1, required=True)


@drill.command("run", params=[_NAMES, *_OPTIONS])
def run(names: tuple[str, ...], **options: Any) -> int:
    """Run drills by name."""
    return _run([find_drill(name) for name in names], **options)


@drill.command("all", params=[*_OPTIONS])
def run_all(version: str | None, **options: Any) -> int:
    """Run every drill, on each of its versions."""
    chosen = [d for d in DRILLS.values() if version is None or d.runs_on(version)]
    return _run(chosen, version, **options)


def _run(
    drills: Sequence[Drill],
    version: str | None,
    unlisted: bool,
    as_json: bool,
    junit_file: Path | None,
    record: Path | None,
    jobs: int,
) -> int:
    if version is not None:
        _check_version(drills, version, unlisted=unlisted)
    _check_writable(junit_file, record)
    exit_on(signal.SIGTERM, signal.SIGHUP)
    # Progress goes to standard error: standard output has the result.
    console = Console(stderr=True, markup=False, highlight=False)
    plan = [(d, v) for d in drills for v in (d.versions if version is None else [version])]
    results = _play(console, plan, jobs, record)
    shown = [json.dumps(document(results), indent=1)] if as_json else as_table(results)
    click.echo("\n".join(shown))
    if junit_file is not None:
        try:
            junit_file.write_bytes(junit(results))
        except OSError as error:
            raise TidemarkError(f"--junit: cannot write {junit_file}: {error.strerror}.") from None
    return exit_code(results)


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
            verdict = f"{result.verdict} in {result.seconds:.0f} s ({ended} of {len(plan)})"
            lines = [f"{result.name} on {result.version}: {verdict}"]
            lines += [f"  {finding}" for finding in result.findings]
            console.print("\n".join(lines), soft_wrap=True)

        def folder(row: Row) -> Path | None:
            return record and record / f"{row[0].name}-{row[1]}"

        return run_side_by_side(plan, jobs, folder, say, done)


def _check_version(drills: Sequence[Drill], version: str, *, unlisted: bool) -> None:
    kafka_version(version, unlisted=unlisted)
    for one in drills:
        if not one.runs_on(version):
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

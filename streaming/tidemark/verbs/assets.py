"""`tidemark assets`: writes the dashboards, rules, documentation and examples that come with it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tidemark.assets import list_assets
from tidemark.command_line.output import echo
from tidemark.core.errors import TidemarkError
from tidemark.core.links import RUNBOOK_URL
from tidemark.settings.forms import published_problem


@click.group()
def assets() -> None:
    """List or write the dashboards, rules, documentation and examples that come with Tidemark."""


_json = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@assets.command("list")
@_json
def list_command(as_json: bool) -> None:
    """Print the path of each file."""
    paths = [path for path, _ in list_assets()]
    echo(json.dumps({"files": paths}) if as_json else "\n".join(paths))


@assets.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--runbook-url",
    metavar="URL",
    help="Where people read the runbooks: the address that the rules' alerts link to, without the "
    f"anchor. Default: {RUNBOOK_URL}, which `tidemark export` serves.",
)
@click.option("--force", is_flag=True, help="Replace files that exist and differ.")
@_json
def export(folder: Path, runbook_url: str | None, force: bool, as_json: bool) -> None:
    """Write the files into FOLDER, below the paths that `tidemark assets list` prints.

    Exit status: 0 written, 1 a file exists with another content and --force is not given.
    """
    problem = None if runbook_url is None else published_problem(runbook_url)
    if problem is not None:
        raise click.BadParameter(problem, param_hint="--runbook-url")
    wanted = {}
    address = RUNBOOK_URL if runbook_url is None else runbook_url.rstrip("#")
    for path, content in list_assets():
        wanted[folder / path] = content
        if path.endswith((".yaml", ".yml")):
            wanted[folder / path] = content.replace(RUNBOOK_URL.encode(), address.encode())
    try:
        kept = [path for path, content in wanted.items() if not force and _differs(path, content)]
        if kept:
            raise TidemarkError(
                f"{kept[0]} exists and differs ({len(kept)} of {len(wanted)} files do). "
                "Nothing was written: give --force to replace them, or another folder."
            )
        for target, content in wanted.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        raise TidemarkError(f"cannot write {error.filename}: {error.strerror}.") from None
    if as_json:
        echo(json.dumps({"folder": str(folder), "files": sorted(map(str, wanted))}))
    else:
        echo(f"{len(wanted)} files written to {folder}")


def _differs(path: Path, content: bytes) -> bool:
    return path.exists() and (not path.is_file() or path.read_bytes() != content)

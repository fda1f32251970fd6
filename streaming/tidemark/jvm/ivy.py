"""Runs Apache Ivy once, as a child process, and shows its progress."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tidemark.core.errors import TidemarkError
from tidemark.jvm.cache import cache_dir
from tidemark.jvm.java import JavaHome

_MAX_LINES: Final = 2_000


@dataclass(frozen=True)
class Coordinates:
    group: str
    artifact: str
    version: str


def resolve(
    name: str, module: str, target: Path, ivy: Path, java: JavaHome, console: Console
) -> None:
    """Resolves the ivy.xml text `module` and puts the jars into `target`.

    Raises TidemarkError with Ivy's own reason when a jar or its registry cannot be reached.
    """
    work = cache_dir("ivy")
    description = target / "ivy.xml"
    description.write_text(module, encoding="utf-8")
    command = [
        *(str(java.java), f"-Divy.default.ivy.user.dir={work}", "-cp", str(ivy)),
        *("org.apache.ivy.Main", "-cache", str(work / "cache"), "-ivy", str(description)),
        *("-confs", "default", "-types", "jar", "bundle"),
        *("-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    lines: list[str] = []
    found = downloaded = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console.print(f"fetching the {name} jars …")
    # In our session: Ctrl-C at the terminal ends Ivy too.
    with (
        Progress(
            *columns, console=console, transient=True, disable=not console.is_interactive
        ) as progress,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as run,
    ):
        assert run.stdout is not None
        task = progress.add_task(f"{name} jars", total=None)
        try:
            for line in run.stdout:
                found += line.lstrip().startswith("found ")
                downloaded += line.lstrip().startswith("[SUCCESSFUL")
                progress.update(task, total=found or None, completed=downloaded)
                if len(lines) < _MAX_LINES:
                    lines.append(line.rstrip())
        except BaseException:
            run.kill()
            raise
    description.unlink()
    if run.returncode != 0:
        raise TidemarkError(
            f"the {name} jars could not be fetched: {_reason(lines)}. "
            "Cure: reach the registry, or give a folder of jars (TIDEMARK_JARS)."
        )
    jars = len(list(target.glob("*.jar")))
    console.print(f"{name} jars: {jars} ready, {downloaded} of them downloaded")


def _reason(lines: list[str]) -> str:
    """The artifacts that Ivy could not resolve or download; else its last lines."""
    texts = [line.strip().removeprefix("::").removesuffix("::").strip() for line in lines]
    named = [
        text
        for text in texts
        if text.endswith(": not found")
        or "[FAILED" in text
        or text.startswith("Server access error")
    ]
    return "; ".join(dict.fromkeys(named[-5:])) or " ".join(text for text in texts[-3:] if text)

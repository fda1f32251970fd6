"""Runs Apache Ivy once, as a child process, and turns its output into a progress bar."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from tidemark.core.errors import TidemarkError
from tidemark.jvm.cache import cache_dir
from tidemark.jvm.java import JavaHome

_WIDTH: Final = 30
_KEPT_LINES: Final = 2_000


@dataclass(frozen=True)
class Coordinates:
    group: str
    artifact: str
    version: str


class Progress:
    """Counts artifacts as Ivy names them: a bar that is redrawn on a terminal, one line per stage elsewhere."""

    def __init__(self, name: str, output: TextIO) -> None:
        self._name, self._output, self._terminal = name, output, output.isatty()
        self.found = 0
        self.downloaded = 0
        if not self._terminal:
            self._output.write(f"fetching the {name} jars …\n")

    def line(self, line: str) -> None:
        text = line.strip()
        if text.startswith("found "):
            self.found += 1
        elif text.startswith("[SUCCESSFUL"):
            self.downloaded += 1
        else:
            return
        if self._terminal:
            self._draw()

    def done(self, jars: int) -> None:
        if self._terminal:
            self._output.write("\r\033[K")
        self._output.write(
            f"{self._name} jars: {jars} ready, {self.downloaded} of them downloaded\n"
        )
        self._output.flush()

    def _draw(self) -> None:
        if self.downloaded == 0:
            self._output.write(f"\r\033[K{self._name} jars: {self.found} found")
        else:
            filled = min(_WIDTH, self.downloaded * _WIDTH // max(1, self.found))
            self._output.write(
                f"\r\033[K{self._name} jars: [{'#' * filled}{'.' * (_WIDTH - filled)}] {self.downloaded}/{self.found}"
            )
        self._output.flush()


def resolve(
    name: str, module: str, target: Path, ivy: Path, java: JavaHome, output: TextIO
) -> None:
    """Resolves the ivy.xml text `module` and puts the jars into `target`.

    Raises TidemarkError with Ivy's own last words when something cannot be resolved or no registry can be reached.
    """
    work = cache_dir("ivy")
    description = target / "ivy.xml"
    description.write_text(module, encoding="utf-8")
    command = [
        str(java.java), f"-Divy.default.ivy.user.dir={work}", "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(work / "cache"),
        "-ivy", str(description), "-confs", "default", "-types", "jar", "bundle",
        "-retrieve", f"{target}/[artifact]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip
    progress = Progress(name, output)
    lines: list[str] = []
    # Not in a session of its own: Ctrl-C at the terminal ends it together with us.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as run:
        assert run.stdout is not None
        try:
            for line in run.stdout:
                progress.line(line)
                if len(lines) < _KEPT_LINES:
                    lines.append(line.rstrip())
        except BaseException:
            run.kill()
            raise
    description.unlink()
    if run.returncode != 0:
        raise TidemarkError(
            f"the {name} jars could not be fetched: {_reason(lines)}. Cure: reach the registry, or give a folder of jars (TIDEMARK_JARS)."
        )
    progress.done(len(list(target.glob("*.jar"))))


def _reason(lines: list[str]) -> str:
    """Ivy's list of what it could not resolve or download, without its frames; else its last words."""
    texts = [line.strip().removeprefix("::").removesuffix("::").strip() for line in lines]
    named = [
        text
        for text in texts
        if text.endswith(": not found")
        or "[FAILED" in text
        or text.startswith("Server access error")
    ]
    return "; ".join(dict.fromkeys(named[-5:])) or " ".join(text for text in texts[-3:] if text)

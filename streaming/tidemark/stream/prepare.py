"""`tidemark stream --prepare`: what a start needs besides Kafka, made once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.core.errors import TidemarkError
from tidemark.jvm.cache import cache_lock
from tidemark.settings import Settings
from tidemark.stream.class_archive import archive_key, archive_name, find_archive
from tidemark.stream.session import LOCAL_JVM, prepare_java

SECONDS: Final = 600.0


class Prepared(NamedTuple):
    """The connector's jars, and the archive of Spark's classes; null where this Java has none."""

    jars: list[Path]
    archive: Path | None

    def __str__(self) -> str:
        lines = [f"Spark's Kafka connector: {len(self.jars)} jars in {self.jars[0].parent}"]
        if self.archive is None:
            lines.append(
                "Spark's classes: not archived, because this Java has no archive of its own "
                "(lib/server/classes.jsa). A start loads them one by one."
            )
        else:
            size = self.archive.stat().st_size / 1e6
            lines.append(f"Spark's classes: {self.archive} ({size:.0f} MB)")
        return "\n".join(lines)


def prepare(settings: Settings) -> Prepared:
    """Fetches the connector's jars and archives Spark's classes, unless that was done before.

    Raises TidemarkError.
    """
    jars = prepare_java(settings)
    java_home = Path(os.environ["JAVA_HOME"])
    key = archive_key(java_home)
    if key is None:
        return Prepared(jars, None)
    with cache_lock("classes"):
        made = find_archive(jars[0].parent, key)
        return Prepared(jars, made or _make(jars[0].parent, key, java_home))


def _make(folder: Path, key: str, java_home: Path) -> Path:
    """The archive, in the folder of the connector's jars."""
    try:
        with tempfile.TemporaryDirectory(prefix=".classes-", dir=folder) as work:
            draft, class_path = Path(work) / "archive", Path(work) / "class-path"
            program = [sys.executable, "-m", "tidemark.stream.class_loading"]
            _run([*program, str(draft), str(class_path), str(folder)])
            if not draft.exists():
                raise _error("this Java wrote no archive")
            java = [str(java_home / "bin" / "java"), *LOCAL_JVM.split(), "-Xshare:on"]
            classes = class_path.read_text(encoding="utf-8")
            check = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifySharedSpaces", "-cp", classes)
            _run([*java, f"-XX:SharedArchiveFile={draft}", *check, "-version"])
            # Of another Java, of an earlier PySpark, or damaged.
            for old in folder.glob("classes-*.jsa"):
                old.unlink()
            return draft.rename(folder / archive_name(key, draft.stat().st_size))
    except OSError as error:
        raise _error(f"cannot write {error.filename}: {error.strerror}") from None


def _run(command: list[str]) -> None:
    name = Path(command[0]).name
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _error(f"{name} took more than {SECONDS:.0f} s") from None
    if run.returncode != 0:
        last = (run.stdout.strip().splitlines() or ["no message"])[-1]
        raise _error(f"{name} ended with {run.returncode}: {last[:400]}")


def _error(reason: str) -> TidemarkError:
    return TidemarkError(
        f"cannot archive Spark's classes: {reason}. The stream starts without the archive, too, "
        "and takes longer."
    )

"""Spark's classes, loaded and verified once: an archive that later starts of a local run map.

A start loads 17,000 classes. With the archive, which is Java's own (application class-data sharing,
JEP 350), it takes a third less CPU. Java checks that the archive was made by the same Java from the
same class path, and starts without it otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tidemark.stream.class_path import spark_home

# Java would name on standard output why it does not use an archive.
QUIET: Final = "-Xlog:cds*=off"


def archive_key(java_home: Path) -> str | None:
    """What an archive is made of: a Java and the jars of a PySpark.

    Null for a Java without an archive of its own classes to build on, as that of a wheel.
    """
    base = java_home / "lib" / "server" / "classes.jsa"
    if not base.exists():
        return None
    files = [base.resolve(), *sorted((spark_home() / "jars").glob("*.jar"))]
    facts = [(str(path), (found := path.stat()).st_size, int(found.st_mtime)) for path in files]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def archive_name(key: str, size: int) -> str:
    """With its size: Java crashes on an archive that was cut off."""
    return f"classes-{key}-{size}.jsa"


def find_archive(folder: Path, key: str) -> Path | None:
    """The archive of a key in a folder; None where none was made, or it is damaged."""
    for path in folder.glob(f"classes-{key}-*.jsa"):
        # Another process may replace it meanwhile.
        with suppress(FileNotFoundError):
            if path.name == archive_name(key, path.stat().st_size):
                return path
    return None


def archive_options(jars: Sequence[Path], java_home: Path) -> list[str]:
    """Options of Java for a start with the archive beside the connector's `jars`; [] without."""
    key = archive_key(java_home) if jars else None
    path = None if key is None else find_archive(jars[0].parent, key)
    return [] if path is None else [QUIET, "-Xshare:auto", f"-XX:SharedArchiveFile={path}"]

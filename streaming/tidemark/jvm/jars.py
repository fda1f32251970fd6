"""The jars of Spark's Kafka connector: from a folder, or fetched into the cache by Ivy.

Ivy is PySpark's own and works in its own cache, apart from ~/.ivy2 and ~/.m2. A set is complete or
absent: it is fetched beside its place and renamed into it, under a lock, so that two processes may
fetch at once.

Ivy compares a jar with a sum from the same registry, which a proxy can replace together with it. So
it is compared with the SHA-256 sum in a file of this package too, in the form of sha256sum.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tidemark.core.errors import TidemarkError
from tidemark.core.extras import install_command
from tidemark.jvm.cache import cache_dir, cache_lock
from tidemark.jvm.java import JavaHome, find_java

# Of Spark's Kafka connector.
SUMS: Final = Path(__file__).with_name("jars.sha256")

_MARKER: Final = "complete.json"
_JAR_NAME: Final = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[^/]*)\.jar")
_MAX_LINES: Final = 2_000


def known_sums(file: Path = SUMS) -> dict[str, str]:
    """File name -> SHA-256 in hexadecimal digits."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def check_sums(file: Path, roots: Iterable[str], jars: Iterable[Path]) -> list[str]:
    """The names of jars without a committed sum: some, where not every root has one.

    Raises TidemarkError for a jar that differs from its sum, and for an unlisted one beside listed
    roots.
    """
    sums = known_sums(file)
    listed = all(root in sums for root in roots)
    unlisted = []
    for jar in jars:
        expected = sums.get(jar.name)
        if expected is None and listed:
            raise TidemarkError(
                f"{jar.name} was fetched but is not in the list of jars. Do not use it: ask who "
                "runs the registry or proxy, or give a folder of jars that you trust "
                "(TIDEMARK_JARS)."
            )
        if expected is None:
            unlisted.append(jar.name)
        elif digest(jar) != expected:
            raise TidemarkError(
                f"{jar.name} as fetched has another SHA-256 sum than the one in the list of jars. "
                "Do not use it: a proxy or the registry gave another file. Try another network, "
                "or give a folder of jars that you trust (TIDEMARK_JARS)."
            )
    return unlisted


def digest(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class JarSet:
    """Jars to fetch. `excluded`: artifacts already on the class path, in any version.

    `sums`: the file with their SHA-256 sums.
    """

    name: str
    roots: tuple[Coordinates, ...]
    sums: Path
    excluded: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        return "-".join((self.name, *(root.version for root in self.roots)))

    @property
    def root_names(self) -> list[str]:
        """The file names of the roots."""
        return [f"{root.artifact}-{root.version}.jar" for root in self.roots]

    def ivy_module(self) -> str:
        """The text of an ivy.xml with the roots as its dependencies."""
        dependencies = "".join(
            f"<dependency org={quoteattr(root.group)} name={quoteattr(root.artifact)}"
            f" rev={quoteattr(root.version)} conf='default->default'/>"
            for root in self.roots
        )
        excludes = "".join(
            f"<exclude org='*' module={quoteattr(name)} matcher='exact'/>"
            for name in sorted(self.excluded)
        )
        return (
            "<ivy-module version='2.0'>"
            f"<info organisation='tidemark' module={quoteattr(self.name)}/>"
            "<configurations><conf name='default'/></configurations>"
            f"<dependencies>{dependencies}{excludes}</dependencies></ivy-module>"
        )


def connector_jars(folder: str | Path | None = None, java: JavaHome | None = None) -> list[Path]:
    """Spark's Kafka connector for `spark.jars`, in PySpark's version, without Spark's own jars."""
    import pyspark

    shipped = frozenset(filter(None, map(_artifact, pyspark_jars().glob("*.jar"))))
    roots = (Coordinates("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark.__version__),)
    return fetch_jars(JarSet("connector", roots, SUMS, shipped), folder, java)


def pyspark_jars() -> Path:
    """PySpark's folder of jars. Raises TidemarkError where PySpark is not installed."""
    try:
        import pyspark
    except ImportError:
        raise TidemarkError(
            "PySpark is not installed. "
            f"Install it with Tidemark's wheel: {install_command('stream')}."
        ) from None
    return Path(pyspark.__path__[0]) / "jars"


def fetch_jars(
    wanted: JarSet, folder: str | Path | None = None, java: JavaHome | None = None
) -> list[Path]:
    """The jars of a set: of the folder, else of the cache. Raises TidemarkError."""
    folder = folder or os.environ.get("TIDEMARK_JARS")
    if folder:
        return _from_folder(wanted, Path(folder))
    place = cache_dir("jars") / wanted.key
    cached = _cached(place, wanted)
    if cached is not None:
        return cached
    with cache_lock("jars"):
        # Another process may have fetched it meanwhile.
        return _cached(place, wanted) or _fetch(wanted, place, java or find_java())


def _from_folder(wanted: JarSet, folder: Path) -> list[Path]:
    """All jars of `folder`/<set name>, or of `folder` itself; the roots must be among them."""
    place = folder / wanted.name if (folder / wanted.name).is_dir() else folder
    jars = sorted(place.glob("*.jar"))
    for name in wanted.root_names:
        if name not in {jar.name for jar in jars}:
            raise TidemarkError(
                f"the folder {place} holds no {name}. "
                f"Put the whole {wanted.name} set there, "
                "or leave the folder out (option and TIDEMARK_JARS) to have it fetched."
            )
    return [jar for jar in jars if _artifact(jar) not in wanted.excluded]


def _artifact(jar: Path) -> str | None:
    name = _JAR_NAME.fullmatch(jar.name)
    return name["artifact"] if name else None


def _cached(place: Path, wanted: JarSet) -> list[Path] | None:
    """The jars that the marker lists, if it is for the same set and all of them exist."""
    try:
        marker = json.loads((place / _MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    jars = [place / name for name in marker["jars"]]
    same = marker["module"] == wanted.ivy_module()
    return jars if same and all(jar.exists() for jar in jars) else None


def _fetch(wanted: JarSet, place: Path, java: JavaHome) -> list[Path]:
    draft = Path(tempfile.mkdtemp(prefix=f".{wanted.key}-", dir=place.parent))
    module, console = wanted.ivy_module(), Console(stderr=True, soft_wrap=True)
    try:
        resolve(wanted.name, module, draft, _ivy(), java, console)
        jars = sorted(jar.name for jar in draft.glob("*.jar"))
        unlisted = check_sums(wanted.sums, wanted.root_names, [draft / name for name in jars])
        if unlisted:
            console.print(
                f"{wanted.name} jars: {len(unlisted)} of {len(jars)} have no committed SHA-256 "
                "sum; they are what the registry's own checksums say"
            )
        marker = json.dumps({"module": module, "jars": jars})
        (draft / _MARKER).write_text(marker, encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [place / name for name in jars]


def _ivy() -> Path:
    found = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not found:
        raise TidemarkError(
            f"{pyspark_jars()} holds no ivy-*.jar: this PySpark is incomplete. Install it again."
        )
    return found[-1]


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

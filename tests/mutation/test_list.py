"""The list of surviving mutants: functions and reasons, and how a run is compared with it."""

from __future__ import annotations

import importlib

from tests.mutation.results import Mutant, change_of
from tests.mutation.survivors import Listed, as_yaml, compare, proven_equivalent, read_list
from tests.mutation.workspace import TARGETS


def test_every_entry_names_a_function_of_a_target_and_a_reason() -> None:
    for entry in read_list():
        module, _, function = entry.function.rpartition(".")
        assert module in TARGETS
        assert hasattr(importlib.import_module(f"tidemark.{module}"), function), entry.function
        assert len(entry.reason.split()) > 3, entry.function
        assert entry.changes, entry.function


def test_unlisted_survivors_and_listed_changes_that_survive_no_longer_are_found() -> None:
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


def test_equivalent_mutants_are_counted_by_module() -> None:
    again = Mutant("core.x.f", "- a\n+ b", "survived")
    listed = [
        Listed("core.x.f", "because", ["- a\n+ b", "- gone\n+ away"], equivalent=True),
        Listed("core.x.f", "because", ["- a\n+ c"]),
    ]
    other = Mutant("core.x.f", "- a\n+ c", "survived")
    assert proven_equivalent([again, again, other], listed) == {"core.x": 1}


def test_a_survivor_is_printed_in_the_form_of_the_list() -> None:
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


def test_a_change_has_only_the_changed_lines() -> None:
    lines = (" def f():", "-        return 1", "+        return 2", "     x")
    diff = "\n".join(("--- a.py", "+++ a.py", "@@ -1,3 +1,3 @@", *lines))
    assert change_of(diff) == "- return 1\n+ return 2"

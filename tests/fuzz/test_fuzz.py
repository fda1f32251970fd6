"""A short run of each target, and that a fault of a parser is found."""

from __future__ import annotations

import pytest

from tests.fuzz import __main__ as module
from tests.fuzz.__main__ import fuzz, trial
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tidemark.core.errors import WireError

INPUTS = 200


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_inputs_raise_only_typed_errors(name: str) -> None:
    """The same inputs in each run: `make soak` tries others for minutes."""
    number, found = fuzz(name, 60.0, seed=1, count=INPUTS)
    assert number == INPUTS
    assert [each.what for each in found] == []


def test_another_error_and_a_slow_parser_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(data: bytes) -> None:
        if data == b"slow":
            sum(range(100_000))
        if data == b"typed":
            raise WireError("no")
        data.decode("ascii")

    target = Target([], call, (WireError,))
    assert trial(target, b"x") is None and trial(target, b"typed") is None
    assert (trial(target, b"\xff") or "").startswith("UnicodeDecodeError at test_fuzz.py")
    monkeypatch.setattr(module, "MAX_SECONDS", 0.0)
    assert (trial(target, b"slow") or "").endswith("CPU time")

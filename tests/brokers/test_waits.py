"""There is one way to wait for something: `tidemark_lab.brokers.wait`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.wait import comes_true, wait_until

# Loops that sleep and wait for nothing with a deadline, or not in this thread.
ALLOWED = {
    "lab/tidemark_lab/brokers/wait.py comes_true": "it is the way",
    "lab/tidemark_lab/drills/side_by_side.py run_side_by_side": "runs jobs; each has a deadline",
    "tests/__main__.py _wait": "waits for the end of pytest, as long as that takes",
    "tests/bench/bench_collect_brokers.py measured": "lets a collector warm up for a fixed time",
    "tests/bench/bench_collect_brokers.py write": "a load; it ends with its process",
    "tests/cluster/test_jmx.py keep_writing": "a load for a fixed time",
    "tests/cluster/test_jmx.py work": "passes of a collector for a fixed time",
    "tests/cluster/test_metadata_log.py work": "passes of a collector, with a deadline that fails",
    "tests/collect/jmx/test_source.py answer": "a server that drips",
    "tests/collect/test_fast_high_watermarks.py watch": "in the loop of the collector's tasks",
    "tests/browser/chromium.py wait_until": "asks a page, and takes an error for no",
    "tests/dashboards/stage.py _play": "plays a scene for a fixed time, with a deadline that fails",
    "tests/histories/history.py _live": "moves a simulated world, in simulated time",
    "tests/notify/test_outages.py run": "plays an outage for a fixed time",
    "tests/stream/test_stream.py publish": "a load until its caller has enough",
}


def loops_that_sleep(node: ast.AST, function: str = "") -> Iterator[str]:
    """The innermost function of each `while` with a sleep in its body."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
    if isinstance(node, ast.While) and any(map(_is_sleep, ast.walk(node))):
        yield function
    for inner in ast.iter_child_nodes(node):
        yield from loops_that_sleep(inner, function)


def _is_sleep(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name == "sleep"


def test_no_other_loop_waits() -> None:
    found = {
        f"{file.relative_to(ROOT)} {function}"
        for folder in ("lab", "tests")
        for file in (ROOT / folder).rglob("*.py")
        for function in loops_that_sleep(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == ALLOWED.keys()


def test_a_wait_returns_what_came_true() -> None:
    answers = iter([0, 0, 7])
    assert wait_until(lambda: next(answers), 20.0, "a number") == 7


def test_a_wait_that_fails_says_what_was_awaited_and_last_seen() -> None:
    with pytest.raises(ClusterError, match=r"^the number is 3: not within 0 s; last seen: 2\.$"):
        wait_until(lambda: False, 0.0, "the number is 3", seen=lambda: 2)
    with pytest.raises(ClusterError, match=r"^it is there: not within 0 s; last seen: \[\]\.$"):
        wait_until(list, 0.0, "it is there")
    with pytest.raises(ClusterError, match=r"^it is there: not within 0 s\.$"):
        wait_until(lambda: False, 0.0, "it is there")


def test_a_wait_ends_with_what_makes_it_useless() -> None:
    def check() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        wait_until(lambda: False, 20.0, "never", check=check)


def test_what_something_else_judges_may_stay_untrue() -> None:
    assert comes_true(lambda: True, 0.0)
    assert not comes_true(lambda: False, 0.02)

"""Shared by all tests: the order of the sections, missing tools, Hypothesis's profiles."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import structlog
from hypothesis import Phase, settings

from tests.sections import SECTIONS
from tidemark.core.errors import TidemarkError
from tidemark.kafka.client_log import show_client_log

ROOT = Path(__file__).parent.parent
IN_CI = os.environ.get("CI") == "true"
# Fixtures that run in the background: their tests go last in their section.
BACKGROUND = frozenset({"outage"})

# The same examples in every run of CI; a failing one prints how to repeat it.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None, print_blob=True)
# For tests.mutation: few examples, and the first failing one is enough.
settings.register_profile(
    "mutation",
    max_examples=8,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
)
settings.load_profile("ci" if IN_CI else "dev")


def need(tool: str) -> str:
    """The path of a program that a test needs; skips the test without it, fails it in CI."""
    return shutil.which(tool) or missing(
        f"{tool} is not installed (make system installs it as root on Debian)"
    )


def need_found(find: Callable[[], object]) -> None:
    """Finds what a test needs of the lab, by what says itself what is missing."""
    try:
        find()
    except TidemarkError as error:
        missing(str(error))


def missing(reason: str) -> NoReturn:
    """Skips visibly; with CI=true a missing tool is a failure."""
    if IN_CI:
        pytest.fail(f"with CI=true no tool may be missing: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """The logs of the process and of kafka-python, which verbs configure."""
    logger = logging.getLogger("kafka")
    before = logger.level, logger.propagate
    yield
    show_client_log("none")
    logger.level, logger.propagate = before
    structlog.reset_defaults()


def section_of(path: Path) -> str:
    """The folder below tests/ that holds a test."""
    inside = path.relative_to(ROOT / "tests").parts
    return inside[0] if len(inside) > 1 else "other"


def pytest_configure() -> None:
    # A shell's background jobs ignore Ctrl-C and pass that on: also to what the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sections in order; within a section, the tests of a background fixture last."""

    def rank(item: pytest.Item) -> tuple[int, bool]:
        section = section_of(item.path)
        place = SECTIONS.index(section) if section in SECTIONS else len(SECTIONS)
        return place, bool(BACKGROUND.intersection(getattr(item, "fixturenames", ())))

    items.sort(key=rank)


_seconds: dict[str, float] = defaultdict(float)
_began: dict[str, float] = {}


def pytest_runtest_logstart(nodeid: str) -> None:
    _began[nodeid] = time.monotonic()


def pytest_runtest_logfinish(nodeid: str, location: tuple[str, int | None, str]) -> None:
    _seconds[section_of(ROOT / location[0])] += time.monotonic() - _began.pop(nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("time by section")
    for section, seconds in _seconds.items():
        terminalreporter.line(f"{section:<12} {seconds:7.1f} s")

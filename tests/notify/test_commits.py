"""Commits beside the posts: the newest wins, none is forgotten, and a coordinator that hangs holds nothing up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from tidemark_exporters.notify import commits
from tidemark_exporters.notify.commits import BackgroundStore
from tidemark_exporters.notify.positions import Mark


class Coordinator:
    """Hangs while `free` is not set; refuses the first `failures` commits."""

    def __init__(self, failures: int = 0) -> None:
        self.free = threading.Event()
        self.entered = threading.Event()
        self.failures = failures
        self.saved: list[int] = []
        self.closed = False

    def load(self) -> dict[int, Mark]:
        return {0: Mark(1)}

    def save(self, marks: dict[int, Mark]) -> bool:
        self.entered.set()
        assert self.free.wait(10)
        if self.failures:
            self.failures -= 1
            return False
        self.saved.append(marks[0].offset)
        return True

    def close(self) -> None:
        self.closed = True


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_saving_does_not_wait_and_the_newest_marks_win() -> None:
    beneath = Coordinator()
    store = BackgroundStore(beneath, "hook")
    assert store.load() == {0: Mark(1)}
    assert store.save({0: Mark(2)})
    assert beneath.entered.wait(10)
    for offset in range(3, 100):
        assert store.save({0: Mark(offset)})
    assert beneath.saved == []
    beneath.free.set()
    store.close()
    assert beneath.saved == [2, 99]
    assert beneath.closed


def test_a_commit_that_failed_is_made_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commits, "RETRY_SECONDS", 0.01)
    beneath = Coordinator(failures=3)
    beneath.free.set()
    store = BackgroundStore(beneath, "hook")
    store.save({0: Mark(7)})
    wait_for(lambda: beneath.saved == [7])
    store.close()
    assert beneath.closed
    assert capsys.readouterr().out.count("cannot commit what was delivered") == 1


def test_the_end_waits_for_a_coordinator_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "CLOSE_SECONDS", 0.05)
    beneath = Coordinator()
    store = BackgroundStore(beneath, "hook")
    store.save({0: Mark(2)})
    assert beneath.entered.wait(10)
    store.close()
    assert not beneath.closed
    beneath.free.set()
    wait_for(lambda: beneath.closed)


def test_the_last_marks_are_tried_once_at_the_end_even_if_they_failed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits, "RETRY_SECONDS", 60.0)
    beneath = Coordinator(failures=1)
    beneath.free.set()
    store = BackgroundStore(beneath, "hook")
    store.save({0: Mark(7)})
    wait_for(lambda: beneath.failures == 0)
    store.close()
    assert beneath.saved == [7]
    assert beneath.closed


def test_a_store_that_was_never_used_closes_at_once() -> None:
    beneath = Coordinator()
    BackgroundStore(beneath, "hook").close()
    assert beneath.closed

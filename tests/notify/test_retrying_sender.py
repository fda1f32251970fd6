"""A sender's threads: no address delays another, commits delay no post, failures are visible."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.delivery.services import wait_for
from tests.export.make import alert
from tests.notify.rig import (
    ALERTMANAGER,
    DOWN,
    WEBHOOK,
    Clock,
    FakeWebhook,
    MemoryStore,
    Rig,
    settings_of,
)
from tidemark_exporters.notify import retrying_sender
from tidemark_exporters.notify.delivery import Delivery, make_delivery
from tidemark_exporters.notify.offsets import Commit


class Coordinator(MemoryStore):
    """Refuses the first `failures` commits. With `hangs` it waits until `free` is set."""

    def __init__(self, failures: int = 0, *, hangs: bool = False) -> None:
        super().__init__()
        self.free = threading.Event()
        if not hangs:
            self.free.set()
        self.entered = threading.Event()
        self.failures = failures
        self.saved: list[int] = []
        self.closed = False

    def save(self, commits: dict[int, Commit]) -> bool:
        self.entered.set()
        assert self.free.wait(10)
        if self.failures:
            self.failures -= 1
            return False
        self.saved.append(commits[0].offset)
        return True

    def close(self) -> None:
        self.closed = True


class Running:
    """Delivery to one fake webhook, with its threads."""

    def __init__(self, store: Coordinator) -> None:
        self.hook, self.store = FakeWebhook(Clock()), store
        self.delivery = make_delivery(
            settings_of("hook"), {"hook": [self.hook]}, {0: 0}, lambda *_: store
        )
        self.offset = 0
        self.delivery.start()

    def lose(self, count: int = 1) -> None:
        """Losses, each of its own cause, as they are posted at once."""
        now = time.time()
        for _ in range(count):
            place = str(self.offset)
            loss = alert("KafkaCommittedDataLoss", at=now, partition=place, cluster=place)
            self.delivery.alerts([(loss, (0, self.offset))])
            self.offset += 1
            wait_for(lambda: len(self.hook.notified) == self.offset)


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    started: list[Delivery] = []

    def start(kind: type[Coordinator] = Coordinator, **options: Any) -> Running:
        running = Running(kind(**options))
        started.append(running.delivery)
        return running

    yield start
    for delivery in started:
        delivery.stop(5)


Run = Callable[..., Running]


def test_posts_do_not_wait_for_commits_and_the_newest_commit_wins(run: Run) -> None:
    running = run(hangs=True)
    running.lose()
    assert running.store.entered.wait(10)
    running.lose(20)
    assert running.store.saved == []
    running.store.free.set()
    running.delivery.stop(5)
    assert len(running.store.saved) <= 2
    assert running.store.saved[-1] == 21
    assert running.store.closed


def test_a_post_waits_for_the_commit_of_the_one_before_it(run: Run) -> None:
    """A kill may repeat one post, the last."""

    class Slow(Coordinator):
        def save(self, commits: dict[int, Commit]) -> bool:
            time.sleep(0.05)
            return super().save(commits)

    running = run(Slow)
    covered: list[int] = []
    take = running.hook.take

    def note(alerts: list[dict[str, object]]) -> None:
        covered.append(running.store.saved[-1] if running.store.saved else 0)
        take(alerts)

    running.hook.take = note  # type: ignore[method-assign]
    now = time.time()
    places = [str(number) for number in range(5)]
    losses = [
        alert("KafkaCommittedDataLoss", at=now, partition=place, cluster=place) for place in places
    ]
    running.delivery.alerts([(each, (0, number)) for number, each in enumerate(losses)])
    wait_for(lambda: len(covered) == len(losses))
    assert covered == [0, 1, 2, 3, 4]


def test_a_commit_that_failed_is_made_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(retrying_sender, "IDLE_SECONDS", 0.01)
    running = run(failures=3)
    running.lose()
    wait_for(lambda: running.store.saved[-1:] == [1])
    running.delivery.stop(5)
    assert running.store.closed
    assert capsys.readouterr().out.count("cannot commit what was delivered") == 1


def test_the_end_waits_for_a_commit_only_so_long(run: Run) -> None:
    running = run(hangs=True)
    running.lose()
    assert running.store.entered.wait(10)
    running.delivery.stop(0.05)
    assert not running.store.closed
    running.store.free.set()
    wait_for(lambda: running.store.closed)


def test_the_end_commits_once_more_where_a_commit_failed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrying_sender, "IDLE_SECONDS", 60.0)
    running = run(failures=1)
    running.lose()
    wait_for(lambda: running.store.failures == 0)
    running.delivery.stop(5)
    assert running.store.saved[-1] == 1
    assert running.store.closed


def test_a_receiver_that_was_never_used_ends_at_once(run: Run) -> None:
    running = run()
    began = time.monotonic()
    running.delivery.stop(5)
    assert running.store.closed
    assert time.monotonic() - began < 5


def test_a_thread_that_fails_where_nothing_counts_it_ends_the_process(run: Run) -> None:
    """Counted, it goes on: tests/export/test_failures.py."""
    running = run()
    running.hook.failure = RuntimeError("a bug")
    running.delivery.alerts([(alert("KafkaCommittedDataLoss"), (0, 0))])
    wait_for(lambda: running.delivery.failure is not None)
    assert repr(running.delivery.failure) == "NotDeliveredError('unexpected RuntimeError')"


def test_one_receiver_that_hangs_does_not_delay_another() -> None:
    released = threading.Event()
    hangs, works = FakeWebhook(Clock(), "hangs"), FakeWebhook(Clock(), "works")
    hangs.take = lambda _: released.wait(10)  # type: ignore[assignment,method-assign]
    clients = {each.name: [each] for each in (hangs, works)}
    delivery = make_delivery(settings_of(*clients), clients, {0: 0}, lambda *_: MemoryStore())
    delivery.start()
    delivery.alerts([(alert("KafkaCommittedDataLoss"), (0, 0))])
    wait_for(lambda: hangs.attempts == 1)
    wait_for(lambda: works.notified != [])
    assert hangs.notified == []
    released.set()
    delivery.stop(5)


@pytest.mark.parametrize("kind", [WEBHOOK, ALERTMANAGER])
def test_a_failure_and_its_end_are_logged_once(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rig = Rig(kind)
    with rig.failing(DOWN):
        rig.deliver(alert(), after=60)
    rig.run(10)
    logged = capsys.readouterr().out
    assert logged.count("receiver does not take alerts, retrying") == 1
    assert logged.count("receiver takes alerts again") == 1
    assert "HTTP 503" in logged


def test_retry_after_is_respected() -> None:
    rig = Rig()
    rig.address.failure = type(DOWN)("HTTP 429", status=429, after_seconds=20.0)
    rig.deliver(alert(), after=2)
    assert rig.address.attempts == 1
    rig.run(18)
    assert rig.address.attempts == 1
    rig.run(4)
    assert rig.address.attempts == 2

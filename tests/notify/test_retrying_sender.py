"""A sender's threads: no address delays another, commits delay no post, failures are visible."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus

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
    transitions,
)
from tidemark.settings import Notify, Receiver, Settings
from tidemark.web.http_client import make_clients
from tidemark_exporters.notify import retrying_sender
from tidemark_exporters.notify.delivery import Delivery, make_delivery
from tidemark_exporters.notify.offsets import Commit
from tidemark_lab.brokers.receiver import WebhookReceiver


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

    def __init__(self, store: MemoryStore) -> None:
        self.hook = FakeWebhook(Clock())
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
def run() -> Iterator[Callable[[MemoryStore], Running]]:
    started: list[Delivery] = []

    def start(store: MemoryStore) -> Running:
        running = Running(store)
        started.append(running.delivery)
        return running

    yield start
    for delivery in started:
        delivery.stop(5)


Run = Callable[[MemoryStore], Running]


def test_posts_do_not_wait_for_commits_and_the_newest_commit_wins(run: Run) -> None:
    store = Coordinator(hangs=True)
    running = run(store)
    running.lose()
    assert store.entered.wait(10)
    running.lose(20)
    assert store.saved == []
    store.free.set()
    running.delivery.stop(5)
    assert len(store.saved) <= 2
    assert store.saved[-1] == 21
    assert store.closed


def test_a_post_waits_for_the_commit_of_the_one_before_it(run: Run) -> None:
    """A kill may repeat one post, the last."""

    class Slow(Coordinator):
        def save(self, commits: dict[int, Commit]) -> bool:
            time.sleep(0.05)
            return super().save(commits)

    store = Slow()
    running = run(store)
    covered: list[int] = []
    take = running.hook.take

    def note(alerts: list[dict[str, object]]) -> None:
        covered.append(store.saved[-1] if store.saved else 0)
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
    store = Coordinator(failures=3)
    running = run(store)
    running.lose()
    wait_for(lambda: store.saved[-1:] == [1])
    running.delivery.stop(5)
    assert store.closed
    assert capsys.readouterr().out.count("cannot commit what was delivered") == 1


def test_the_end_waits_for_a_commit_only_so_long(run: Run) -> None:
    store = Coordinator(hangs=True)
    running = run(store)
    running.lose()
    assert store.entered.wait(10)
    running.delivery.stop(0.05)
    assert not store.closed
    store.free.set()
    wait_for(lambda: store.closed)


def test_the_end_commits_once_more_where_a_commit_failed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrying_sender, "IDLE_SECONDS", 60.0)
    store = Coordinator(failures=1)
    running = run(store)
    running.lose()
    wait_for(lambda: store.failures == 0)
    running.delivery.stop(5)
    assert store.saved[-1] == 1
    assert store.closed


def test_a_receiver_that_was_never_used_ends_at_once(run: Run) -> None:
    store = Coordinator()
    began = time.monotonic()
    run(store).delivery.stop(5)
    assert store.closed
    assert time.monotonic() - began < 5


def test_a_thread_that_fails_where_nothing_counts_it_ends_the_process(run: Run) -> None:
    """Counted, it goes on: tests/export/test_failures.py."""
    running = run(MemoryStore())
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
    rig.address.failure = DOWN
    rig.deliver(alert(), after=60)
    rig.address.failure = None
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


def test_a_receiver_that_was_down_gets_everything_once_over_real_connections() -> None:
    """Real threads, sockets and retries; the two minutes themselves are in tests/delivery."""
    with WebhookReceiver() as real:
        real.answer = HTTPStatus.SERVICE_UNAVAILABLE
        receiver = Receiver(name="hook", url=real.url, timeout_seconds=2.0)
        settings = Settings(notify=Notify(receivers=[receiver], gather_seconds=0.1))
        store = MemoryStore()
        clients = {"hook": make_clients(receiver)}
        delivery = make_delivery(settings, clients, {0: 0}, lambda *_: store)
        delivery.start()
        now = time.time()
        start = now - 3
        fired = [alert(partition=str(number), at=now, starts_at=start) for number in range(20)]
        loss = alert("KafkaCommittedDataLoss", at=now, starts_at=start, severity="critical")
        ended = [
            alert(partition=str(number), state="resolved", at=now + 1, starts_at=start)
            for number in range(5)
        ]
        records = [*fired, loss, *ended]
        delivery.alerts([(each, (0, number)) for number, each in enumerate(records)])
        (only,) = delivery.senders
        wait_for(lambda: only.report().addresses[0].attempts["again"] > 0)
        assert list(real.alerts()) == []
        real.answer = HTTPStatus.OK
        wait_for(lambda: len(list(real.alerts())) >= 26)
        delivery.stop(10)
    arrived = sorted((each.fingerprint or "", each.status) for each in real.alerts())
    assert arrived == sorted(transitions(records))
    # The loss does not wait behind the others.
    assert real.alerts()[0].name == "KafkaCommittedDataLoss"
    assert store.commits[0].offset == 26

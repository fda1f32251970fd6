from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.judge.examples import loss, received
from tidemark_lab.brokers.wait import wait_until
from tidemark_lab.drills.notifications import Notifications
from tidemark_lab.judge.verdict import Notification


@pytest.fixture
def notifications() -> Iterator[Notifications]:
    with closing(Notifications("drill")) as made:
        yield made


def wait(condition: Callable[[], bool]) -> None:
    wait_until(condition, 20.0, "the webhook has it")


def test_a_loss_is_posted_at_once_and_what_follows_is_an_update(
    notifications: Notifications,
) -> None:
    now = time.time()
    lost = loss(3, 5, now - 5).alert
    notifications.take([lost], [])
    wait(lambda: len(notifications.received()) == 1)
    (first,) = notifications.received()
    assert first == Notification(lost.fingerprint, "firing", first.received_at)
    assert first.received_at - now < 15
    # Another partition's loss belongs to the cause.
    notifications.take([loss(3, 9, time.time() - 5, partition=1).alert], [])
    wait(lambda: len(notifications.received()) == 2)
    assert notifications.received()[1].in_update


def test_a_warning_without_a_cause_is_no_update(notifications: Notifications) -> None:
    for broker in (1, 2):
        alert = received("KafkaBrokerDown", time.time(), partition=None, broker=broker).alert
        notifications.take([alert], [])
    wait(lambda: len(notifications.received()) == 2)
    assert not any(each.in_update for each in notifications.received())

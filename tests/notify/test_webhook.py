"""A webhook: transitions in batches, each posted once, whatever fails."""

from __future__ import annotations

import pytest

from tests.export.make import NOW, alert
from tests.notify.rig import (
    DOWN,
    LOSS,
    REFUSED,
    KilledError,
    Rig,
    episode,
    transitions,
)
from tidemark.web.webhook_client import NotDeliveredError

# After the first post of a group, its next one comes within this.
PAUSE = 10
# And each one after that within this.
LATER_PAUSE = 30


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_alerts_of_one_cause_are_one_post(rig: Rig) -> None:
    rig.deliver(*(alert(partition=str(number)) for number in range(30)), alert(broker="3"))
    assert sorted(rig.address.sizes()) == [1, 30]


def test_urgent_alerts_of_one_poll_are_one_post_at_once(rig: Rig) -> None:
    rig.deliver_at_once(
        alert(), *(alert("KafkaOffline", severity="critical", partition=str(n)) for n in range(3))
    )
    # With what waits of their cause.
    assert rig.address.sizes() == [4]
    assert [each["labels"]["alertname"] for each in rig.address.posted][3] == "KafkaFollowerLag"


def test_a_refused_batch_is_given_up_and_does_not_block_the_next(rig: Rig) -> None:
    """Nor is the resolution of a refused alert posted."""
    fired, ended = episode(partition="0")
    with rig.failing(REFUSED):
        rig.deliver(fired)
    rig.deliver(ended, alert(partition="1"), after=PAUSE)
    assert rig.address.notified == transitions([alert(partition="1")])
    report = rig.sender.report()
    assert report.outcomes == {"rejected": 1, "dropped": 1, "delivered": 1}
    assert report.addresses[0].attempts == {"rejected": 1, "ok": 1}
    assert report.addresses[0].waiting == 0
    assert rig.committed == 3


@pytest.mark.parametrize("status", [302, 401, 403, 404, 410])
def test_no_alert_is_given_up_while_the_address_or_the_token_is_wrong(
    rig: Rig, status: int
) -> None:
    with rig.failing(NotDeliveredError(f"HTTP {status}", status=status)):
        fired = [alert("KafkaOffline", severity="critical", partition=str(n)) for n in range(70)]
        rig.deliver(*fired, after=120)
    rig.run(60)
    assert sorted(rig.address.notified) == sorted(transitions(fired))
    assert rig.sender.report().outcomes == {"delivered": 70}


def test_a_loss_that_is_refused_for_ever_holds_back_nothing_else(rig: Rig) -> None:
    rig.address.bad_partition = "3"
    loss = episode(**LOSS, partition="3")
    later = [alert("KafkaOffline", severity="critical", partition=n, at=NOW + 5) for n in "45"]
    rig.deliver(loss[0])
    rig.deliver(loss[1], later[0], after=PAUSE)
    rig.deliver(later[1], after=LATER_PAUSE)
    assert rig.address.notified == transitions(later)
    assert rig.committed == 0
    rig.address.bad_partition = None
    rig.run(60)
    assert rig.address.notified[2:] == transitions(loss)
    assert rig.committed == 4


def test_ends_are_left_out_on_request() -> None:
    rig = Rig(send_resolved=False)
    rig.deliver(*episode())
    assert [state for _, state in rig.address.notified] == ["firing"]
    assert rig.committed == 2


def test_a_full_queue_drops_the_oldest_with_its_end_and_keeps_every_loss() -> None:
    rig = Rig(queue_size=2)
    with rig.failing(DOWN):
        loss = alert(**LOSS, broker="3", partition="9")
        first, *others = (episode(partition=str(number)) for number in range(4))
        rig.deliver(loss, first[0])
        for each in others:
            rig.deliver(each[0])
    rig.deliver(first[1], after=8)
    kept = [loss, others[1][0], others[2][0]]
    assert sorted(rig.address.notified) == sorted(transitions(kept))
    assert rig.sender.report().outcomes["dropped"] == 3
    assert rig.committed == 6


def test_after_an_outage_there_is_one_post_for_each_cause(rig: Rig) -> None:
    with rig.failing(DOWN):
        rig.deliver(alert(partition="0"))
        for number in range(1, 20):
            rig.deliver(alert(partition=str(number)), alert(broker="3", partition=str(number)))
    rig.run(6)
    assert rig.address.sizes() == [1, 19, 19]


def test_an_alert_older_than_the_topic_was_posted_by_an_earlier_run(rig: Rig) -> None:
    rig.deliver(alert("KafkaOffline", severity="critical"))
    rig.restart()
    rig.read()
    rig.unrecorded = [alert(starts_at=NOW - 1_000_000)]
    rig.run(35)
    assert len(rig.address.notified) == 1
    # Its end is news.
    ended = alert(state="resolved", starts_at=NOW - 1_000_000, at=NOW + 50)
    rig.unrecorded = []
    rig.deliver(ended)
    assert rig.address.notified[1:] == transitions([ended])


@pytest.mark.parametrize("ahead", [0.0, 4_000_000.0])
def test_a_clock_that_is_ahead_does_not_post_old_alerts_again(rig: Rig, ahead: float) -> None:
    rig.deliver(alert("KafkaOffline", severity="critical", at=NOW + ahead, starts_at=NOW + ahead))
    rig.restart()
    rig.read()
    rig.unrecorded = [alert(starts_at=NOW + ahead - 100_000)]
    rig.run(45)
    assert len(rig.address.notified) == 1


def test_a_record_before_those_that_are_read_again_may_be_newer_than_the_oldest_of_them(
    rig: Rig,
) -> None:
    """A batch writes the records of one group after those of another."""
    times = (NOW + 8, NOW + 2, NOW + 9)
    first, *others = (
        alert(partition=str(number), at=at, starts_at=at) for number, at in enumerate(times)
    )
    rig.deliver(first, *others, after=10)
    assert len(rig.address.notified) == 3
    rig.restart()
    rig.reads = 1
    rig.read()
    rig.unrecorded = [first]
    rig.run(45)
    assert len(rig.address.notified) == 3
    late = alert(partition="9", at=NOW + 40, starts_at=NOW + 40)
    rig.unrecorded.append(late)
    rig.run(45)
    assert rig.address.notified[3:] == transitions([late])


def test_records_of_a_stream_that_ended_within_a_batch_are_waited_for(rig: Rig) -> None:
    """Views of the batch were written, alerts were not."""
    before, newest = episode(start=NOW + 40), alert(at=NOW + 50, starts_at=NOW + 50)
    rig.run(50)
    rig.unrecorded, rig.newest = [newest], rig.clock.now
    rig.run(25)
    rig.newest = None
    rig.run(10)
    assert rig.address.posts == []
    rig.unrecorded = []
    rig.deliver(*before, newest)
    assert rig.address.notified == transitions([*before, newest])


def test_a_kill_between_post_and_commit_repeats_that_post_alone_under_the_same_id(rig: Rig) -> None:
    rig.deliver(alert(partition="0"))
    accepted = rig.address.post

    def accept_and_die(body: bytes, message_id: str | None) -> None:
        accepted(body, message_id)
        raise KilledError

    rig.address.post = accept_and_die
    with pytest.raises(KilledError):
        rig.deliver(alert(partition="1"), after=PAUSE)
    rig.address.post = accepted
    rig.restart()
    rig.deliver()
    assert [each["labels"]["partition"] for each in rig.address.posted] == ["0", "1", "1"]
    assert rig.address.ids[1] == rig.address.ids[2]


def test_heartbeats_are_posted_while_the_readers_tick_each_with_its_own_id() -> None:
    rig = Rig(heartbeat=True)
    rig.run(130)
    labels = {"alertname": "TidemarkWatchdog", "severity": "info"}
    assert [each["labels"] for each in rig.address.posted] == [labels] * 3
    assert len(set(rig.address.ids)) == 3
    assert {post["status"] for post in rig.address.posts} == {"firing"}
    rig.silence_readers(300)
    assert len(rig.address.posts) == 4
    assert rig.sender.report().outcomes == {}


def test_a_heartbeat_that_failed_is_replaced_by_the_next() -> None:
    rig = Rig(heartbeat=True)
    with rig.failing(DOWN):
        rig.run(300)
    rig.run(60)
    assert len(rig.address.posts) == 1
    with rig.failing(REFUSED):
        rig.run(60)
    rig.deliver(alert())
    assert rig.sender.report().outcomes == {"delivered": 1}


def test_alerts_refused_after_an_outage_are_committed(rig: Rig) -> None:
    rig.address.failure = DOWN
    rig.deliver(*episode())
    assert rig.committed is None
    rig.address.failure = REFUSED
    rig.run(6)
    assert rig.committed == 2

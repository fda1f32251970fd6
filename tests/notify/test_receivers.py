"""Every receiver, of either kind, gets each transition once, over failures and restarts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.export.make import NOW, alert
from tests.notify.rig import ALERTMANAGER, DOWN, LOSS, WEBHOOK, Rig, episode, transitions, window
from tidemark.core.identity import fingerprint
from tidemark_exporters.notify.derived_alerts import FRESH_SECONDS

# What resolved before it was posted resolves at Alertmanager a turn after it was posted.
TURN = 40

pytestmark = pytest.mark.parametrize("kind", [WEBHOOK, ALERTMANAGER])


@pytest.fixture
def rig(kind: str) -> Rig:
    return Rig(kind)


def test_a_receiver_that_was_down_gets_everything_once_and_in_order(rig: Rig) -> None:
    with rig.failing(DOWN):
        first, second = episode(partition="0"), episode(partition="1")
        rig.deliver(*first)
        rig.deliver(second[0])
        rig.run(120)
        assert rig.address.posts == []
        assert rig.address.attempts > 20
        assert rig.committed is None
    rig.deliver(second[1], after=TURN)
    assert sorted(rig.address.notified) == sorted(transitions([*first, *second]))
    for each in (first, second):
        arrived = [pair for pair in rig.address.notified if pair[0] == each[0].fingerprint]
        assert arrived == transitions(each)
    assert rig.committed == 4


def test_the_same_records_again_post_nothing_new(kind: str, rig: Rig) -> None:
    """The stream's driver was killed between writing and committing: it writes the batch again."""
    batch = [*episode(partition="0"), alert(partition="1")]
    for _ in range(2):
        rig.deliver(*batch, after=TURN)
        assert sorted(rig.address.notified) == sorted(transitions(batch))
    rig.restart()
    rig.deliver(*batch, after=200)
    assert sorted(rig.address.notified) == sorted(transitions(batch))
    assert rig.committed == 9
    assert kind == WEBHOOK or len(rig.address.active()) == 1


def test_a_repeated_record_hides_no_later_firing_after_a_restart(rig: Rig) -> None:
    first, second = episode(start=NOW), episode(start=NOW + 60)
    rig.deliver(first[0])
    rig.deliver(first[1])
    # The stream repeats the firing but not, for now, the end.
    rig.deliver(first[0])
    rig.restart()
    rig.deliver(second[0])
    assert rig.address.notified == transitions([*first, second[0]])


def test_a_repeated_record_does_not_count_as_delivery(rig: Rig) -> None:
    rig.address.bad_partition = "9"
    loss, other = alert(**LOSS, partition="9"), alert(partition="1")
    rig.deliver(loss, other, alert(**LOSS, partition="9", starts_at=NOW - 1), loss)
    assert rig.committed == 0
    rig.address.bad_partition = None
    rig.restart()
    rig.deliver()
    assert rig.address.notified == transitions([other, loss])
    assert rig.committed == 4


def test_an_alert_that_comes_back_is_posted_again(rig: Rig) -> None:
    records = [*episode(start=NOW), *episode(start=NOW + 60)]
    for each in records:
        rig.deliver(each)
    assert rig.address.notified == transitions(records)
    assert rig.address.posted[-1]["annotations"]["reason"] == "cleared"
    assert rig.committed == 4


def test_a_firing_repeated_by_a_stream_that_lost_its_state_is_not_posted(rig: Rig) -> None:
    rig.deliver(alert(starts_at=NOW - 3), alert(starts_at=NOW - 1))
    assert len(rig.address.notified) == 1
    assert rig.sender.report().outcomes == {"delivered": 1, "duplicate": 1}


def test_an_update_is_not_posted_but_changes_a_waiting_alert(rig: Rig) -> None:
    rig.deliver(alert(description="7"), alert(state="update", description="9"))
    with rig.failing(DOWN):
        rig.deliver(alert(partition="1", description="old"))
        rig.deliver(alert(state="update", partition="1", description="new"))
    rig.deliver(alert(state="update", description="11"), after=10)
    assert [state for _, state in rig.address.notified] == ["firing", "firing"]
    texts = {e["labels"]["partition"]: e["annotations"] for e in reversed(rig.address.posted)}
    assert (texts["0"]["description"], texts["1"]["description"]) == ("9", "new")
    assert rig.committed == 5


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, ["KafkaFollowerLag", "KafkaIsrChange", "KafkaOffline"]),
        ({"severities": ["critical"]}, ["KafkaOffline"]),
        ({"alerts": ["Kafka.*(Lag|Change)"]}, ["KafkaFollowerLag", "KafkaIsrChange"]),
        ({"clusters": ["eas"]}, []),
        ({"clusters": ["west", "ea.*"]}, ["KafkaFollowerLag", "KafkaIsrChange", "KafkaOffline"]),
    ],
)
def test_routing(kind: str, options: dict[str, Any], wanted: list[str]) -> None:
    rig = Rig(kind, **options)
    rig.deliver(
        alert("KafkaFollowerLag"),
        alert("KafkaOffline", severity="critical"),
        alert("KafkaIsrChange", severity="info"),
    )
    assert sorted(each["labels"]["alertname"] for each in rig.address.posted) == wanted
    assert rig.committed == 3


def test_old_resolved_alerts_are_history_but_a_loss_is_not(rig: Rig) -> None:
    old = episode(start=NOW - 3600)
    still_open = alert(partition="7", at=NOW - 3600, starts_at=NOW - 3603)
    loss = episode(start=NOW - 3600, **LOSS)
    rig.deliver(*old, still_open, *loss, after=TURN)
    assert sorted(rig.address.notified) == sorted(transitions([still_open, *loss]))
    assert rig.sender.report().outcomes == {"history": 2, "delivered": 3}
    assert rig.committed == 5


def test_an_old_firing_waits_until_its_end_is_excluded(kind: str) -> None:
    rig = Rig(kind, stale_seconds=10_000)
    fired, ended = episode(start=NOW - 3600)
    rig.newest = NOW - 3000
    rig.deliver(fired)
    assert rig.address.posts == []
    rig.newest = None
    rig.write(ended)
    rig.read()
    rig.run(TURN)
    assert rig.address.posts == []
    assert rig.committed == 2


def test_an_old_firing_that_ended_lately_is_posted_with_its_end(kind: str) -> None:
    rig = Rig(kind, stale_seconds=10_000)
    both = episode(start=NOW - 3600, seconds=3600)
    rig.newest = NOW - 3000
    rig.deliver(*both, after=TURN)
    assert rig.address.notified == transitions(both)


def test_an_old_end_without_its_firing_is_history(rig: Rig) -> None:
    rig.deliver(episode(start=NOW - 3600)[1])
    assert rig.address.notified == []
    assert rig.sender.report().outcomes == {"history": 1}
    assert rig.committed == 1


def test_an_old_firing_is_posted_when_nothing_more_comes(kind: str) -> None:
    """The stream is dead: its last state is the best information."""
    rig = Rig(kind, stale_seconds=10_000)
    rig.newest = NOW - 3600
    rig.deliver(alert(at=NOW - 3600), after=9)
    assert rig.address.posts == []
    rig.run(4)
    assert [state for _, state in rig.address.notified] == ["firing"]


def test_an_end_that_came_while_nothing_was_delivered_is_posted_however_old(rig: Rig) -> None:
    fired, ended = episode(seconds=60)
    rig.deliver(fired)
    rig.restart()
    rig.clock.now += 3600
    rig.deliver(ended)
    assert rig.address.notified == transitions([fired, ended])


def test_commits_that_fail_are_tried_again(rig: Rig) -> None:
    rig.store.up = False
    rig.deliver(alert())
    assert rig.committed is None
    rig.store.up = True
    rig.step()
    assert rig.committed == 1


def test_one_refused_alert_delays_no_other(rig: Rig) -> None:
    rig.address.bad_partition = "13"
    rig.deliver(*(alert(partition=str(number)) for number in range(30)))
    posted = {int(each["labels"]["partition"]) for each in rig.address.posted}
    assert posted == set(range(30)) - {13}
    assert rig.address.attempts <= 12
    assert rig.sender.report().outcomes == {"delivered": 29, "rejected": 1}
    assert rig.committed == 30


def test_a_loss_that_is_refused_is_kept_until_it_is_taken_and_blocks_no_other(
    kind: str, rig: Rig
) -> None:
    loss, other = alert(**LOSS, partition="9"), alert(partition="1")
    rig.address.bad_partition = "9"
    rig.deliver(loss, other)
    assert rig.address.notified == transitions([other])
    assert rig.committed == 0
    rig.run(60 if kind == WEBHOOK else 300)
    assert rig.address.notified == transitions([other])
    rig.address.bad_partition = None
    rig.run(60 if kind == WEBHOOK else 300)
    assert rig.address.notified == transitions([other, loss])
    assert rig.committed == 2


LAG = {"alerts": ["KafkaFollowerLag"]}


def test_a_window_mutes_matching_alerts_and_open_ones_are_posted_at_its_end(
    kind: str,
) -> None:
    """A loss passes every window."""
    rig = Rig(kind, windows=[window(NOW, NOW + 600)])
    over, still_open, other = episode(partition="0"), alert(partition="1"), alert(**LOSS)
    rig.deliver(over[0], still_open, other)
    rig.deliver(over[1])
    assert rig.address.notified == transitions([other])
    report = rig.sender.report()
    assert (report.outcomes["muted"], report.muted, report.addresses[0].waiting) == (2, 1, 0)
    rig.run(590)
    assert rig.address.notified == transitions([other])
    rig.run(10)
    assert rig.address.notified == transitions([other, still_open])
    assert rig.sender.report().muted == 0
    ended = alert(partition="1", state="resolved", at=NOW + 700)
    rig.deliver(ended, after=10)
    assert rig.address.notified == transitions([other, still_open, ended])
    assert rig.committed == 5


def test_muted_alerts_survive_a_restart(kind: str) -> None:
    rig = Rig(kind, windows=[window(NOW, NOW + 600, **LAG)])
    offline = alert("KafkaOffline", severity="critical")
    rig.deliver(alert(partition="0"), *episode(partition="1"), offline)
    assert rig.committed == 0
    rig.restart()
    rig.deliver()
    assert rig.address.notified == transitions([offline])
    rig.run(600)
    assert rig.address.notified == transitions([offline, alert(partition="0")])
    assert rig.committed == 4


def test_an_alert_that_fired_before_a_window_resolves_in_it(kind: str) -> None:
    rig = Rig(kind, windows=[window(NOW, NOW + 600, **LAG)])
    rig.clock.now = NOW - 60
    fired, ended = episode(start=NOW - 60, seconds=120)
    rig.deliver(fired)
    rig.run(120)
    rig.deliver(ended)
    assert rig.address.notified == transitions([fired, ended])


def test_an_open_alert_without_a_record_is_taken_from_its_view_once(rig: Rig) -> None:
    rig.unrecorded = [alert(at=NOW + 5, starts_at=NOW + 5)]
    rig.run(29)
    assert rig.address.posts == []
    rig.run(10)
    # Its record was only late.
    rig.deliver(*rig.unrecorded)
    assert rig.address.notified == transitions(rig.unrecorded)
    ended = alert(state="resolved", starts_at=NOW + 5, at=NOW + 50)
    rig.unrecorded = []
    rig.deliver(ended)
    assert [state for _, state in rig.address.notified] == ["firing", "resolved"]


def test_what_was_taken_from_a_view_is_not_posted_again_after_a_restart(rig: Rig) -> None:
    """Its record comes after the restart, behind those of the alert before it."""
    before, late = episode(), alert(at=NOW + 40, starts_at=NOW + 40)
    rig.deliver(*before, after=20)
    rig.unrecorded = [late]
    rig.run(45)
    assert rig.address.notified == transitions([*before, late])
    rig.restart()
    rig.read()
    rig.deliver(late)
    ended = alert(state="resolved", starts_at=NOW + 40, at=NOW + 80)
    again = alert(at=NOW + 90, starts_at=NOW + 30)
    rig.unrecorded = []
    rig.deliver(ended, after=10)
    # A clock that was set back hides no alert.
    rig.restart()
    rig.deliver(again, after=10)
    assert rig.address.notified == transitions([*before, late, ended, again])


def test_an_alert_that_left_its_view_meanwhile_is_not_taken_from_it(rig: Rig) -> None:
    rig.unrecorded = [alert()]
    rig.run(20)
    rig.unrecorded = []
    rig.run(60)
    assert rig.address.posts == []


def test_a_new_receiver_gets_an_open_alert_that_is_older_than_the_topic(rig: Rig) -> None:
    rig.unrecorded = [alert(starts_at=NOW - 1_000_000)]
    rig.run(35)
    assert rig.address.notified == transitions(rig.unrecorded)


def test_an_alert_that_no_view_contains_for_five_minutes_ends_once_even_over_a_restart(
    rig: Rig,
) -> None:
    rig.asserts = False
    rig.deliver(alert(), after=400)
    for _ in range(2):
        assert [state for _, state in rig.address.notified] == ["firing", "resolved"]
        assert rig.address.posted[-1]["annotations"]["reason"] == "state_lost"
        rig.restart()
        rig.read()
        rig.run(400)


def names(rig: Rig) -> list[tuple[str, str]]:
    """(alert name, state) in the order of notification."""
    labels = [each["labels"] for each in rig.address.posted]
    of = {fingerprint(each): each["alertname"] for each in labels}
    return [(of[mark], state) for mark, state in rig.address.notified]


STALLED = "TidemarkStreamStalled"


def test_a_stalled_stream_fires_once_and_resolves_nothing_else(rig: Rig) -> None:
    rig.deliver(alert())
    rig.newest = rig.clock.now
    for _ in range(200):
        rig.step(30)
    assert names(rig) == [("KafkaFollowerLag", "firing"), (STALLED, "firing")]
    rig.newest = None
    rig.run(int(FRESH_SECONDS) - 1)
    assert names(rig)[2:] == []
    rig.run(5)
    assert names(rig)[2:] == [(STALLED, "resolved")]


def test_an_irregular_stream_raises_one_alert(rig: Rig) -> None:
    """A pass every 40 s, with 30 s allowed; later they flow, and the alert ends after a while."""
    for second in range(600):
        rig.newest = NOW + second - second % 40
        rig.step()
    assert names(rig) == [(STALLED, "firing")]
    rig.newest = None
    rig.run(int(FRESH_SECONDS) - 60)
    assert names(rig) == [(STALLED, "firing")]
    rig.run(65)
    assert names(rig) == [(STALLED, "firing"), (STALLED, "resolved")]


def test_a_stalled_stream_is_remembered_over_restarts(kind: str, rig: Rig) -> None:
    rig.newest = NOW
    for _ in range(2):
        rig.run(35)
        rig.restart()
    assert names(rig) == [(STALLED, "firing")]
    rig.newest = None
    rig.run(int(FRESH_SECONDS) + 5)
    assert names(rig) == [(STALLED, "firing"), (STALLED, "resolved")]
    if kind == WEBHOOK:
        fired, ended = rig.address.posted
        assert fired["startsAt"] == ended["startsAt"] == "2027-01-15T08:00:00.000Z"

"""A set of Alertmanagers, second by second: all that is open, to simulated ones that forget."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.make import NOW, alert
from tests.notify.rig import (
    ALERTMANAGER,
    DOWN,
    LOSS,
    UNAUTHORIZED,
    AlertSequence,
    Rig,
    Steps,
    random_sequences,
    random_steps,
    records,
    transitions,
    window,
)
from tidemark.core.identity import fingerprint
from tidemark.core.links import runbook_path
from tidemark.core.text import rfc3339
from tidemark_exporters.notify import alertmanager
from tidemark_exporters.notify.alertmanager import RESEND_SECONDS, RESOLVED_SECONDS


@pytest.fixture
def rig() -> Rig:
    return Rig(ALERTMANAGER)


def states(rig: Rig) -> list[str]:
    return [state for _, state in rig.address.notified]


def active(rig: Rig, label: str = "partition") -> list[str]:
    return sorted(each["labels"][label] for each in rig.address.active())


def test_new_alerts_are_posted_at_once_and_open_ones_every_30_seconds(rig: Rig) -> None:
    rig.step()
    fired = alert(description="7 records behind")
    rig.deliver(fired, after=1)
    assert rig.address.posts == [
        [
            {
                "labels": fired.labels,
                "annotations": fired.annotations
                | {"runbook_url": f"http://tidemark.example/{runbook_path(fired)}"},
                "startsAt": "2027-01-15T08:00:00.000Z",
                "endsAt": "2027-01-15T08:02:02.000Z",
                "generatorURL": "http://tidemark.example/partition?cluster=east&topic=orders"
                f"&partition=0#alert-{fired.fingerprint}",
            }
        ]
    ]
    assert rig.address.ids == [None]
    rig.run(120)
    assert len(rig.address.posts) == 1 + 120 // RESEND_SECONDS
    assert {each["startsAt"] for each in rig.address.posted} == {"2027-01-15T08:00:00.000Z"}
    assert states(rig) == ["firing"]
    assert rig.committed == 1


def test_it_starts_when_it_fired_and_not_when_its_condition_began() -> None:
    """Alertmanager waits for no group in which an alert started longer ago than `group_wait`."""
    began, fired_at = NOW - 9, NOW + 1
    rig = Rig(ALERTMANAGER)
    rig.step()
    rig.deliver(alert(starts_at=began, at=fired_at), after=1)
    rig.restart()
    rig.deliver(after=round(RESEND_SECONDS) + 1)
    rig.deliver(alert(state="resolved", starts_at=began, at=NOW + 40), after=1)
    rig.restart()
    rig.deliver(after=round(RESEND_SECONDS) + 1)
    assert {each["startsAt"] for each in rig.address.posted} == {rfc3339(fired_at)}
    assert states(rig) == ["firing", "resolved"]


def test_an_alert_that_came_and_went_during_an_outage_fires_and_then_resolves(rig: Rig) -> None:
    with rig.failing(DOWN):
        rig.deliver(alert(starts_at=NOW - 9, at=NOW + 1))
        rig.deliver(alert(state="resolved", starts_at=NOW - 9, at=NOW + 5), after=100)
        assert rig.committed is None
    # It fires for a turn: Alertmanager notifies of a group at its own pace.
    rig.run(20)
    assert states(rig) == ["firing"]
    rig.run(40)
    assert states(rig) == ["firing", "resolved"]
    assert {each["startsAt"] for each in rig.address.posted} == {rfc3339(NOW + 1)}
    assert rig.committed == 2


def test_an_update_changes_the_text_at_the_next_turn(rig: Rig) -> None:
    rig.deliver(alert(description="9"))
    rig.deliver(alert(state="update", description="11"), after=31)
    assert rig.address.active()[0]["annotations"]["description"] == "11"
    rig.restart()
    rig.deliver()
    assert rig.address.active()[0]["annotations"]["description"] == "11"


def test_an_end_is_posted_at_once_repeated_for_15_minutes_and_then_forgotten(rig: Rig) -> None:
    rig.deliver(alert(), after=1)
    rig.deliver(alert(state="resolved", at=NOW + 2, reason="cleared"), after=1)
    assert rig.address.active() == []
    assert states(rig) == ["firing", "resolved"]
    (ended,) = rig.address.posts[-1]
    assert ended["endsAt"] == "2027-01-15T08:00:02.000Z"
    assert ended["annotations"]["reason"] == "cleared"
    rig.run(int(RESOLVED_SECONDS))
    posts = len(rig.address.posts)
    assert posts == pytest.approx(2 + RESOLVED_SECONDS / RESEND_SECONDS, abs=1)
    assert all(post == [ended] for post in rig.address.posts[1:])
    rig.run(120)
    rig.restart()
    rig.deliver(after=120)
    assert len(rig.address.posts) == posts
    assert rig.committed == 2


def test_a_restarted_alertmanager_has_everything_again_within_a_minute(rig: Rig) -> None:
    rig.deliver(alert(), after=5)
    rig.address.restart()
    rig.run(31)
    assert len(rig.address.active()) == 1
    assert states(rig) == ["firing"]


def test_an_instance_that_was_down_gets_everything_at_its_first_answer() -> None:
    rig = Rig(ALERTMANAGER, instances=2)
    rig.deliver(alert(partition="0"), after=5)
    rig.addresses[1].failure = DOWN
    rig.deliver(alert(partition="1"), after=120)
    assert len(rig.addresses[0].active()) == 2
    # One of the set took it: it is delivered.
    assert rig.committed == 2
    rig.addresses[1].failure = None
    rig.addresses[1].restart()
    rig.run(6)
    assert len(rig.addresses[1].active()) == 2


def test_a_short_outage_may_have_been_a_restart(rig: Rig) -> None:
    rig.deliver(alert(), after=31)
    with rig.failing(DOWN):
        rig.address.restart()
        rig.deliver(alert(partition="1"), after=2)
    # Well before the next turn.
    rig.run(6)
    assert len(rig.address.active()) == 2


def test_a_bad_alert_is_left_out_and_posted_again_later(rig: Rig) -> None:
    rig.address.bad_partition = "13"
    rig.deliver(*(alert(partition=str(number)) for number in range(20)), after=2)
    assert len(rig.address.active()) == 19
    assert rig.address.attempts <= 12
    before = len(rig.address.posts)
    rig.run(60)
    assert rig.address.sizes()[before:] == [19, 19]
    rig.address.bad_partition = None
    rig.run(300)
    assert len(rig.address.active()) == 20
    assert rig.sender.report().outcomes["rejected"] == 1


def test_a_failure_that_is_not_of_the_content_is_tried_again(rig: Rig) -> None:
    with rig.failing(UNAUTHORIZED):
        rig.deliver(alert(), after=120)
        (instance,) = rig.sender.report().addresses
        assert set(instance.attempts) == {"again"}
        assert (instance.waiting, instance.oldest) == (1, NOW)
    rig.run(30)
    assert len(rig.address.active()) == 1
    assert rig.sender.report().addresses[0].waiting == 0


def test_while_passes_stop_alerts_are_posted_on_as_stale_and_none_resolves(rig: Rig) -> None:
    rig.deliver(alert(), after=5)
    rig.newest = NOW + 5
    rig.run(1200)
    posted = {each["labels"]["alertname"]: each for each in rig.address.active()}
    assert posted.keys() == {"KafkaFollowerLag", "TidemarkStreamStalled"}
    assert posted["KafkaFollowerLag"]["annotations"]["stale_since"] == "2027-01-15T08:00:05.000Z"
    rig.newest = None
    rig.run(35)
    posted = {each["labels"]["alertname"]: each for each in rig.address.active()}
    assert "stale_since" not in posted["KafkaFollowerLag"]["annotations"]
    # TidemarkStreamStalled waits two minutes.
    assert posted["TidemarkStreamStalled"]["annotations"]["description"].endswith(
        "This alert ends once passes have flowed for 120 s."
    )
    assert posted.keys() == {"KafkaFollowerLag", "TidemarkStreamStalled"}
    rig.run(90)
    assert active(rig, "alertname") == ["KafkaFollowerLag"]
    assert states(rig) == ["firing", "firing", "resolved"]


def test_a_window_mutes_alerts_from_views_unless_they_were_posted_before() -> None:
    rig = Rig(ALERTMANAGER, windows=[window(NOW, NOW + 300)])
    new, old = alert(), alert(partition="1", starts_at=NOW - 1_000_000)
    rig.unrecorded = [new, old]
    rig.run(35)
    # To a set without commits nothing was posted.
    assert rig.address.posts == []
    rig.deliver(alert(**LOSS, at=NOW - 10), after=1)
    rig.restart()
    rig.deliver(after=35)
    assert active(rig) == ["0", "1"]
    assert active(rig, "alertname") == ["KafkaCommittedDataLoss", "KafkaFollowerLag"]


def test_a_full_table_drops_resolved_alerts_then_the_oldest_but_no_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alertmanager, "MAX_ALERTS", 500)
    rig = Rig(ALERTMANAGER)
    loss = alert("KafkaCommittedDataLoss", severity="critical")
    rig.deliver(loss, *(alert(partition=str(number)) for number in range(499)), after=1)
    ended = ("400", "401", "402")
    rig.deliver(*(alert(state="resolved", partition=number) for number in ended), after=1)
    rig.deliver(alert(partition="500"), after=1)
    # A hundredth at once: finding them reads all.
    gone = {*ended, "0", "1"}
    table: Any = rig.state
    assert len(table._alerts) == 496
    # What Alertmanager knows as open, and now ends without having ended, is counted.
    assert rig.sender.report().outcomes["dropped"] == 2
    rig.address.restart()
    rig.run(40)
    lags = [e["labels"] for e in rig.address.active() if e["labels"] != loss.labels]
    assert {each["partition"] for each in lags} == {*map(str, range(499)), "500"} - gone
    assert len(rig.address.active()) == len(lags) + 1


def test_a_loss_is_posted_before_all_that_waits(rig: Rig) -> None:
    loss = alert("KafkaCommittedDataLoss", severity="critical")
    rig.deliver(*(alert(partition=str(number)) for number in range(1200)), loss, after=1)
    assert rig.address.sizes() == [500, 500, 201]
    assert rig.address.posts[0][0]["labels"] == loss.labels


def test_the_heartbeat_ends_when_the_readers_are_silent() -> None:
    rig = Rig(ALERTMANAGER, heartbeat=True)
    rig.run(100)
    assert active(rig, "alertname") == ["TidemarkWatchdog"]
    assert len(rig.address.posts) == 4
    assert rig.sender.report().addresses[0].waiting == 0
    rig.silence_readers(300)
    assert rig.address.active() == []


def test_halving_posts_every_good_alert_and_names_the_bad(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = {"3", "4", "700"}
    take = rig.address.post

    def post(body: bytes, message_id: str | None) -> None:
        marks = {each["labels"]["partition"] for each in json.loads(body)}
        rig.address.bad_partition = next(iter(marks & bad), None)
        take(body, message_id)

    rig.address.post = post
    fired = [alert(partition=str(number)) for number in range(1000)]
    rig.deliver(*fired, after=1)
    assert set(active(rig)) == {str(number) for number in range(1000)} - bad
    logged = capsys.readouterr().out
    assert logged.count("receiver refused alerts") == 3
    for number in bad:
        assert fired[int(number)].fingerprint in logged
    assert "HTTP 400: invalid label set" in logged


@settings(max_examples=60)
@given(
    sequence=random_sequences("0123", "KafkaFollowerLag"),
    steps=random_steps(
        read=st.integers(1, 4),
        run=st.integers(1, 45),
        **dict.fromkeys(("down", "up", "forget"), st.integers(0, 1)),
        restart=st.just(0),
        repeat=st.integers(1, 5),
    ),
)
def test_every_instance_gets_all_open_alerts_despite_failures(
    sequence: AlertSequence, steps: Steps
) -> None:
    rig = Rig(ALERTMANAGER, instances=2)
    rig.write(*records(sequence))
    for action, amount in [*steps, ("up", 0), ("up", 1)]:
        rig.act(action, amount)
    rig.read()
    for _ in range(4):
        rig.step(35)
    latest = dict(transitions(records(sequence)))
    still_open = {mark for mark, state in latest.items() if state == "firing"}
    for address in rig.addresses:
        assert {fingerprint(each["labels"]) for each in address.active()} == still_open
    assert rig.committed == len(rig.log)

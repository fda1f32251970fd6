"""Delivery to one receiver: everything arrives, each fingerprint and state once, over failures, re-runs and restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import stamina
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.make import NOW, Rig, alert, told
from tidemark.core.records import Alert
from tidemark.settings import Receiver
from tidemark_exporters.notify.heartbeat import Heartbeat
from tidemark_exporters.notify.lifecycle import Watchdog
from tidemark_exporters.notify.receiver import NotDeliveredError

DOWN = NotDeliveredError("HTTP 503", again=True)
REFUSED = NotDeliveredError("HTTP 400", again=False)


@pytest.fixture(autouse=True, scope="module")
def without_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=3):
        yield


def hook(**changes: object) -> Receiver:
    return Receiver(name="hook", url="http://127.0.0.1:1/", **changes)  # type: ignore[arg-type]


def life(
    name: str = "KafkaFollowerLag", start: float = NOW, seconds: float = 5.0, **changes: str
) -> list[Alert]:
    return [
        alert(name, at=start, starts_at=start - 3, **changes),  # type: ignore[arg-type]
        alert(
            name,
            state="resolved",
            at=start + seconds,
            starts_at=start - 3,
            reason="cleared",
            **changes,  # type: ignore[arg-type]
        ),
    ]


def test_an_alert_and_its_end_arrive_in_that_order() -> None:
    rig = Rig()
    both = life()
    rig.deliver(*both)
    assert rig.hook.told() == told(both)
    assert [len(post["alerts"]) for post in rig.hook.posts] == [1, 1]


def test_alerts_of_one_cause_are_one_post() -> None:
    rig = Rig()
    rig.deliver(*(alert(partition=str(number)) for number in range(30)), alert(broker="3"))
    assert sorted(len(post["alerts"]) for post in rig.hook.posts) == [1, 30]


def test_urgent_alerts_of_one_poll_are_one_post_at_once() -> None:
    rig = Rig()
    rig.write(
        alert(), *(alert("KafkaOffline", severity="critical", partition=str(n)) for n in range(3))
    )
    rig.read_on()
    rig.run()
    assert [len(post["alerts"]) for post in rig.hook.posts] == [3]
    rig.run(2)
    assert [len(post["alerts"]) for post in rig.hook.posts] == [3, 1]


def test_a_receiver_that_was_down_gets_everything_once_and_in_order() -> None:
    rig = Rig()
    rig.hook.failure = DOWN
    first, second = life(partition="0"), life(partition="1")
    rig.deliver(*first)
    rig.deliver(second[0])
    rig.run(120)
    assert rig.hook.posts == []
    assert rig.hook.attempts > 3
    assert rig.store.marks[0].offset == 0
    rig.hook.failure = None
    rig.deliver(second[1])
    assert sorted(rig.hook.told()) == sorted(told([*first, *second]))
    for each in (first, second):
        assert [pair for pair in rig.hook.told() if pair[0] == each[0].fingerprint] == told(each)
    assert rig.store.marks[0].offset == 4


def test_a_refused_batch_is_dropped_and_does_not_block_the_next() -> None:
    rig = Rig()
    rig.hook.failure = REFUSED
    rig.deliver(alert(partition="0"))
    rig.hook.failure = None
    rig.deliver(alert(partition="1"))
    assert [each["alerts"][0]["labels"]["partition"] for each in rig.hook.posts] == ["1"]
    (report,) = rig.courier.reports()
    assert (report.outcomes, report.attempts, report.waiting) == (
        {"rejected": 1, "delivered": 1},
        {"rejected": 1, "ok": 1},
        0,
    )
    assert rig.store.marks[0].offset == 2


def test_the_same_records_again_post_nothing() -> None:
    """The stream's driver was killed after it wrote and before it committed: it writes the batch again."""
    rig = Rig()
    batch = [*life(partition="0"), alert(partition="1")]
    rig.deliver(*batch)
    rig.deliver(*batch)
    assert sorted(rig.hook.told()) == sorted(told(batch))


def test_the_same_records_again_after_a_restart_of_the_exporter_post_nothing() -> None:
    rig = Rig()
    batch = [*life(partition="0"), alert(partition="1")]
    rig.deliver(*batch)
    rig.restart()
    rig.deliver(*batch)
    assert sorted(rig.hook.told()) == sorted(told(batch))


def test_an_alert_that_comes_back_is_told_again() -> None:
    rig = Rig()
    first, again = life(start=NOW), life(start=NOW + 60)
    rig.deliver(*first, *again)
    assert rig.hook.told() == told([*first, *again])


def test_a_stream_that_forgot_and_fires_again_tells_nothing_new() -> None:
    rig = Rig()
    rig.deliver(alert(starts_at=NOW - 3), alert(starts_at=NOW - 1))
    assert len(rig.hook.told()) == 1


def test_updates_are_no_posts_but_change_what_still_waits() -> None:
    rig = Rig()
    rig.write(
        alert(description="7 records behind"), alert(state="update", description="9 records behind")
    )
    rig.read_on()
    rig.run(3)
    assert [post["alerts"][0]["annotations"]["description"] for post in rig.hook.posts] == [
        "9 records behind"
    ]
    rig.deliver(alert(state="update", description="11 records behind"))
    assert len(rig.hook.posts) == 1
    assert rig.store.marks[0].offset == 3


def test_updates_reach_a_firing_that_waits_in_the_queue() -> None:
    rig = Rig()
    rig.hook.failure = DOWN
    rig.deliver(alert(description="old"))
    rig.deliver(alert(state="update", description="new"))
    rig.hook.failure = None
    rig.run()
    assert rig.hook.posts[0]["alerts"][0]["annotations"]["description"] == "new"


@pytest.mark.parametrize(
    ("receiver", "wanted"),
    [
        (hook(), ["KafkaFollowerLag", "KafkaOffline", "KafkaIsrChange"]),
        (hook(severities=["critical"]), ["KafkaOffline"]),
        (hook(alerts=["Kafka.*(Lag|Change)"]), ["KafkaFollowerLag", "KafkaIsrChange"]),
        (hook(clusters=["eas"]), []),
        (hook(clusters=["west", "ea.*"]), ["KafkaFollowerLag", "KafkaOffline", "KafkaIsrChange"]),
    ],
)
def test_routing(receiver: Receiver, wanted: list[str]) -> None:
    rig = Rig(receiver)
    rig.deliver(
        alert("KafkaFollowerLag"),
        alert("KafkaOffline", severity="critical"),
        alert("KafkaIsrChange", severity="info"),
    )
    assert sorted(
        each["labels"]["alertname"] for post in rig.hook.posts for each in post["alerts"]
    ) == sorted(wanted)
    assert rig.store.marks[0].offset == 3


def test_ends_are_left_out_on_request() -> None:
    rig = Rig(hook(send_resolved=False))
    rig.deliver(*life())
    assert [state for _, state in rig.hook.told()] == ["firing"]
    assert rig.store.marks[0].offset == 2


def test_a_full_queue_drops_the_oldest_with_its_end_and_keeps_every_loss() -> None:
    rig = Rig(queue_size=2)
    rig.hook.failure = DOWN
    loss = alert("KafkaCommittedDataLoss", severity="critical", incident="ab")
    first, *others = (life(partition=str(number)) for number in range(4))
    rig.deliver(loss, first[0])
    for each in others:
        rig.deliver(each[0])
    rig.hook.failure = None
    rig.deliver(first[1])
    assert {mark for mark, _ in rig.hook.told()} == {
        loss.fingerprint,
        others[1][0].fingerprint,
        others[2][0].fingerprint,
    }
    assert rig.courier.reports()[0].outcomes["dropped"] == 3
    assert rig.store.marks[0].offset == 6


def test_what_fired_and_ended_long_ago_is_history_but_a_loss_is_not() -> None:
    rig = Rig()
    old = life(start=NOW - 3600)
    open_still = alert(partition="7", at=NOW - 3600, starts_at=NOW - 3603)
    loss = life("KafkaCommittedDataLoss", start=NOW - 3600, severity="critical", incident="ab")
    rig.write(*old, open_still, *loss)
    rig.read_on()
    rig.courier.tick({"east": NOW}, {})
    rig.run(3)
    assert sorted(rig.hook.told()) == sorted(told([open_still, *loss]))
    assert rig.store.marks[0].offset == 5


def test_an_old_firing_waits_until_its_end_can_be_excluded() -> None:
    rig = Rig()
    fired, ended = life(start=NOW - 3600)
    rig.write(fired)
    rig.read_on()
    rig.courier.tick({"east": NOW - 3000}, {})
    rig.run(3)
    assert rig.hook.posts == []
    rig.write(ended)
    rig.read_on()
    rig.courier.tick({"east": NOW}, {})
    rig.run(3)
    assert rig.hook.posts == []


def test_an_old_firing_is_told_when_nothing_more_comes() -> None:
    """The stream is dead: what it said last is the best that is known."""
    rig = Rig()
    rig.write(alert(at=NOW - 3600))
    rig.read_on()
    rig.clock.now += 11
    rig.courier.tick({"east": NOW - 3600}, {})
    rig.run(3)
    assert [state for _, state in rig.hook.told()] == ["firing"]


def test_an_end_that_came_while_nobody_delivered_is_told_however_old() -> None:
    rig = Rig()
    fired, ended = life(seconds=60)
    rig.deliver(fired)
    rig.restart()
    rig.clock.now += 3600
    rig.deliver(ended)
    assert rig.hook.told() == told([fired, ended])


def test_commits_that_fail_are_tried_again() -> None:
    rig = Rig()
    rig.store.up = False
    rig.deliver(alert())
    assert rig.store.marks == {}
    rig.store.up = True
    rig.run()
    assert rig.store.marks[0].offset == 1


def test_the_watchdogs_word_survives_a_restart() -> None:
    rig = Rig()
    watchdog = Watchdog(["east"], 30.0, "http://runbooks.example", NOW)
    rig.courier.offer_own(watchdog.judge({"east": NOW - 10}, NOW))
    rig.run(3)
    assert rig.hook.posts == []
    for _ in range(2):
        rig.courier.offer_own(watchdog.judge({"east": NOW}, NOW + 31))
        rig.run(3)
        rig.restart()
    assert [state for _, state in rig.hook.told()] == ["firing"]
    rig.courier.offer_own(watchdog.judge({"east": NOW + 160}, NOW + 161))
    rig.run(3)
    assert [state for _, state in rig.hook.told()] == ["firing", "resolved"]
    assert rig.hook.posts[1]["alerts"][0]["startsAt"] == rig.hook.posts[0]["alerts"][0]["startsAt"]


class KilledError(BaseException):
    """The process died here."""


def test_a_kill_between_post_and_commit_repeats_that_post_alone_under_the_same_id() -> None:
    rig = Rig()
    rig.deliver(alert(partition="0"))
    accepted = rig.hook.post

    def accept_and_die(message_id: str, body: bytes) -> None:
        accepted(message_id, body)
        raise KilledError

    rig.hook.post = accept_and_die  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        rig.deliver(alert(partition="1"))
    rig.hook.post = accepted  # type: ignore[method-assign]
    rig.restart()
    rig.read_on()
    rig.run(3)
    assert [post["alerts"][0]["labels"]["partition"] for post in rig.hook.posts] == ["0", "1", "1"]
    assert rig.hook.ids[1] == rig.hook.ids[2]


LIVES = st.lists(
    st.tuples(
        st.sampled_from("012"),
        st.sampled_from(["KafkaFollowerLag", "KafkaOffline", "KafkaCommittedDataLoss"]),
    ),
    min_size=1,
    max_size=12,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(1, 9)),
        st.tuples(st.just("run"), st.integers(0, 3)),
        st.tuples(st.just("down"), st.just(0)),
        st.tuples(st.just("up"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("rerun"), st.integers(1, 9)),
    ),
    max_size=30,
)


@settings(max_examples=200)
@given(lives=LIVES, steps=STEPS)
def test_whatever_fails_every_transition_arrives_once(
    lives: list[tuple[str, str]], steps: list[tuple[str, int]]
) -> None:
    rig = Rig()
    written: list[Alert] = []
    open_now: dict[tuple[str, str], Alert] = {}
    for number, (partition, name) in enumerate(lives):
        fired = open_now.pop((partition, name), None)
        if fired is None:
            fired = open_now[(partition, name)] = alert(
                name, partition=partition, at=NOW + number, starts_at=NOW + number
            )
            written.append(fired)
        else:
            written.append(
                alert(
                    name,
                    state="resolved",
                    partition=partition,
                    at=NOW + number,
                    starts_at=fired.starts_at,
                )
            )
    rig.write(*written)
    for action, amount in steps:
        if action == "read":
            rig.read_on(amount)
        elif action == "run":
            rig.run(amount)
        elif action == "restart":
            rig.restart()
        elif action == "rerun":
            # The stream repeats the end of what it wrote.
            rig.write(*rig.log[-amount:])
        else:
            rig.hook.failure = DOWN if action == "down" else None
    rig.hook.failure = None
    rig.read_on()
    rig.run(3)
    assert sorted(rig.hook.told()) == sorted(told(written))
    for mark in {each.fingerprint for each in written}:
        assert [pair for pair in rig.hook.told() if pair[0] == mark] == [
            pair for pair in told(written) if pair[0] == mark
        ]
    assert rig.store.marks[0].offset == len(rig.log)


class Picky:
    """Refuses, with HTTP 400, every post that holds an alert of partition `bad`."""

    def __init__(self, rig: Rig, bad: str) -> None:
        self.accept = rig.hook.post
        self.bad = bad

    def __call__(self, message_id: str, body: bytes) -> None:
        if any(each["labels"]["partition"] == self.bad for each in json.loads(body)["alerts"]):
            raise NotDeliveredError("HTTP 400", again=False, status=400)
        self.accept(message_id, body)


def test_one_bad_alert_costs_no_other() -> None:
    rig = Rig()
    rig.hook.post = Picky(rig, "13")  # type: ignore[method-assign]
    rig.deliver(*(alert(partition=str(number)) for number in range(30)))
    told_of = sorted(
        int(each["labels"]["partition"]) for post in rig.hook.posts for each in post["alerts"]
    )
    assert told_of == [number for number in range(30) if number != 13]
    (report,) = rig.courier.reports()
    assert report.outcomes == {"delivered": 29, "rejected": 1}
    assert rig.store.marks[0].offset == 30


def test_a_loss_that_is_refused_is_kept_until_it_is_taken_and_blocks_nobody() -> None:
    rig = Rig()
    loss = alert("KafkaCommittedDataLoss", severity="critical", incident="ab")
    rig.hook.failure = NotDeliveredError("HTTP 404", again=False, status=404)
    rig.deliver(loss, alert())
    rig.hook.failure = None
    rig.deliver(alert(partition="1"))
    assert [mark for mark, _ in rig.hook.told()] == [alert(partition="1").fingerprint]
    assert rig.store.marks[0].offset == 0
    rig.restart()
    rig.read_on()
    rig.run(60)
    assert [mark for mark, _ in rig.hook.told()].count(loss.fingerprint) == 1
    assert rig.store.marks[0].offset == 3


def test_after_an_outage_there_is_one_post_for_each_cause() -> None:
    rig = Rig()
    rig.hook.failure = DOWN
    rig.deliver(alert(partition="0"))
    for number in range(1, 20):
        rig.deliver(alert(partition=str(number)), alert(broker="3", partition=str(number)))
    rig.hook.failure = None
    rig.run()
    assert [len(post["alerts"]) for post in rig.hook.posts] == [1, 19, 19]


WINDOW = (NOW, NOW + 600)


def planned(each: Alert, now: float) -> bool:
    return each.labels["alertname"] == "KafkaFollowerLag" and WINDOW[0] <= now < WINDOW[1]


def test_planned_work_holds_back_what_it_explains_and_tells_what_is_open_at_its_end() -> None:
    rig = Rig(mute=planned)
    over, still_open = life(partition="0", seconds=5), alert(partition="1")
    rig.deliver(*over, still_open, alert("KafkaOffline", severity="critical"))
    assert [post["alerts"][0]["labels"]["alertname"] for post in rig.hook.posts] == ["KafkaOffline"]
    rig.courier.tick({"east": NOW}, {})
    (report,) = rig.courier.reports()
    assert (report.outcomes["muted"], report.muted, report.waiting) == (2, 1, 0)
    rig.run(590)
    rig.courier.tick({"east": NOW + 593}, {})
    rig.run(3)
    assert len(rig.hook.posts) == 1
    rig.run(10)
    rig.courier.tick({"east": NOW + 606}, {})
    rig.run(3)
    assert rig.hook.told()[1:] == told([still_open])
    assert rig.courier.reports()[0].muted == 0
    rig.deliver(alert(partition="1", state="resolved", at=NOW + 700))
    assert [state for _, state in rig.hook.told()[1:]] == ["firing", "resolved"]


def test_what_was_held_back_survives_a_restart() -> None:
    rig = Rig(mute=planned)
    rig.deliver(alert(partition="0"), *life(partition="1"))
    assert rig.store.marks[0].offset == 0
    rig.restart()
    rig.read_on()
    rig.run(3)
    assert rig.hook.posts == []
    rig.clock.now = WINDOW[1] + 1
    rig.courier.tick({"east": rig.clock.now}, {})
    rig.run(3)
    assert rig.hook.told() == told([alert(partition="0")])
    assert rig.store.marks[0].offset == 3


def test_the_end_of_what_was_told_before_the_window_is_told_in_it() -> None:
    rig = Rig(mute=planned)
    rig.clock.now = NOW - 60
    fired, ended = life(start=NOW - 60, seconds=120)
    rig.deliver(fired)
    rig.clock.now = NOW + 60
    rig.deliver(ended)
    assert rig.hook.told() == told([fired, ended])


def test_an_open_alert_without_a_record_is_told_once() -> None:
    rig = Rig()
    lost = alert(starts_at=NOW + 5, at=NOW + 5)
    rig.courier.adopt([lost], horizon=NOW)
    rig.run(3)
    rig.courier.adopt([lost], horizon=NOW)
    # Its record was only late.
    rig.deliver(lost)
    assert rig.hook.told() == told([lost])
    ended = alert(state="resolved", starts_at=NOW + 5, at=NOW + 50)
    rig.deliver(ended)
    assert rig.hook.told() == told([lost, ended])


def test_an_open_alert_whose_record_may_have_aged_out_was_told_by_an_earlier_run() -> None:
    rig = Rig()
    rig.deliver(alert("KafkaOffline", severity="critical"))
    rig.restart()
    old = alert(starts_at=NOW - 1_000_000)
    rig.courier.adopt([old], horizon=NOW)
    rig.run(3)
    assert len(rig.hook.told()) == 1
    # Its end is news.
    ended = alert(state="resolved", starts_at=old.starts_at, at=NOW + 50)
    rig.log.append(ended)
    rig.read_on()
    rig.run(3)
    assert rig.hook.told()[1:] == told([ended])
    # A receiver that is new has not been told.
    new = Rig()
    new.courier.adopt([old], horizon=NOW)
    new.run(3)
    assert new.hook.told() == told([old])


def test_the_heart_beats_while_the_readers_tick_and_each_beat_is_a_message_of_its_own() -> None:
    rig = Rig(heartbeat=Heartbeat(60.0, "http://runbooks.example", NOW))
    for _ in range(130):
        rig.courier.tick({}, {})
        rig.run(1)
    assert [post["alerts"][0]["labels"] for post in rig.hook.posts] == [
        {"alertname": "TidemarkWatchdog", "severity": "info"}
    ] * 3
    assert len(set(rig.hook.ids)) == 3
    assert {post["status"] for post in rig.hook.posts} == {"firing"}
    # The readers are silent.
    for _ in range(300):
        rig.run(1)
    assert len(rig.hook.posts) == 4


def test_a_heartbeat_that_failed_is_not_made_up_for() -> None:
    rig = Rig(heartbeat=Heartbeat(60.0, "http://runbooks.example", NOW))
    rig.hook.failure = DOWN
    for _ in range(300):
        rig.courier.tick({}, {})
        rig.run(1)
    rig.hook.failure = None
    rig.courier.tick({}, {})
    rig.run(60)
    assert len(rig.hook.posts) == 1


def test_the_end_of_what_was_refused_is_of_no_interest() -> None:
    rig = Rig()
    rig.hook.failure = REFUSED
    fired, ended = life()
    rig.deliver(fired)
    rig.hook.failure = None
    rig.deliver(ended)
    assert rig.hook.posts == []
    assert rig.store.marks[0].offset == 2


ROUGH_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(1, 9)),
        st.tuples(st.just("run"), st.sampled_from([0, 1, 3, 61])),
        st.tuples(st.sampled_from(["down", "refuse", "picky", "up", "mute", "unmute"]), st.just(0)),
    ),
    max_size=30,
)
ROUGH_LIVES = st.lists(
    st.tuples(
        st.sampled_from("01234"), st.sampled_from(["KafkaFollowerLag", "KafkaCommittedDataLoss"])
    ),
    max_size=16,
)


@settings(max_examples=150)
@given(lives=ROUGH_LIVES, steps=ROUGH_STEPS)
def test_whatever_a_receiver_answers_and_whenever_work_is_planned_nothing_comes_twice_and_every_loss_comes(
    lives: list[tuple[str, str]], steps: list[tuple[str, int]]
) -> None:
    muted = [False]
    rig = Rig(
        queue_size=3,
        mute=lambda each, _: muted[0] and each.labels["alertname"] != "KafkaCommittedDataLoss",
    )
    # In a row: each alert fires, and ends when it comes again.
    open_now: dict[tuple[str, str], Alert] = {}
    for number, each in enumerate(lives):
        partition, name = each
        fired = open_now.pop(each, None)
        start = NOW + number if fired is None else fired.starts_at
        record = alert(
            name,
            state="firing" if fired is None else "resolved",
            partition=partition,
            at=NOW + number,
            starts_at=start,
        )
        rig.write(record)
        if fired is None:
            open_now[each] = record
    accept = rig.hook.post
    for action, amount in steps:
        rig.hook.post = Picky(rig, "3") if action == "picky" else accept  # type: ignore[method-assign]
        if isinstance(rig.hook.post, Picky):
            rig.hook.post.accept = accept
        if action == "read":
            rig.read_on(amount)
        elif action == "run":
            rig.run(amount)
        elif action in {"mute", "unmute"}:
            muted[0] = action == "mute"
        else:
            rig.hook.failure = {"down": DOWN, "refuse": REFUSED}.get(action)
        rig.courier.tick({"east": rig.clock.now}, {})
    rig.hook.failure, muted[0] = None, False
    rig.hook.post = accept  # type: ignore[method-assign]
    rig.read_on()
    rig.courier.tick({"east": rig.clock.now}, {})
    rig.run(3)
    rig.run(61)
    posted = [
        (each["fingerprint"], each["status"], each["startsAt"])
        for post in rig.hook.posts
        for each in post["alerts"]
    ]
    assert len(posted) == len(set(posted))
    losses = [each for each in rig.log if each.labels["alertname"] == "KafkaCommittedDataLoss"]
    for mark in {each.fingerprint for each in losses}:
        assert [pair for pair in rig.hook.told() if pair[0] == mark] == [
            pair for pair in told(losses) if pair[0] == mark
        ]
    assert rig.store.marks.get(0) is None or rig.store.marks[0].offset == len(rig.log)

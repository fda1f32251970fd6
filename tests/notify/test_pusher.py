"""What a set of Alertmanagers is told, minute by minute: simulated ones that forget at a restart and end what is not repeated."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.make import NOW, Clock, MemoryStore, alert, open_alert, view
from tidemark.core.records import Alert
from tidemark.settings import Alertmanager, Cluster, Settings
from tidemark_exporters.notify import board as board_module
from tidemark_exporters.notify.alertmanager import post_splitting
from tidemark_exporters.notify.board import RESEND_SECONDS, RESOLVED_SECONDS, Board
from tidemark_exporters.notify.delivery import Delivery
from tidemark_exporters.notify.heartbeat import Heartbeat
from tidemark_exporters.notify.maintenance import Mute, never
from tidemark_exporters.notify.payload import rfc3339
from tidemark_exporters.notify.pusher import Pusher
from tidemark_exporters.notify.receiver import NotDeliveredError

DOWN = NotDeliveredError("ConnectionError", again=True)


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class FakeAlertmanager:
    """Keeps alerts by label set, ends them at endsAt, and notes what it would notify of: firing, then resolved."""

    def __init__(self, clock: Clock, name: str = "main/am:9093") -> None:
        self.name = name
        self.clock = clock
        self.posts: list[list[dict[str, Any]]] = []
        self.alerts: dict[str, dict[str, Any]] = {}
        self.notified: list[tuple[str, str]] = []
        self.failure: NotDeliveredError | None = None
        self.bad_partition: str | None = None

    def post(self, alerts: list[dict[str, Any]]) -> None:
        if self.failure is not None:
            raise self.failure
        self.posts.append(alerts)
        bad = (
            any(each["labels"].get("partition") == self.bad_partition for each in alerts)
            if self.bad_partition
            else False
        )
        if bad:
            raise NotDeliveredError("HTTP 400", again=False, status=400, text="invalid label set")
        for each in alerts:
            assert seconds(each["startsAt"]) <= seconds(each["endsAt"])
            self.alerts[str(sorted(each["labels"].items()))] = each
        self.flush()

    def flush(self) -> None:
        for mark, each in self.alerts.items():
            told = next((state for known, state in reversed(self.notified) if known == mark), None)
            state = "firing" if seconds(each["endsAt"]) > self.clock.now else "resolved"
            if state != told and (state == "firing" or told == "firing"):
                self.notified.append((mark, state))

    def restart(self) -> None:
        """Alerts are forgotten; what was notified of is not."""
        self.alerts = {}

    def active(self) -> list[dict[str, Any]]:
        return [each for each in self.alerts.values() if seconds(each["endsAt"]) > self.clock.now]

    def states(self) -> list[str]:
        return [state for _, state in self.notified]


class Rig:
    """One set of Alertmanagers and the log of alert records."""

    def __init__(self, instances: int = 1, mute: Mute = never, heartbeat: bool = False) -> None:
        self.clock = Clock()
        self.managers = [
            FakeAlertmanager(self.clock, f"main/am-{number}:9093") for number in range(instances)
        ]
        self.store = MemoryStore()
        self.log: list[Alert] = []
        self.mute = mute
        self.heartbeat = heartbeat
        self.newest: dict[str, float] | None = None
        self.restart()

    @property
    def manager(self) -> FakeAlertmanager:
        return self.managers[0]

    def restart(self) -> None:
        heart = (
            Heartbeat(60.0, "http://runbooks.example", self.clock.now) if self.heartbeat else None
        )
        route = Alertmanager(name="main", urls=["http://127.0.0.1:1"])
        self.board = board = Board(
            route, self.store.load(), [0], self.clock.now, 1000, self.mute, heart
        )
        self.pusher = Pusher(
            "main", board, self.managers, self.store, "http://tidemark.example", self.clock
        )
        self.delivery = Delivery(
            Settings(clusters=[Cluster(name="east")]), [self.pusher], {0: 0}, self.clock
        )
        self.read = 0

    def write(self, *alerts: Alert) -> None:
        self.log.extend(alerts)

    def step(self, passed: float = 1.0) -> None:
        """A second: read, tick, push; passes flow unless `newest` stands still."""
        self.clock.now += passed
        records = [
            (each, (0, self.read + number)) for number, each in enumerate(self.log[self.read :])
        ]
        self.read += len(records)
        if records:
            self.delivery.alerts(records)
        self.delivery.tick({"east": self.clock.now} if self.newest is None else self.newest)
        for line in self.pusher.lines:
            self.pusher.step(line)
        for manager in self.managers:
            manager.flush()

    def run(self, whole: int) -> None:
        for _ in range(whole):
            self.step()


def test_what_is_new_is_posted_at_once_and_what_is_open_every_30_seconds() -> None:
    rig = Rig()
    rig.step()
    fired = alert(description="7 records behind")
    rig.write(fired)
    rig.step()
    assert len(rig.manager.posts) == 1
    (posted,) = rig.manager.posts[0]
    assert posted == {
        "labels": fired.labels,
        "annotations": fired.annotations,
        "startsAt": "2027-01-15T08:00:00.000Z",
        "endsAt": "2027-01-15T08:02:02.000Z",
        "generatorURL": f"http://tidemark.example/partition?cluster=east&topic=orders&partition=0#alert-{fired.fingerprint}",
    }
    rig.run(120)
    assert len(rig.manager.posts) == 1 + 120 // RESEND_SECONDS
    assert {each["startsAt"] for post in rig.manager.posts for each in post} == {posted["startsAt"]}
    assert rig.manager.states() == ["firing"]
    assert rig.store.marks[0].offset == 1


def test_it_starts_when_it_fired_and_not_long_before_whatever_comes_between() -> None:
    """A group does not wait where an alert's start is older than its wait: Alertmanager would notify of the first alone."""
    began, fired_at = NOW - 9, NOW + 1
    rig = Rig()
    rig.step()
    rig.write(alert(starts_at=began, at=fired_at))
    rig.step()
    rig.restart()
    rig.run(round(RESEND_SECONDS) + 1)
    rig.write(alert(state="resolved", starts_at=began, at=NOW + 40))
    rig.step()
    rig.restart()
    rig.run(round(RESEND_SECONDS) + 1)
    posted = [each for post in rig.manager.posts for each in post]
    assert {each["startsAt"] for each in posted} == {rfc3339(fired_at)}
    assert rig.manager.states() == ["firing", "resolved"]


def test_what_came_and_went_unheard_starts_when_it_fired() -> None:
    rig = Rig()
    rig.step()
    rig.manager.failure = DOWN
    rig.write(
        alert(starts_at=NOW - 9, at=NOW + 1), alert(state="resolved", starts_at=NOW - 9, at=NOW + 5)
    )
    rig.run(5)
    rig.manager.failure = None
    rig.run(120)
    assert {each["startsAt"] for post in rig.manager.posts for each in post} == {rfc3339(NOW + 1)}
    assert rig.manager.states() == ["firing", "resolved"]


def test_an_update_changes_the_words_at_the_next_turn() -> None:
    rig = Rig()
    rig.write(alert(description="7"), alert(state="update", description="9"))
    rig.step()
    assert rig.manager.active()[0]["annotations"]["description"] == "9"
    rig.write(alert(state="update", description="11"))
    rig.run(31)
    assert rig.manager.active()[0]["annotations"]["description"] == "11"


def test_an_end_is_posted_at_once_repeated_for_15_minutes_and_then_forgotten() -> None:
    rig = Rig()
    rig.write(alert(at=NOW))
    rig.step()
    rig.write(alert(state="resolved", at=NOW + 2, reason="cleared"))
    rig.step()
    assert rig.manager.active() == []
    assert rig.manager.states() == ["firing", "resolved"]
    (ended,) = rig.manager.posts[-1]
    assert ended["endsAt"] == "2027-01-15T08:00:02.000Z"
    assert ended["annotations"]["reason"] == "cleared"
    rig.run(int(RESOLVED_SECONDS))
    posts = len(rig.manager.posts)
    assert posts == pytest.approx(2 + RESOLVED_SECONDS / RESEND_SECONDS, abs=1)
    assert all(post == [ended] for post in rig.manager.posts[1:])
    rig.run(120)
    assert len(rig.manager.posts) == posts
    assert rig.store.marks[0].offset == 2


def test_a_restarted_alertmanager_knows_it_again_within_a_minute() -> None:
    rig = Rig()
    rig.write(alert())
    rig.run(5)
    rig.manager.restart()
    rig.run(31)
    assert len(rig.manager.active()) == 1
    assert rig.manager.states() == ["firing"]


def test_one_that_was_down_is_told_everything_at_its_first_answer() -> None:
    rig = Rig(instances=2)
    rig.write(alert(partition="0"))
    rig.run(5)
    rig.managers[1].failure = DOWN
    rig.write(alert(partition="1"))
    rig.run(120)
    assert len(rig.managers[0].active()) == 2
    # One of the set took it: that is delivered.
    assert rig.store.marks[0].offset == 2
    rig.managers[1].failure = None
    rig.managers[1].restart()
    rig.run(6)
    assert len(rig.managers[1].active()) == 2


def test_a_short_outage_may_have_been_a_restart() -> None:
    rig = Rig()
    rig.write(alert())
    rig.run(31)
    rig.manager.failure = DOWN
    rig.manager.restart()
    rig.write(alert(partition="1"))
    rig.run(2)
    rig.manager.failure = None
    # Well before the next turn.
    rig.run(6)
    assert len(rig.manager.active()) == 2


def test_what_came_and_went_while_all_were_down_is_notified_all_the_same() -> None:
    rig = Rig()
    rig.manager.failure = DOWN
    rig.write(alert(at=NOW + 10, starts_at=NOW + 8))
    rig.run(20)
    rig.write(alert(state="resolved", at=NOW + 20, starts_at=NOW + 8))
    rig.run(100)
    assert rig.store.marks == {}
    rig.manager.failure = None
    # It fires for a turn: a group is told of at Alertmanager's own pace.
    rig.run(20)
    assert rig.manager.states() == ["firing"]
    rig.run(40)
    assert rig.manager.states() == ["firing", "resolved"]
    assert rig.store.marks[0].offset == 2


def test_a_bad_alert_stands_alone_and_is_tried_again_later() -> None:
    rig = Rig()
    rig.manager.bad_partition = "13"
    fired = [alert(partition=str(number)) for number in range(20)]
    rig.write(*fired)
    rig.run(2)
    assert len(rig.manager.active()) == 19
    assert len(rig.manager.posts) <= 12
    posts = len(rig.manager.posts)
    rig.run(60)
    # It is left out of the repetitions.
    assert [len(post) for post in rig.manager.posts[posts:]] == [19, 19]
    rig.manager.bad_partition = None
    rig.run(200)
    rig.delivery.view(view(at=rig.clock.now, alerts=[open_alert(each) for each in fired]))
    rig.run(100)
    assert len(rig.manager.active()) == 20
    assert sum(report.outcomes["rejected"] for report in rig.pusher.reports()) == 1


def test_a_refusal_that_is_not_of_the_content_is_tried_again_each_turn() -> None:
    rig = Rig()
    rig.manager.failure = NotDeliveredError("HTTP 401", again=False, status=401)
    rig.write(alert())
    rig.run(10)
    (_, instance) = rig.pusher.reports()
    assert instance.attempts == {"rejected": 1}
    assert (instance.waiting, instance.oldest) == (1, NOW + 1)
    rig.manager.failure = None
    rig.run(30)
    assert len(rig.manager.active()) == 1
    assert rig.pusher.reports()[1].waiting == 0


def test_while_passes_stop_alerts_are_posted_on_as_stale_and_nothing_resolves() -> None:
    rig = Rig()
    rig.write(alert())
    rig.run(5)
    rig.newest = {"east": NOW + 5}
    rig.run(1200)
    posted = {each["labels"]["alertname"]: each for each in rig.manager.active()}
    assert posted.keys() == {"KafkaFollowerLag", "TidemarkStreamStalled"}
    assert posted["KafkaFollowerLag"]["annotations"]["stale_since"] == "2027-01-15T08:00:05.000Z"
    rig.newest = None
    # The stream vouches for it again.
    rig.delivery.view(view(at=rig.clock.now, alerts=[open_alert(alert())]))
    rig.run(35)
    posted = {each["labels"]["alertname"]: each for each in rig.manager.active()}
    assert "stale_since" not in posted["KafkaFollowerLag"]["annotations"]
    # The watchdog waits two minutes.
    assert posted["TidemarkStreamStalled"]["annotations"]["description"].endswith(
        "This alert ends once passes have flowed for 120 s."
    )
    assert posted.keys() == {"KafkaFollowerLag", "TidemarkStreamStalled"}
    rig.run(90)
    assert {each["labels"]["alertname"] for each in rig.manager.active()} == {"KafkaFollowerLag"}
    assert rig.manager.states() == ["firing", "firing", "resolved"]


def test_after_a_restart_of_the_exporter_nothing_is_notified_anew() -> None:
    rig = Rig()
    rig.write(
        alert(partition="0"),
        alert(partition="1"),
        alert(partition="1", state="resolved", at=NOW + 1),
    )
    rig.run(40)
    before = list(rig.manager.notified)
    rig.restart()
    rig.run(200)
    assert rig.manager.notified == before
    assert len(rig.manager.active()) == 1
    rig.write(alert(partition="0", state="resolved", at=NOW + 300))
    rig.run(70)
    assert len(rig.manager.notified) == len(before) + 1


def test_an_open_alert_older_than_the_topic_is_taken_from_its_view_before_alertmanager_ends_it() -> (
    None
):
    rig = Rig()
    old = alert(starts_at=NOW - 1_000_000, at=NOW - 1_000_000)
    rig.delivery.view(view(at=NOW, alerts=[open_alert(old)]))
    for _ in range(60):
        rig.clock.now += 1
        rig.delivery.tick({"east": rig.clock.now}, lambda: [open_alert(old)])
        rig.pusher.step(rig.pusher.lines[0])
    assert [each["labels"] for each in rig.manager.active()] == [old.labels]
    ended = alert(state="resolved", starts_at=old.starts_at, at=NOW + 61)
    rig.write(ended)
    rig.run(2)
    assert rig.manager.active() == []


def test_an_alert_that_left_its_view_meanwhile_is_not_taken_from_it() -> None:
    rig = Rig()
    rig.delivery.view(view(at=NOW, alerts=[open_alert(alert())]))
    rig.run(60)
    assert rig.manager.posts == []


def test_one_that_the_stream_forgot_ends_and_stays_ended_over_a_restart() -> None:
    rig = Rig()
    rig.write(alert(at=NOW))
    rig.run(400)
    assert rig.manager.states() == ["firing", "resolved"]
    rig.restart()
    rig.run(100)
    assert rig.manager.states() == ["firing", "resolved"]


def test_planned_work_holds_back_and_then_tells() -> None:
    def planned(each: Alert, now: float) -> bool:
        return each.labels["alertname"] == "KafkaFollowerLag" and now < NOW + 300

    rig = Rig(mute=planned)
    rig.write(
        alert(partition="0"),
        alert(partition="1"),
        alert("KafkaCommittedDataLoss", severity="critical", incident="ab"),
    )
    rig.run(100)
    assert [each["labels"]["alertname"] for each in rig.manager.active()] == [
        "KafkaCommittedDataLoss"
    ]
    assert rig.pusher.reports()[0].muted == 2
    rig.write(alert(partition="1", state="resolved", at=NOW + 100))
    rig.run(150)
    for kept in ("0", None):
        rig.delivery.view(
            view(at=rig.clock.now, alerts=[open_alert(alert(partition="0"))] if kept else [])
        )
    rig.run(60)
    assert sorted(
        each["labels"]["partition"]
        for each in rig.manager.active()
        if "incident" not in each["labels"]
    ) == ["0"]
    assert rig.pusher.reports()[0].outcomes["muted"] == 2
    assert rig.store.marks[0].offset == 4


def test_planned_work_holds_back_what_is_taken_from_a_view_unless_it_was_told_before() -> None:
    rig = Rig(mute=lambda _, now: now < NOW + 300)
    new, old = (
        alert(starts_at=NOW, at=NOW),
        alert(partition="1", starts_at=NOW - 1_000_000, at=NOW - 1_000_000),
    )
    rig.pusher.adopt([new, old], horizon=NOW - 10)
    rig.step()
    # A set that never committed anything has been told nothing.
    assert rig.manager.posts == []
    rig.write(alert("KafkaCommittedDataLoss", severity="critical", incident="ab"))
    rig.step()
    rig.restart()
    rig.pusher.adopt([new, old], horizon=NOW - 10)
    rig.step()
    assert {
        each["labels"]["partition"]
        for each in rig.manager.active()
        if "incident" not in each["labels"]
    } == {"1"}


def test_old_news_is_history_but_a_loss_is_not() -> None:
    rig = Rig()
    early = NOW - 3600
    for name, more in (
        ("KafkaFollowerLag", {}),
        ("KafkaCommittedDataLoss", {"severity": "critical", "incident": "ab"}),
    ):
        rig.write(
            alert(name, at=early, starts_at=early, **more),  # type: ignore[arg-type]
            alert(name, state="resolved", at=early + 9, starts_at=early, **more),  # type: ignore[arg-type]
        )
    rig.run(100)
    assert {each["labels"]["alertname"] for post in rig.manager.posts for each in post} == {
        "KafkaCommittedDataLoss"
    }
    assert rig.manager.states() == ["firing", "resolved"]
    assert rig.store.marks[0].offset == 4


def test_a_full_board_lets_go_of_what_ended_and_then_of_the_oldest_but_of_no_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board_module, "MAX_ROWS", 500)
    rig = Rig()
    rig.write(
        alert("KafkaCommittedDataLoss", severity="critical"),
        *(alert(partition=str(number)) for number in range(499)),
    )
    rig.run(1)
    rig.write(*(alert(state="resolved", partition=str(number)) for number in (400, 401, 402)))
    rig.run(1)
    assert len(rig.board) == 500
    rig.write(alert(partition="500"))
    rig.run(1)
    # A hundredth at once: to find them takes a look at all.
    gone = {"400", "401", "402", "0", "1"}
    open_now = {"0", *(str(number) for number in range(499)), "500"} - gone
    assert len(rig.board) == 496
    rig.manager.restart()
    rig.run(40)
    assert {each["labels"]["partition"] for each in rig.manager.active()} == open_now | {"0"}
    assert [
        each["labels"]["alertname"]
        for each in rig.manager.active()
        if each["labels"]["partition"] == "0"
    ] == ["KafkaCommittedDataLoss"]
    # What Alertmanager knew as open, and now ends without having ended, is counted too.
    assert rig.pusher.reports()[0].outcomes["dropped"] == 2


def test_a_loss_is_posted_before_all_that_waits() -> None:
    rig = Rig()
    rig.write(
        *(alert(partition=str(number)) for number in range(1200)),
        alert("KafkaCommittedDataLoss", severity="critical"),
    )
    rig.step()
    assert [len(post) for post in rig.manager.posts] == [500, 500, 201]
    assert rig.manager.posts[0][0]["labels"]["alertname"] == "KafkaCommittedDataLoss"


def test_the_heart_beats_until_the_readers_fall_silent() -> None:
    rig = Rig(heartbeat=True)
    rig.run(100)
    assert [each["labels"]["alertname"] for each in rig.manager.active()] == ["TidemarkWatchdog"]
    assert len(rig.manager.posts) == 4
    for _ in range(300):
        rig.clock.now += 1
        rig.pusher.step(rig.pusher.lines[0])
    assert rig.manager.active() == []


def test_splitting_posts_every_good_alert_and_names_the_bad() -> None:
    taken: set[int] = set()

    def post(alerts: list[dict[str, Any]]) -> None:
        if any(each["n"] in {3, 4, 700} for each in alerts):
            raise NotDeliveredError("HTTP 400", again=False, status=400, text="bad")
        taken.update(each["n"] for each in alerts)

    refused = post_splitting(post, [{"n": number} for number in range(1000)])
    assert refused == dict.fromkeys((3, 4, 700), "HTTP 400: bad")
    assert taken == set(range(1000)) - refused.keys()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 4)),
        st.tuples(st.just("run"), st.integers(1, 90)),
        st.tuples(st.just("down"), st.integers(0, 1)),
        st.tuples(st.just("up"), st.integers(0, 1)),
        st.tuples(st.just("forget"), st.integers(0, 1)),
        st.tuples(st.just("restart"), st.just(0)),
        st.tuples(st.just("rerun"), st.integers(1, 5)),
    ),
    max_size=20,
)


@settings(max_examples=60)
@given(lives=st.lists(st.sampled_from("0123"), max_size=16), steps=STEPS)
def test_whatever_fails_every_alertmanager_comes_to_know_what_is_open(
    lives: list[str], steps: list[tuple[str, int]]
) -> None:
    rig = Rig(instances=2)
    open_now: dict[str, Alert] = {}
    waiting = list(lives)

    def write_one() -> None:
        if not waiting:
            return
        partition = waiting.pop(0)
        fired = open_now.pop(partition, None)
        if fired is None:
            open_now[partition] = alert(
                partition=partition, at=rig.clock.now, starts_at=rig.clock.now
            )
            rig.write(open_now[partition])
        else:
            rig.write(
                alert(
                    state="resolved",
                    partition=partition,
                    at=rig.clock.now,
                    starts_at=fired.starts_at,
                )
            )

    for action, amount in steps:
        if action == "write":
            for _ in range(amount):
                rig.clock.now += 1
                write_one()
        elif action == "run":
            rig.step(float(amount) / 2)
            rig.step(float(amount) / 2)
        elif action == "restart":
            rig.restart()
        elif action == "rerun":
            rig.write(*rig.log[-amount:])
        elif action == "forget":
            rig.managers[amount].restart()
        else:
            rig.managers[amount].failure = DOWN if action == "down" else None
        for each in open_now.values():
            rig.delivery.view(view(at=rig.clock.now, alerts=[open_alert(each)]))
    for manager in rig.managers:
        manager.failure = None
    for _ in range(4):
        rig.step(35)
        for each in open_now.values():
            rig.delivery.view(view(at=rig.clock.now, alerts=[open_alert(each)]))
    for manager in rig.managers:
        assert {each["labels"]["partition"] for each in manager.active()} == open_now.keys()
    assert rig.store.marks.get(0) is None or rig.store.marks[0].offset == len(rig.log)

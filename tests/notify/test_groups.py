"""One cause is one group key and few posts, the worst first; another cause is another page."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.export.make import NOW, alert
from tests.notify.rig import ALERTMANAGER, DOWN, LOSS, Rig, per_alert, transitions
from tidemark.core.records import Alert
from tidemark_exporters.notify import groups
from tidemark_exporters.notify.groups import FOLLOW_SECONDS, PAGE_SECONDS, TOGETHER_SECONDS, Groups

PARTITIONS = 40
SPREAD_SECONDS = 20


@pytest.fixture
def rig() -> Rig:
    return Rig()


def of_partition(partition: int, stopped: str, alive: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What an unclean election leads to: name and fields of each alert."""
    lost, elected = int(stopped[partition % len(stopped)]), alive[partition % len(alive)]
    place = {"partition": str(partition)}
    page = {**place, "severity": "critical", "broker": elected, "incident": f"{partition:08x}"}
    range_lost = {"proven": [100, 105], "leader_before": lost}
    yield "KafkaUncleanElection", {**page, "evidence": {"leader_before": lost}}
    yield "KafkaCommittedDataLoss", {**page, "evidence": range_lost}
    yield "KafkaHwRegression", {**place, "severity": "info", "broker": elected}
    yield "KafkaUnderReplicated", {**place, "severity": "info", "broker": str(lost)}
    yield "KafkaLeaderAlone", {**place, "broker": None, "evidence": {"leader": int(elected)}}
    if partition < 29:
        yield "KafkaLogTruncation", {**place, "severity": "info", "broker": str(lost)}


def unclean_elections(seed: int, stopped: str = "12", alive: str = "3") -> list[Alert]:
    """229 alerts of one cause over 20 s, of each partition in a random order."""
    chance = random.Random(seed)
    found = []
    for partition in range(PARTITIONS):
        for name, fields in of_partition(partition, stopped, alive):
            at = NOW + round(SPREAD_SECONDS * chance.random() * 2) / 2
            found.append(alert(name, at=at, starts_at=at - 1, **fields))
    return sorted(found, key=lambda each: each.at)


def feed(rig: Rig, alerts: list[Alert], seconds: int = 60, restart_at: float | None = None) -> None:
    """Writes alerts when they are due, and posts twice a second."""
    waiting = list(alerts)
    for _ in range(2 * seconds):
        while waiting and waiting[0].at <= rig.clock.now:
            rig.write(waiting.pop(0))
        if rig.clock.now == restart_at:
            rig.restart()
        rig.read()
        rig.post()
        rig.step(0.5)


def keys(rig: Rig) -> set[str]:
    return {post["groupKey"] for post in rig.address.posts}


@pytest.mark.parametrize(("stopped", "alive"), [("1", "2"), ("12", "3"), ("12", "345")])
@pytest.mark.parametrize("seed", range(5))
def test_an_unclean_election_of_forty_partitions_is_three_posts(
    seed: int, stopped: str, alive: str
) -> None:
    rig, alerts = Rig(), unclean_elections(seed, stopped, alive)
    assert len(alerts) == 229
    feed(rig, alerts)
    assert sorted(rig.address.notified) == sorted(transitions(alerts))
    pages = [post for post in rig.address.posts if "cause" in post["groupLabels"]]
    assert len(pages) <= 3
    assert len({post["groupKey"] for post in pages}) == 1
    # What fired before the first page is a group of each broker.
    tickets = [post for post in rig.address.posts if "cause" not in post["groupLabels"]]
    assert len(tickets) == len({post["groupKey"] for post in tickets}) <= len(stopped + alive)
    assert pages[0]["alerts"][0]["labels"]["severity"] == "critical"
    assert {post["status"] for post in pages} == {"firing"}
    assert pages[-1]["commonAnnotations"]["summary"].startswith("Update: 40 partitions in east")
    causes = {each["annotations"]["cause"] for post in pages for each in post["alerts"]}
    assert causes == {pages[0]["groupLabels"]["cause"]}


def test_the_first_post_has_the_losses_first_and_sums_them_up(rig: Rig) -> None:
    losses = [
        alert(**LOSS, partition=str(n), evidence={"proven": [100, 105 + n], "leader_before": 1})
        for n in range(3)
    ]
    elections = [
        alert("KafkaUncleanElection", severity="critical", partition=str(n)) for n in range(5)
    ]
    rig.deliver_at_once(alert(partition="9"), *elections, *losses)
    (post,) = rig.address.posts
    names = [each["labels"]["alertname"] for each in post["alerts"]]
    assert names == 3 * ["KafkaCommittedDataLoss"] + 5 * ["KafkaUncleanElection"] + [
        "KafkaFollowerLag"
    ]
    assert post["commonAnnotations"]["summary"].startswith(
        "3 of 6 partitions of this cause in east lost committed records: 5 to 7 records each, "
        "worst orders-2 100-107. 9 alerts of one cause in east (9 firing): KafkaCommittedDataLoss "
    )


def test_an_offline_partition_is_posted_again_where_others_may_lead(rig: Rig) -> None:
    rig.deliver_at_once(alert("KafkaOffline", severity="critical", description="1 or 2"))
    rig.deliver(alert("KafkaOffline", severity="critical", state="update", description="1"))
    rig.step(40)
    assert [each["annotations"]["description"] for each in rig.address.posted] == ["1 or 2", "1"]


def test_a_lone_loss_is_posted_at_once_with_its_own_summary(rig: Rig) -> None:
    rig.deliver_at_once(alert(**LOSS, evidence={"proven": [100, 105]}))
    assert rig.address.posts[0]["commonAnnotations"]["summary"] == "A sentence."
    more = alert(**LOSS, partition="1", evidence={"proven": [1, 2]})
    rig.deliver(more, after=9)
    assert len(rig.address.posts) == 1
    rig.step()
    assert rig.address.posts[1]["commonAnnotations"]["summary"].startswith(
        "Update: 2 partitions in east lost committed records: 1 to 5 records each, "
        "worst orders-0 100-105. 1 alert of one cause in east (1 firing): "
    )


def test_the_first_loss_after_offline_partitions_is_posted_at_once(rig: Rig) -> None:
    rig.deliver(alert("KafkaOffline", severity="critical"), after=1)
    rig.deliver_at_once(alert("KafkaOffline", severity="critical", partition="1"), alert(**LOSS))
    assert rig.address.sizes() == [1, 2]
    assert len(keys(rig)) == 1


def test_a_cause_is_resolved_with_its_last_alert(rig: Rig) -> None:
    offline = [alert("KafkaOffline", severity="critical", partition=str(n)) for n in range(2)]
    ended = [
        alert("KafkaOffline", "resolved", NOW + 99, severity="critical", partition=str(n))
        for n in range(2)
    ]
    rig.deliver(*offline)
    rig.deliver(ended[0], after=40)
    rig.deliver(ended[1], after=40)
    assert [post["status"] for post in rig.address.posts] == ["firing", "firing", "resolved"]
    assert len(keys(rig)) == 1
    # It is a page again, and urgent.
    again = alert("KafkaOffline", severity="critical", at=NOW + 100, starts_at=NOW + 97)
    rig.deliver_at_once(again)
    assert rig.address.posts[3]["status"] == "firing"
    assert len(keys(rig)) == 1


def test_a_warning_that_was_posted_does_not_take_a_page_in(rig: Rig) -> None:
    """The receiver may not page for an update of a ticket."""
    rig.deliver(alert("KafkaFollowerLag"))
    rig.deliver_at_once(alert(**LOSS, at=NOW + 3))
    assert [post["groupLabels"].get("broker") for post in rig.address.posts] == ["2", None]
    assert len(keys(rig)) == 2


def test_an_alert_that_waits_in_two_states_keeps_its_order_when_a_cause_begins(rig: Rig) -> None:
    with rig.failing(DOWN):
        fired, ended = alert(), alert(state="resolved", at=NOW + 1)
        again = alert(at=NOW + 2, starts_at=NOW + 1)
        rig.deliver(fired, ended, after=1)
        rig.deliver(alert(**LOSS, partition="1"), again)
    rig.run(60)
    of_lag = per_alert(rig.address.notified)[fired.fingerprint]
    assert of_lag == ["firing", "resolved", "firing"]


def group_of(each: Groups, *alerts: Alert) -> list[str]:
    """The keys of the groups that the alerts fire into."""
    found = []
    for one in alerts:
        each.fire(one)
        found.append(str(each.of(one).labels))
    return found


LATER: dict[str, Any] = {"partition": "1", "broker": "7", "at": NOW + TOGETHER_SECONDS + 1}


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"partition": "1"}, True),
        ({"broker": "7"}, True),
        ({"partition": "1", "broker": "7"}, True),
        (LATER, False),
        ({**LATER, "broker": "2"}, True),
        ({**LATER, "partition": "0"}, True),
        # The leader that was lost.
        ({**LATER, "evidence": {"leader_before": 1}}, True),
        ({"cluster": "west"}, False),
        ({"at": NOW + PAGE_SECONDS}, True),
        ({"at": NOW + PAGE_SECONDS + 1}, False),
        # A collector whose clock is behind.
        ({"at": NOW - PAGE_SECONDS - 1}, False),
    ],
)
def test_a_loss_of_the_same_broker_or_partition_soon_after_is_the_same_cause(
    changes: dict[str, Any], *, same: bool
) -> None:
    first = alert(**LOSS, evidence={"leader_before": 1})
    second = alert(**{**LOSS, "incident": "cd", **changes})
    one, other = group_of(Groups(), first, second)
    assert (one == other) is same


@pytest.mark.parametrize(
    ("changes", "joins"),
    [
        ({}, True),
        ({"broker": "7"}, True),
        ({"broker": "1", "partition": "5"}, True),
        ({"broker": "7", "partition": "5"}, False),
        ({"at": NOW + FOLLOW_SECONDS}, True),
        ({"at": NOW + FOLLOW_SECONDS + 1}, False),
    ],
)
def test_what_follows_joins_the_cause_while_it_is_open(
    changes: dict[str, Any], *, joins: bool
) -> None:
    known = Groups()
    first, follows = alert(**LOSS, evidence={"leader_before": 1}), alert(**changes)
    one, other = group_of(known, first, follows)
    assert (one == other) is joins
    closed = Groups()
    group_of(closed, first)
    closed.end(first.fingerprint)
    assert "cause" not in group_of(closed, follows)[0]


def test_a_follower_does_not_make_its_broker_a_part_of_the_cause() -> None:
    first, lag = alert(**LOSS), alert(broker="3")
    elsewhere = alert(broker="3", partition="8")
    one, other, third = group_of(Groups(), first, lag, elsewhere)
    assert one == other != third


def test_alerts_without_a_broker_and_a_partition_are_causes_of_their_own() -> None:
    quorum: dict[str, Any] = {"broker": None, "topic": "", "partition": "", "severity": "critical"}
    later = alert("KafkaUnderMinIsr", **quorum, at=NOW + TOGETHER_SECONDS + 1)
    one, other = group_of(Groups(), alert("KafkaQuorumUnhealthy", **quorum), later)
    assert one != other


def ended(fired: Alert, at: float) -> Alert:
    return structs.replace(
        fired, id=f"{fired.id}.end", state="resolved", at=at, ends_at=at, reason="cleared"
    )


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 99), half_seconds=st.integers(0, 80))
def test_a_restart_changes_no_group_key_and_loses_nothing(seed: int, half_seconds: int) -> None:
    rig, alerts = Rig(), unclean_elections(seed)
    feed(rig, alerts, restart_at=NOW + half_seconds / 2)
    assert sorted(rig.address.notified) == sorted(transitions(alerts))
    assert sum('cause="' in key for key in keys(rig)) == 1
    (cause,) = (key for key in keys(rig) if 'cause="' in key)
    posts = len(rig.address.posts)
    rig.restart()
    rig.deliver(*(ended(each, NOW + 90) for each in alerts), after=60)
    later = [post["status"] for post in rig.address.posts[posts:] if post["groupKey"] == cause]
    assert later == ["resolved"]


def test_alertmanager_gets_the_cause_as_an_annotation() -> None:
    rig = Rig(ALERTMANAGER)
    rig.deliver(alert(**LOSS), alert("KafkaUnderReplicated"), alert(broker="3", partition="8"))
    found = {each["labels"]["alertname"]: each for each in rig.address.active()}
    cause = found["KafkaCommittedDataLoss"]["annotations"]["cause"]
    assert found["KafkaUnderReplicated"]["annotations"]["cause"] == cause
    assert "cause" not in found["KafkaFollowerLag"]["annotations"]
    assert all("cause" not in each["labels"] for each in found.values())


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MAX_CAUSES", 3)
    monkeypatch.setattr(groups, "MAX_GROUPS", 3)
    monkeypatch.setattr(groups, "MAX_MEMBERS", 5)
    monkeypatch.setattr(groups, "MAX_PLACES", 2)
    known = Groups()
    for number in range(10):
        place: dict[str, Any] = {"partition": str(number), "broker": str(number)}
        loss = alert(**LOSS, **place, at=NOW + 20 * number)
        group_of(known, loss, alert(**place, cluster="west"))
    assert (len(known._causes), len(known._others), len(known._members)) == (3, 3, 5)
    group_of(known, *(alert(**LOSS, partition=str(number)) for number in range(4)))
    assert max(len(cause.places) for cause in known._causes) == 2

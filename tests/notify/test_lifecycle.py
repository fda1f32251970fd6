"""Alerts that the stream forgot, and a stream that fell silent."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from tests.export.make import NOW, Clock, MemoryStore, Rig, alert, make_outbox, open_alert, view
from tidemark.core.records import Alert
from tidemark.settings import Cluster, Receiver, Settings
from tidemark_exporters.notify.courier import Courier
from tidemark_exporters.notify.delivery import READ_BACK, Delivery, Maker
from tidemark_exporters.notify.lifecycle import (
    FIRST_VIEW_SECONDS,
    FRESH_SECONDS,
    Assertions,
    Watchdog,
)
from tidemark_exporters.notify.positions import Mark


def delivery_of(rig: Rig) -> Delivery:
    settings = Settings(clusters=[Cluster(name="east")])
    return Delivery(settings, [rig.courier], {0: 0}, rig.clock)


def flow(assertions: Assertions, start: float, end: float) -> list[Alert]:
    """Ten seconds after ten seconds a pass arrives at once; what was lost meanwhile."""
    lost = []
    for step in range(int((end - start) // 10) + 1):
        lost += assertions.lost({"east": start + 10 * step}, start + 10 * step, 30)
    return lost


def test_an_alert_that_no_view_holds_for_five_minutes_is_over() -> None:
    assertions = Assertions()
    fired = alert(at=NOW)
    assertions.take(fired)
    assertions.vouch(view(at=NOW + 60, alerts=[open_alert(fired)]), NOW)
    assert flow(assertions, NOW, NOW + 360) == []
    (over,) = flow(assertions, NOW + 370, NOW + 600)
    assert (over.state, over.reason, over.ends_at, over.labels) == (
        "resolved",
        "state_lost",
        NOW + 370,
        fired.labels,
    )


def test_while_passes_do_not_flow_nothing_is_over() -> None:
    assertions = Assertions()
    assertions.take(alert(at=NOW))
    for newest in ({}, {"east": NOW + 361}, {"west": NOW + 1000}):
        assert assertions.lost(newest, NOW + 1000, 30) == []


@pytest.mark.parametrize("looked_during_the_gap", [True, False])
def test_after_a_gap_the_stream_has_five_minutes_to_vouch(looked_during_the_gap: bool) -> None:
    assertions = Assertions()
    fired = alert(at=NOW)
    assertions.take(fired)
    assert flow(assertions, NOW, NOW + 100) == []
    if looked_during_the_gap:
        assert assertions.lost({"east": NOW + 100}, NOW + 3000, 30) == []
    assert flow(assertions, NOW + 3600, NOW + 3900) == []
    assert len(flow(assertions, NOW + 3910, NOW + 3910)) == 1


def test_an_alert_that_ended_is_not_lost() -> None:
    assertions = Assertions()
    assertions.take(alert(at=NOW))
    assertions.take(alert(state="resolved", at=NOW + 5))
    assert flow(assertions, NOW, NOW + 1000) == []


def test_views_vouch_only_for_what_was_told() -> None:
    assertions = Assertions()
    assertions.vouch(view(alerts=[open_alert(alert())]), NOW)
    assert flow(assertions, NOW, NOW + 1000) == []


def test_a_lost_alert_ends_at_the_receiver_once_even_over_a_restart() -> None:
    rig = Rig()
    fired = alert()
    rig.write(fired)
    for _ in range(2):
        delivery = delivery_of(rig)
        delivery.alerts([(fired, (0, 0))])
        rig.run(3)
        for _ in range(40):
            rig.clock.now += 10
            delivery.tick({"east": rig.clock.now})
        rig.run(3)
        rig.restart()
    posted = [each for post in rig.hook.posts for each in post["alerts"]]
    assert [each["status"] for each in posted] == ["firing", "resolved"]
    assert posted[1]["annotations"]["reason"] == "state_lost"


def test_a_vouched_alert_stays() -> None:
    rig = Rig()
    fired = alert()
    delivery = delivery_of(rig)
    delivery.alerts([(fired, (0, 0))])
    for minute in range(1, 20):
        rig.clock.now = NOW + 60 * minute
        delivery.view(view(at=rig.clock.now, alerts=[open_alert(fired)]))
        delivery.tick({"east": rig.clock.now})
        rig.run()
    assert [state for _, state in rig.hook.told()] == ["firing"]


def test_the_watchdog_barks_once_and_resolves_nothing_else() -> None:
    rig = Rig()
    fired = alert()
    delivery = delivery_of(rig)
    delivery.alerts([(fired, (0, 0))])
    rig.run(3)
    for _ in range(100):
        rig.clock.now += 60
        delivery.tick({"east": NOW})
        rig.run()
    assert [
        (post["status"], post["alerts"][0]["labels"]["alertname"]) for post in rig.hook.posts
    ] == [
        ("firing", "KafkaFollowerLag"),
        ("firing", "TidemarkStreamStalled"),
    ]
    for _ in range(int(FRESH_SECONDS) + 1):
        rig.clock.now += 1
        delivery.view(view(at=rig.clock.now, alerts=[open_alert(fired)]))
        delivery.tick({"east": rig.clock.now})
    rig.run(3)
    assert (rig.hook.posts[2]["status"], rig.hook.posts[2]["alerts"][0]["labels"]["alertname"]) == (
        "resolved",
        "TidemarkStreamStalled",
    )


def test_a_stream_that_stumbles_on_is_told_once() -> None:
    """A pass every 40 s, with 30 s allowed; then they flow, and the end comes after a while."""
    rig = Rig()
    delivery = delivery_of(rig)
    states = []
    for second in range(600):
        rig.clock.now = NOW + second
        delivery.tick({"east": NOW + second - second % 40})
        rig.run()
        states = [state for _, state in rig.hook.told()]
    assert states == ["firing"]
    for second in range(int(FRESH_SECONDS) + 5):
        rig.clock.now = NOW + 600 + second
        delivery.tick({"east": rig.clock.now})
        rig.run()
        states = [state for _, state in rig.hook.told()]
        assert (states == ["firing"]) or second > FRESH_SECONDS - 60
    assert states == ["firing", "resolved"]


def test_a_cluster_gets_time_for_its_first_view() -> None:
    watchdog = Watchdog(["east"], 30.0, "http://runbooks.example", NOW)
    assert [each.state for each in watchdog.judge({}, NOW + FIRST_VIEW_SECONDS)] == ["resolved"]
    (barking,) = watchdog.judge({}, NOW + FIRST_VIEW_SECONDS + 1)
    assert (barking.state, barking.labels["kafka_cluster"]) == ("firing", "east")
    assert "no view of it has arrived" in barking.annotations["description"]


def test_clusters_nobody_configured_are_watched_once_seen() -> None:
    watchdog = Watchdog([], 30.0, "http://runbooks.example", NOW)
    assert [each.state for each in watchdog.judge({"west": NOW}, NOW + 31)] == ["firing"]


def test_reading_begins_before_the_commit_and_never_trusts_one_of_another_topic() -> None:
    settings = Settings()
    settings.notify.receivers = [Receiver(name="hook", url="http://127.0.0.1:1/")]
    store = MemoryStore()
    rig = Rig()

    def starts() -> dict[int, int]:
        maker = Maker(settings, {0: 20_000})
        maker.courier(0, rig.hook, store)
        return maker.starts

    assert starts() == {0: 0}
    store.marks = {0: Mark(15_000)}
    assert starts() == {0: 15_000 - READ_BACK}
    store.marks = {0: Mark(20_001)}
    assert starts() == {0: 0}
    # One reader serves all receivers: it begins where the one does that is furthest behind.
    settings.notify.receivers.append(Receiver(name="new", url="http://127.0.0.1:1/"))
    store.marks = {0: Mark(15_000)}
    maker = Maker(settings, {0: 20_000})
    for index, each in enumerate((store, MemoryStore())):
        maker.courier(index, rig.hook, each)
    assert maker.starts == {0: 0}


def test_a_worker_that_fails_is_told_and_not_left_dead() -> None:
    """The process ends of it, is started anew, and goes on where it had committed."""
    rig = Rig()
    rig.hook.failure = cast(Any, RuntimeError("a bug"))
    delivery = delivery_of(rig)
    delivery.start()
    delivery.alerts([(alert("KafkaCommittedDataLoss"), (0, 0))])
    deadline = time.monotonic() + 5
    while delivery.failure is None and time.monotonic() < deadline:
        time.sleep(0.01)
    delivery.stop(5)
    assert repr(delivery.failure) == "RuntimeError('a bug')"


def test_one_receiver_that_is_down_does_not_delay_another() -> None:
    good, bad = Rig(), Rig()
    clock = Clock()
    couriers = [
        Courier(each.receiver, make_outbox(), each.hook, MemoryStore(), "http://x/", clock)
        for each in (good, bad)
    ]
    delivery = Delivery(Settings(), couriers, {0: 0}, clock)
    delivery.alerts([(alert(), (0, 0))])
    clock.now += 3
    # The worker of the other one has not run at all.
    couriers[0].step()
    assert len(good.hook.posts) == 1
    assert bad.hook.attempts == 0

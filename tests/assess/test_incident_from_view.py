"""The newest incident by a view and alerts: what belongs to it, gaps, bounds, any input."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.make import NOW, alert, view
from tidemark.assess.incident.from_view import MAX_STEPS, Incident, newest_incident
from tidemark.assess.incident.step import PAUSE_SECONDS, happenings
from tidemark.core.records import Alert, LastCommittedView, ReplicaView, View

HISTORY: list[tuple[float, list[int]]] = [
    (NOW - 90_000, [1, 2, 3]),
    (NOW - 80_000, [1, 2]),
    (NOW - 300, [1]),
    (NOW - 100, [2]),
]


def incident(one: View, *alerts: Alert) -> Incident:
    found = newest_incident(one, alerts, NOW)
    assert found is not None
    return found


def shown(one: View, *alerts: Alert) -> list[tuple[float, str]]:
    found = incident(one, *alerts)
    return [(NOW - step.at, "; ".join(happenings(step))) for step in found.steps]


def past(name: str, begin: float, end: float, **options: Any) -> Alert:
    """Open from `begin` to `end` seconds ago."""
    return alert(name, "resolved", at=NOW - end, starts_at=NOW - begin, reason="cleared", **options)


def test_a_partition_without_changes_and_alerts_has_no_incident() -> None:
    assert newest_incident(view(isr_history=HISTORY[:1]), [], NOW) is None
    other = alert("KafkaOffline", topic="payments")
    assert newest_incident(view(), [other, alert(cluster="west")], NOW) is None


def test_steps_begin_after_the_last_long_pause() -> None:
    assert shown(view(isr_history=HISTORY)) == [
        (300, "ISR 1,2→1"),
        (100, "ISR 1→2"),
        (0, "the newest view: 1 leads in epoch 4; HW 100, log end 100"),
    ]
    # An alert that was open all the time makes one incident of both.
    steps = shown(view(isr_history=HISTORY), past("KafkaUnderReplicated", 80_000, 100))
    assert [at for at, _ in steps] == [80_000, 300, 100, 0]
    assert steps[2][1].endswith(
        "resolved KafkaUnderReplicated (broker 2) after 22 h 11 min, cleared"
    )


def test_each_step_has_the_in_sync_set_of_its_time() -> None:
    early = alert("KafkaOffline", starts_at=NOW - 200, severity="critical", broker=None)
    found = incident(view(isr_history=HISTORY[1:]), early)
    assert found.goes_on
    assert [step.in_sync_replicas for step in found.steps] == [[1], [1], [2], [2]]
    assert happenings(found.steps[1]) == ["CRITICAL KafkaOffline fires"]


def test_the_last_answer_of_the_leader_has_the_last_high_watermark() -> None:
    silent = ReplicaView(
        broker=1, error="refused", log_end_offset=104, high_watermark=99, sampled_at=NOW - 50
    )
    last = LastCommittedView(high_watermark=100, log_end_offset=104, leader=1, leader_epoch=4)
    one = view(leader=None, leaderless=True, replicas=[silent], last_committed=last)
    text = (
        "1 answers for the last time before it is silent (refused); its log ended at 104; "
        "it led in epoch 4, last HW seen: 100"
    )
    assert shown(one)[0] == (50, text)
    assert "no leader in epoch 4" in shown(one)[-1][1]


def test_alerts_about_its_brokers_are_steps_and_do_not_extend_it() -> None:
    down = past("KafkaBrokerDown", 50_000, 90)
    del down.labels["topic"], down.labels["partition"]
    steps = shown(view(isr_history=HISTORY), down)
    assert [at for at, _ in steps] == [300, 100, 0]
    open_now = shown(view(isr_history=HISTORY), alert("KafkaUnderMinIsr", starts_at=NOW - 99), down)
    assert "resolved KafkaBrokerDown (broker 2) after 13 h 51 min, cleared" in open_now[3][1]


def test_what_was_not_seen_is_marked() -> None:
    seen = ReplicaView(broker=1, sampled_at=NOW - 40)
    found = incident(view(missed_passes=8, replicas=[seen]))
    assert found.goes_on
    (step,) = found.steps
    assert (step.at, step.until) == (NOW - 40, NOW)
    assert step.changes == [
        "nothing was seen for 40.0 s: 8 passes in a row did not see the partition"
    ]
    gap = past("KafkaCollectorGap", 200, 150, evidence={"last_seen_at": NOW - 210}, broker=None)
    found = incident(view(isr_history=HISTORY), gap)
    assert [(NOW - s.at, NOW - s.until) for s in found.steps if s.until] == [(210, 150)]


def test_a_full_history_may_lack_earlier_changes() -> None:
    full = [(NOW - 100 + n, [1 + n % 2]) for n in range(16)]
    assert incident(view(isr_history=full)).changes_since == NOW - 100
    longer = [(NOW - 9_000, [1]), *full[1:]]
    assert incident(view(isr_history=longer)).changes_since is None


def test_the_newest_steps_are_kept() -> None:
    alerts = [past("KafkaFollowerLag", 500 - n, 499.5 - n) for n in range(MAX_STEPS)]
    found = incident(view(), *alerts)
    assert (len(found.steps), found.omitted) == (MAX_STEPS, MAX_STEPS + 1)


TIMES = st.sampled_from([-1e300, 0.0, NOW - PAUSE_SECONDS, NOW - 5, NOW, NOW + 60, 1e300])


@st.composite
def alerts_about(draw: st.DrawFn) -> Alert:
    made = alert(
        draw(st.sampled_from(["KafkaOffline", "KafkaCollectorGap"])),
        draw(st.sampled_from(["firing", "update", "resolved"])),
        at=draw(TIMES),
        starts_at=draw(TIMES),
        evidence={"last_seen_at": draw(TIMES | st.none() | st.just("then"))},
    )
    if draw(st.booleans()):
        del made.labels["topic"], made.labels["partition"]
    return made


@settings(max_examples=200)
@given(
    st.lists(alerts_about(), max_size=4),
    st.lists(st.tuples(TIMES, st.just([1, 2])), max_size=4),
    TIMES,
    st.booleans(),
)
def test_any_times_give_ordered_steps_within_the_incident(
    alerts: list[Alert], history: list[tuple[float, list[int]]], at: float, blind: bool
) -> None:
    replicas = [ReplicaView(broker=1, error="refused", sampled_at=at)]
    one = view(at=at, isr_history=history, replicas=replicas, missed_passes=int(blind))
    found = newest_incident(one, alerts, NOW)
    if found is None:
        return
    assert found.start <= found.end <= NOW
    times = [step.at for step in found.steps]
    assert times == sorted(times)
    assert all(happenings(step) for step in found.steps)

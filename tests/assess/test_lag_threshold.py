"""How far behind is late: the threshold lag_ms with its overrides, for all who judge views.

Broker 3 stopped copying orders-0 five seconds ago: late by the default of 2 s, not by 10 s.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.assess.test_safe_to_stop import view
from tests.export.make import key_of
from tests.stream.synthetic import CLUSTER
from tests.verbs.recordings import write
from tests.verbs.run import tidemark
from tests.verbs.top.shown import reduced
from tests.verbs.top.test_screens import recorded
from tidemark.assess.isr_removal import countdowns
from tidemark.assess.leader_choice import choose_leader
from tidemark.assess.leader_death import deaths
from tidemark.assess.safe_to_stop import stop_impacts
from tidemark.core.records import View
from tidemark.detect.default_thresholds import Detection, Override, Thresholds
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages.leadership import leadership
from tidemark_exporters.pages.snapshot import TableSnapshot

PATIENT = Thresholds(lag_ms=10_000)
# Each says 10 s for the topic `orders`; the last two only for it, or for all but it.
TEN_SECONDS = (
    Detection(thresholds=PATIENT),
    Detection(overrides=[Override(topics="ord.*", lag_ms=10_000)]),
    Detection(thresholds=PATIENT, overrides=[Override(topics="other", lag_ms=1)]),
)
ten_seconds = pytest.mark.parametrize("patient", TEN_SECONDS)
RECORDED = recorded(limit_read=True)
# Broker 2 would lead after broker 1, and lacks the last ten committed records.
BEHIND = partial(
    view, {2: {"log_end_offset": 90, "lag_records": 10, "lag_ms": 5e3, "in_sync": True}}
)


def applied(detection: Detection, *views: View) -> Table:
    table = Table(detection.lag_threshold())
    for each in views:
        table.apply(key_of(each), each)
    return table


@ten_seconds
def test_the_answers_about_a_view(patient: Detection) -> None:
    seen = BEHIND(assigned=[1, 2])
    found = []
    for detection in (Detection(), patient):
        of_topic = detection.for_topic("orders").lag_ms
        effects = [each.effect for each in stop_impacts([seen], detection.lag_threshold(), 1)]
        leaving = [each.broker for each in countdowns(seen, seen.at, of_topic)]
        found.append((effects, leaving))
    assert found == [(["offline"], [2]), (["under_min_isr"], [])]


@pytest.mark.parametrize("lag_ms", [1.0, 1_999.0, 2_001.0, 1e9])
def test_what_an_election_loses_does_not_depend_on_how_late_a_replica_is(lag_ms: float) -> None:
    seen = BEHIND(assigned=[1, 2])
    seen.replicas[1].lag_ms = lag_ms
    (choice,) = (each for each in choose_leader(seen).choices if each.broker == 2)
    assert choice.doubt == "its log ends at 90, below 100, which was committed"
    (death,) = (death for _, death in deaths([seen], {1}))
    risks = applied(Detection(), seen).broker_aggregates["main", 1].risks
    assert choice.committed == death.committed == (90, 100) and risks.records == {
        "committed": 10,
        "uncommitted": 0,
    }


@ten_seconds
def test_the_figures_of_the_exporter_and_its_page(patient: Detection) -> None:
    seen = BEHIND(assigned=[1, 2])
    found = []
    for detection in (Detection(), patient):
        snapshot = TableSnapshot(applied(detection, seen), seen.at, 30)
        shown = leadership(seen, seen.at, snapshot.lag_threshold("orders"))
        counts = {e: n for e, n in snapshot.stop_counts("main", 1).items() if n}
        listed = [each.effect for each in snapshot.stop_impacts("main", 1, 9)]
        found.append((counts, listed, [each.broker for each in shown["countdowns"]]))
    assert found == [
        ({"offline": 1}, ["offline"], [2]),
        ({"under_min_isr": 1}, ["under_min_isr"], []),
    ]


@ten_seconds
def test_the_countdown_in_the_views_and_in_top(patient: Detection) -> None:
    for detection, leaving in ((Detection(), [3]), (patient, [])):
        snapshot = reduced(RECORDED, CLUSTER, detection)
        row = next(each for each in snapshot.partitions if each.topic == "orders")
        assert [each.broker for each in row.countdowns] == leaving
        assert [r.broker for r in row.view.replicas if r.isr_removal_latest_ms] == leaving
        assert (row.view.replica_lag_time_max_ms is not None) == bool(leaving)
        safe = {each.broker: each.is_safe for each in snapshot.brokers}
        assert safe[2] is not bool(leaving)


@pytest.mark.parametrize(
    "configured",
    ["  thresholds: {lag_ms: 10000}\n", "  overrides: [{topics: orders, lag_ms: 10000}]\n"],
)
def test_the_verbs_read_the_configuration(tmp_path: Path, configured: str) -> None:
    events, config = write(tmp_path / "events", RECORDED), tmp_path / "tidemark.yaml"
    config.write_text(f"detect:\n{configured}", encoding="utf-8")
    stop = ("safe-to-stop", "2", "--from", events)
    assert "1 in-sync replica would be left" in tidemark(*stop, code=3).out
    assert "Safe to stop" in tidemark(*stop, "--config", str(config)).out


def test_the_bound_is_remembered_by_topic() -> None:
    threshold = TEN_SECONDS[1].lag_threshold()
    assert [threshold(topic) for topic in ("orders", "late", "orders", None)] == [
        1e4,
        2e3,
        1e4,
        2e3,
    ]

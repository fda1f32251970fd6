"""Snapshots from events: states, late passes, elections, changes, safety of stops."""

from __future__ import annotations

import msgspec
import pytest

from tests.stream.synthetic import CLUSTER, SyntheticPasses
from tests.verbs.recordings import trace
from tests.verbs.top.shown import reduced
from tidemark.assess.health import states_of
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import Pass
from tidemark.core.records import View
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews
from tidemark.verbs.safe_to_stop.verdict import judge
from tidemark.verbs.top.reducer import TopReducer

OFFLINE_LEADERS = SyntheticPasses(partitions=60, groups=1, offline_every=7)
FAULTS = ("kip101_modern", "loss_0102", "sigstop_follower", "unclean")


@pytest.mark.parametrize(
    ("cluster", "values"),
    [
        *(("trace", trace(fault)) for fault in FAULTS),
        (CLUSTER, [value for number in range(5) for _, value in OFFLINE_LEADERS.records(number)]),
    ],
    ids=[*FAULTS, "offline"],
)
def test_each_pass_has_the_verdict_of_safe_to_stop(cluster: str, values: list[bytes]) -> None:
    reducer, views = TopReducer(Detection()), ClusterViews(Detection())
    seen, affected = set(), False
    for value in values:
        reducer.record(value)
        views.add(decode_batch(value))
        snapshot = reducer.snapshot(cluster)
        for row in [] if snapshot is None else snapshot.partitions:
            seen.add(row.state.name)
        for broker in [] if snapshot is None else snapshot.brokers:
            verdict = judge(views, cluster, broker.broker)
            assert (broker.impacts, broker.is_safe) == (verdict.impacts, verdict.safe)
            assert (broker.leads, broker.in_sync) == (verdict.leads, verdict.in_sync)
            affected = affected or bool(broker.impacts)
    assert seen - {"healthy"}
    assert affected


def test_an_unclean_election_is_listed_with_what_its_alert_says() -> None:
    snapshot = reduced(trace("unclean"), "trace")
    (election,) = [e for e in snapshot.elections if e.finding]
    assert (election.leader, election.was, election.finding) == (
        2,
        "not in sync",
        "unclean election",
    )
    # The newest first: the old leader cut the last copy of the lost records.
    assert [alert.labels["alertname"] for alert in snapshot.alerts][:3] == [
        "KafkaLogTruncation",
        "KafkaCommittedDataLoss",
        "KafkaUncleanElection",
    ]
    assert snapshot.counts == {"lost": 1}


def test_changes_of_in_sync_sets_have_their_cause() -> None:
    changes = reduced(trace("unclean"), "trace").changes
    assert [change.at for change in changes] == sorted((c.at for c in changes), reverse=True)
    assert "suspected cause: stopped or fenced" in {change.cause for change in changes}


def test_a_clean_election_has_no_finding() -> None:
    load = SyntheticPasses(partitions=14, groups=1, offline_every=7)
    values = [value for number in range(10) for _, value in load.records(number)]
    snapshot = reduced(values, CLUSTER)
    assert {(e.topic, e.partition) for e in snapshot.elections} == {("orders", 0), ("orders", 7)}
    assert {e.finding for e in snapshot.elections} == {""}
    back = [e for e in snapshot.elections if e.leader is not None]
    assert {e.was for e in back} <= {"in sync", "leader"}


def test_late_passes_are_counted_with_their_delay() -> None:
    snapshot = reduced(_with_a_late_pass(), "trace")
    assert (snapshot.passes, snapshot.late) == (4, 1)
    assert snapshot.last_late is not None
    assert snapshot.last_late.seconds == pytest.approx(1.5)


def _with_a_late_pass() -> list[bytes]:
    """Four passes of one second; the third begins 2.5 s after the second."""
    found = []
    for number, at in enumerate((0.0, 1.0, 3.5, 4.5)):
        batch = decode_batch(trace("unclean")[0])
        (closing,) = [event for event in batch.events if isinstance(event, Pass)]
        closing = msgspec.structs.replace(
            closing,
            number=number,
            started_at=1e9 + at,
            ended_at=1e9 + at + 0.1,
            monotonic=at,
            period_ms=1000.0,
        )
        found.append(
            encode_batch(msgspec.structs.replace(batch, pass_number=number, events=[closing]))
        )
    return found


def test_an_unreadable_record_is_counted_and_stops_nothing() -> None:
    snapshot = reduced([b"{", *trace("unclean"), b"[]"], "trace")
    assert snapshot.unreadable == 2
    assert snapshot.counts == {"lost": 1}


def test_nothing_before_the_first_pass() -> None:
    assert TopReducer(Detection()).snapshot("trace") is None


def test_worst_state_of_an_unknown_leader() -> None:
    view = View(scope="partition", kafka_cluster="c", at=1.0, pass_number=1, collector="k")
    assert [state.name for state in states_of(view)] == ["unknown"]

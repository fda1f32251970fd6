"""Two collectors whose clocks differ: the owner is judged by passes, not by the clocks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidemark.core.codec import encode_batch
from tidemark.core.events import Batch, BrokerAnswer, Event, Observation, Pass, Replica
from tidemark.core.partition import decode_state, encode_state
from tidemark.core.records import Alert, View, decode_record
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import fold_group
from tidemark.reduce.group_state import decode_group, encode_group
from tidemark.reduce.rows import RawRecord

BEGAN = 1_700_000_000.0
HOUR, DAY = 3600.0, 86_400.0
# A wrong zone, a wrong date, and a clock that was never set.
DIFFERENCES = [-1e9, -DAY, -HOUR, 0.0, HOUR, DAY, 1e9]
# The newer process owns the partition. An epoch is the start in Unix milliseconds; a forged one may
# be as large as the schema allows.
EPOCHS = {"owner": 2, "other": 1}
HUGE = 2**62


class Cluster:
    """One partition, observed by two collectors; broker 1, its leader, is down until it is back."""

    def __init__(self, **ahead: float) -> None:
        # By how many seconds each collector's clock is ahead.
        self.ahead = {"owner": 0.0, "other": 0.0, **ahead}
        self.epochs = dict(EPOCHS)
        self.second = 0
        self.is_back = False
        self.published: list[Alert | View] = []
        self._state: bytes | None = None

    def passes(self, count: int, *names: str) -> list[str]:
        """Passes of these collectors, each second. Returns "state alert" of the transitions."""
        first = len(self.published)
        for _ in range(count):
            self.second += 1
            for name in names:
                self._pass(name)
        new = self.published[first:]
        return [f"{a.state} {a.labels['alertname']}" for a in new if isinstance(a, Alert)]

    def views(self, scope: str = "partition") -> list[View]:
        return [v for v in self.published if isinstance(v, View) and v.scope == scope]

    def open_event(self, detector: str) -> None:
        """As if an event was found now; it expires after a day."""
        group = decode_group(self._state)
        ((key, blob),) = group.partitions.items()
        state = decode_state(blob)
        since = BEGAN + self.second
        event = TrackedAlert(detector, 1, "warning", since, firing=True, fired_at=since)
        event.incident = "0123"
        state.alerts = [*state.alerts, event]
        group.partitions[key] = encode_state(state)
        self._state = encode_group(group)

    def _pass(self, name: str) -> None:
        at = BEGAN + self.second + self.ahead[name]
        down = None if self.is_back else "refused"
        end = None if down else 5
        observation = Observation(
            topic="orders",
            partition=0,
            observed_at=at,
            metadata_from=[1, 2],
            metadata_at=at,
            replicas=[1, 2],
            in_sync_replicas=[1, 2] if self.is_back else [1],
            leader=1 if self.is_back else None,
            leader_epoch=2 if self.is_back else 1,
            leaderless=not self.is_back,
            samples=[
                Replica(broker=1, log_end_offset=end, high_watermark=end, error=down),
                Replica(broker=2, log_end_offset=5, high_watermark=5),
            ],
        )
        answers = [
            BrokerAnswer(broker=1, outcome=down or "ok"),
            BrokerAnswer(broker=2, outcome="ok"),
        ]
        event = Pass(
            number=self.second,
            started_at=at,
            ended_at=at,
            monotonic=float(self.second),
            period_ms=1000.0,
            brokers=answers,
        )
        events: list[Event] = [observation, event]
        batch = Batch(
            v=2,
            cluster="east",
            collector=name,
            collector_epoch=self.epochs[name],
            pass_number=self.second,
            events=events,
        )
        record = RawRecord(0, self.second, 0.0, encode_batch(batch))
        self._state, rows = fold_group(self._state, [record], Detection(), 0, 1)
        for row in rows:
            if row.value is not None:
                found = decode_record(row.value)
                assert isinstance(found, Alert | View), json.dumps(str(found))
                self.published.append(found)


@pytest.mark.parametrize("ahead", DIFFERENCES)
@pytest.mark.parametrize("epochs", [(2, 1), (HUGE, 1), (HUGE, HUGE - 1)])
def test_another_collector_takes_over_soon_after_the_owner_stopped(
    ahead: float, epochs: tuple[int, int]
) -> None:
    cluster = Cluster(owner=ahead)
    cluster.epochs = {"owner": epochs[0], "other": epochs[1]}
    assert "firing KafkaOffline" in cluster.passes(5, "owner")
    cluster.is_back = True
    # It may be a pause of the owner.
    assert "resolved KafkaOffline" not in cluster.passes(30, "other")
    assert "resolved KafkaOffline" in cluster.passes(4, "other")
    assert (cluster.views()[-1].collector, cluster.views()[-1].leader) == ("other", 1)
    views = len(cluster.views())
    assert [each for each in cluster.passes(60, "other") if each.startswith("firing")] == []
    assert len(cluster.views()) >= views + 4


@pytest.mark.parametrize("ahead", DIFFERENCES)
@pytest.mark.parametrize("step", [-DAY, -2 * HOUR, 2 * HOUR, DAY, 1e9])
def test_the_owner_keeps_its_partitions_whatever_the_clocks_show(ahead: float, step: float) -> None:
    cluster = Cluster(other=ahead)
    cluster.passes(20, "owner", "other")
    cluster.ahead["other"] += step
    cluster.passes(20, "owner", "other")
    cluster.ahead["owner"] += step
    cluster.passes(20, "owner", "other")
    assert {view.collector for view in cluster.views()} == {"owner"}


@pytest.mark.parametrize("step", [-1e9, -DAY, -2 * HOUR, 2 * HOUR, DAY, 1e9])
def test_views_are_refreshed_after_a_step_of_the_clock(step: float) -> None:
    cluster = Cluster()
    cluster.is_back = True
    cluster.passes(20, "owner")
    cluster.ahead["owner"] += step
    for scope in ("partition", "cluster"):
        views = len(cluster.views(scope))
        cluster.passes(60, "owner")
        assert views + 4 <= len(cluster.views(scope)) <= views + 9


@pytest.mark.parametrize(
    ("ahead", "text"),
    [
        (HOUR, " The clock of owner is about 60 minutes ahead of that of other: synchronize"),
        (-HOUR, " The clock of other is about 60 minutes ahead of that of owner: synchronize"),
        (DAY, " The clock of owner is about 1,440 minutes ahead of that of other: synchronize"),
        (
            -1e9,
            " The clock of other is about 16,666,667 minutes ahead of that of owner: synchronize",
        ),
        (1.0, ""),
    ],
)
def test_a_conflict_names_the_clock_that_is_ahead(ahead: float, text: str) -> None:
    cluster = Cluster(owner=ahead)
    transitions = cluster.passes(20, "owner", "other")
    assert transitions.count("firing KafkaCollectorConflict") == 1
    (conflict,) = (
        each
        for each in cluster.published
        if isinstance(each, Alert)
        and (each.labels["alertname"], each.state) == ("KafkaCollectorConflict", "firing")
    )
    rest = conflict.annotations["description"].partition("own share (shard, shards).")[2]
    assert rest == (f"{text} their clocks." if text else "")
    difference: Any = conflict.evidence.get("clock_difference_seconds")
    assert (difference is not None) is bool(text)
    assert "resolved KafkaCollectorConflict" in cluster.passes(40, "other")


@pytest.mark.parametrize("ahead", DIFFERENCES)
@pytest.mark.parametrize("epoch", [3, HUGE])
@pytest.mark.parametrize(("name", "passes"), [("other", 33), ("owner", 31)])
def test_one_pass_of_a_newer_process_costs_about_32_passes(
    ahead: float, epoch: int, name: str, passes: int
) -> None:
    """As of a collector that ran for a moment on a host whose clock is wrong, or a forged one."""
    cluster = Cluster()
    assert "firing KafkaOffline" in cluster.passes(20, "owner")
    epochs, clocks = dict(cluster.epochs), dict(cluster.ahead)
    cluster.epochs[name], cluster.ahead[name] = epoch, ahead
    cluster.passes(1, name)
    cluster.epochs, cluster.ahead = {**epochs, "other": epoch}, clocks
    # The change is there at once, and is refused until the newer process counts as gone.
    cluster.is_back = True
    refused = cluster.passes(passes - 1, "owner")
    assert "resolved KafkaOffline" not in refused
    assert "resolved KafkaOffline" in cluster.passes(1, "owner")
    # Another name is reported; a process of the same name looks like a restart.
    assert ("firing KafkaCollectorConflict" in refused) is (name == "other")
    later = cluster.passes(60, "owner")
    assert [each for each in later if each.startswith("firing")] == []
    assert cluster.views()[-1].collector == "owner"
    assert cluster.views()[-1].at >= BEGAN + cluster.second - 15


@pytest.mark.parametrize(("ahead", "expires"), [(HOUR, False), (DAY - 60, False), (DAY, True)])
def test_one_pass_a_day_ahead_expires_what_is_open(ahead: float, expires: bool) -> None:
    cluster = Cluster()
    cluster.passes(5, "owner")
    cluster.open_event("LOG_TRUNCATION")
    cluster.epochs["other"], cluster.ahead["other"] = 3, ahead
    found = cluster.passes(1, "other")
    assert ("resolved KafkaLogTruncation" in found) is expires

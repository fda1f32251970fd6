"""The partition's page says which replica to elect, and what the leader's death would cost."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.assess.test_leader_choice import offline
from tests.assess.thresholds import LAG_MS
from tests.export.make import NOW
from tests.pages.make import healthy_view, lossy_view
from tests.pages.test_partition_page import page_of
from tidemark.assess.isr_removal import Countdown, countdowns
from tidemark.core.records import View
from tidemark_exporters.pages.leadership import needs_choice


def shown(view: View) -> str:
    return page_of(msgspec.structs.replace(view, kafka_cluster="east", at=NOW)).text


def test_an_offline_partition_shows_every_choice_and_its_commands() -> None:
    page = shown(offline({2: {"log_end_offset": 70}, 3: {"log_end_offset": 40}}))
    texts = (
        "Every election may lose records. Of the replicas that answer, broker 2",
        "30 [70, 100)",
        "from 100 on",
        "committed up to 100, log end 104. What it wrote later is unknown.",
        '--bootstrap-server "$BOOTSTRAP" --election-type unclean --topic orders',
        "more records survive: 34 [70, 104), of which 30 [70, 100) committed",
    )
    assert [text for text in texts if text not in page] == []
    assert "If the leader died now" not in page


def test_a_healthy_partition_shows_the_death_of_its_leader_only() -> None:
    page = shown(healthy_view("t", 0))
    assert "Which replica to elect" not in page
    assert "Broker 2 would lead, from its high watermark 100. 2 in-sync replicas" in page
    assert "acks=allsurvive" in page.replace(" ", "")


def test_a_leader_alone_would_take_the_partition_offline() -> None:
    page = shown(lossy_view())
    assert "The partition would be offline:" in page
    assert "29 [1000271, 1000300)" in page or "60 [1000240, 1000300)" in page


def test_under_min_isr_needs_a_choice() -> None:
    assert needs_choice(healthy_view("t", 0, in_sync_replicas=[1]))
    assert not needs_choice(healthy_view("t", 0))
    assert not needs_choice(
        healthy_view("t", 0, in_sync_replicas=[1], effective_min_in_sync_replicas=None)
    )


def test_the_countdown_goes_on_between_views() -> None:
    view: Any = healthy_view("t", 0)
    view.replicas[1].isr_removal_earliest_ms = 11_000.0
    view.replicas[1].isr_removal_latest_ms = 26_000.0
    assert countdowns(view, NOW + 4.0, LAG_MS) == [Countdown(2, 7_000.0, 22_000.0)]
    assert countdowns(view, NOW + 400.0, LAG_MS) == [Countdown(2, 0.0, 0.0)]
    assert "leaves the in-sync set in 9 to 24 s unless it catches up." in shown(view)


def test_a_countdown_without_the_limit_says_which_right_is_missing() -> None:
    view: Any = healthy_view("t", 0)
    view.replicas[1].lag_records, view.replicas[1].lag_ms = 40, 9_000.0
    text = "leaves the in-sync set is not known: replica.lag.time.max.ms of leader 1 was not read."
    assert f"When broker 2 {text} That needs DescribeConfigs on Cluster." in shown(view)
    view.replica_lag_time_max_ms = 30_000.0
    assert "is not known: replica.lag" not in shown(view)


def test_a_high_watermark_above_the_log_end_is_named() -> None:
    view = healthy_view("t", 0)
    assert "above its log end" not in shown(view)
    view.replicas[1].log_end_offset = 99
    assert "The high watermark of broker 2 is above its log end." in shown(view)

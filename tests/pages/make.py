"""A table with every case the pages show: loss, divergence, a blind partition, hostile names."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.export.make import NOW, alert, broker_view, cluster_view, open_alert, table_of, view
from tidemark.core.events import JmxFigures
from tidemark.core.records import (
    Alert,
    JmxView,
    OpenAlert,
    ReplicaView,
    ShrinkCounts,
    View,
    encode_record,
)
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages.responses import Pages

# Not a valid name in Kafka, but possible in the views topic.
HOSTILE = "<script>document.title='owned'</script>\"'><img src=x onerror=document.title='owned'>"
# Reorders text, hides characters, ends lines.
TRICKY = "orders\u202e/?&#\n%00 {{7*7}}"
STALE_SECONDS = 30.0


def lost_evidence() -> dict[str, Any]:
    return {
        "proven": [1_000_240, 1_000_262],
        "exposed": [1_000_262, 1_000_271],
        "records": 22,
        "leader_epoch_before": 7,
        "leader_epoch_after": 8,
        "leader": 1,
        "leader_before": 2,
        "committed_seen_at": NOW - 64.0,
        "written_between": [NOW - 70.0, NOW - 64.0],
        "records_held_by": [{"broker": 2, "state": "held", "held_to": 1_000_271}],
        "lineage": [[7, 1_000_240], [8, 1_000_300]],
        "read_at": [NOW - 41.0, NOW - 40.0],
        "confidence": "proven",
        "log_start_offset": None,
    }


def lossy_view() -> View:
    """An unclean election: broker 1 leads, broker 2 has the lost records, broker 3 is down."""
    loss = alert(
        "KafkaCommittedDataLoss",
        starts_at=NOW - 40,
        severity="critical",
        broker="1",
        topic="payments",
        partition="3",
        incident="1a2b3c4d",
        evidence=lost_evidence(),
        description="22 committed records of payments-3 are gone: offsets [1000240, 1000262).",
    )
    under = alert(
        "KafkaUnderReplicated",
        severity="info",
        topic="payments",
        partition="3",
        broker="2",
        description="2 of 3 replicas are not in sync.",
        evidence={
            "assigned": [1, 2, 3],
            "adding": [],
            "in_sync_replicas": [1],
            "missing": [2, 3],
            "leader": 1,
        },
    )
    return view(
        "payments",
        3,
        leader=1,
        leader_epoch=8,
        in_sync_replicas=[1],
        effective_min_in_sync_replicas=1,
        high_watermark=1_000_300,
        log_end_offset=1_000_312,
        uncommitted_records=12,
        uncommitted_ms=840.0,
        log_start_offset=12_000,
        lineage=[(5, 400_000), (6, 1_000_100), (7, 1_000_240), (8, 1_000_300)],
        lineage_complete_from=5,
        isr_history=[
            (NOW - 3600, [1, 2, 3]),
            (NOW - 900, [2, 3]),
            (NOW - 500, [2]),
            (NOW - 60, [1]),
        ],
        replicas=[
            ReplicaView(
                broker=1,
                log_end_offset=1_000_312,
                high_watermark=1_000_300,
                log_start_offset=12_000,
                last_stable_offset=1_000_300,
                leader_epoch=8,
                in_sync=True,
                lag_records=0,
                lag_ms=0.0,
                sampled_at=NOW - 1,
            ),
            ReplicaView(
                broker=2,
                log_end_offset=1_000_271,
                high_watermark=1_000_262,
                log_start_offset=12_000,
                leader_epoch=7,
                in_sync=False,
                lag_records=41,
                lag_ms=3_400.0,
                sampled_at=NOW - 1,
                lineage=[(5, 400_000), (6, 1_000_100), (7, 1_000_271)],
            ),
            ReplicaView(
                broker=3,
                error="timed_out",
                in_sync=False,
                log_end_offset=1_000_180,
                high_watermark=1_000_150,
                sampled_at=NOW - 700,
            ),
        ],
        alerts=[opened(loss), opened(under)],
    )


def opened(of: Alert) -> OpenAlert:
    return msgspec.structs.replace(open_alert(of), evidence=of.evidence)


def healthy_view(topic: str, partition: int, **changes: Any) -> View:
    return view(
        topic,
        partition,
        lineage=[(2, 60), (4, 100)],
        lineage_complete_from=0,
        log_start_offset=0,
        isr_history=[(NOW - 86_400, [1, 2, 3])],
        replicas=[
            ReplicaView(
                broker=b,
                log_end_offset=100,
                high_watermark=100,
                log_start_offset=0,
                leader_epoch=4,
                in_sync=True,
                lag_records=0,
                lag_ms=0.0,
                sampled_at=NOW - 1,
            )
            for b in (1, 2, 3)
        ],
        **changes,
    )


def jmx_view(**changes: Any) -> JmxView:
    """Of a broker whose leader counted fewer shrinks than were sampled."""
    shrinks = ShrinkCounts(
        since=NOW - 7200, by_jmx=3, sampled=6, of_absent=2, differs_since=NOW - 300
    )
    figures = JmxFigures(isr_shrinks=41, fetcher_max_lag_records=17, fetch_purgatory_watches=1234)
    return JmxView(
        **{
            "read_at": NOW - 4,
            "produce_purgatory": 0,
            "fetch_purgatory": 12,
            "figures": figures,
            "isr_shrinks": shrinks,
            **changes,
        }
    )


def views() -> list[View]:
    hostile = alert(
        HOSTILE,
        severity=HOSTILE,
        broker=HOSTILE,
        topic=HOSTILE,
        partition=HOSTILE,
        description=HOSTILE,
    )
    hostile.annotations |= {"runbook_url": "javascript:document.title='owned'", "summary": HOSTILE}
    hostile.evidence = {
        HOSTILE: HOSTILE,
        "proven": HOSTILE,
        "written_between": [HOSTILE, None],
        "read_at": [HOSTILE, 1e300],
    }
    offline = alert(
        "KafkaOffline",
        severity="critical",
        topic="payments",
        partition="0",
        broker=None,
        description="No replica leads it.",
    )
    return [
        lossy_view(),
        healthy_view("payments", 0, leaderless=True, leader=None, alerts=[opened(offline)]),
        healthy_view("payments", 1),
        healthy_view("payments", 2, in_sync_replicas=[1, 2]),
        healthy_view("orders", 0),
        healthy_view("orders", 1, in_sync_replicas=[1]),
        healthy_view("orders", 2, missed_passes=4, leaderless=True),
        view(
            "audit-log",
            0,
            in_sync_replicas=None,
            replicas=[],
            high_watermark=None,
            log_end_offset=None,
            uncommitted_records=None,
        ),
        healthy_view(HOSTILE, 0, alerts=[opened(hostile)]),
        healthy_view(TRICKY, 0),
        healthy_view("orders", 0, kafka_cluster="west"),
        cluster_view(
            "east",
            broker_outcomes={"1": "ok", "2": "ok", "3": "timed_out"},
            cluster_id="kX3",
            quorum_leader=1,
            period_ms=1000.0,
        ),
        broker_view(3, outcome="timed_out", jmx=jmx_view()),
        cluster_view("west", at=NOW - 1000, broker_outcomes={"1": "ok"}),
    ]


def table(made: list[View] | None = None) -> Table:
    return table_of(*(views() if made is None else made))


def past_alerts() -> list[Alert]:
    loss = alert(
        "KafkaCommittedDataLoss",
        "resolved",
        at=NOW - 80_000,
        starts_at=NOW - 90_000,
        severity="critical",
        broker="2",
        reason="acked",
        topic="orders",
        partition="0",
        evidence={"proven": [41, 44], "written_between": [None, NOW - 90_100]},
        description="3 committed records of orders-0 are gone.",
    )
    lag = alert(
        "KafkaFollowerLag",
        "resolved",
        at=NOW - 600,
        starts_at=NOW - 700,
        reason="cleared",
        topic="payments",
        partition="3",
    )
    return [loss, lag]


def site(
    filled: Table | None = None,
    waiting: list[str] | None = None,
    now: float = NOW + 2,
    past: list[Alert] | None = None,
) -> Pages:
    """The pages over the table and the past alerts above, or other ones, at a fixed time."""
    made = Pages(filled or table(), STALE_SECONDS, lambda: list(waiting or []), clock=lambda: now)
    for each in past_alerts() if past is None else past:
        made.history.add(each, encode_record(each))
    made.history.complete = True
    return made

"""Five scenes of a made-up cluster: views and alerts with known values, as the stream writes them.

Cluster `demo`: brokers 1, 2, 3; topic `orders` with partitions 0, 1, 2 and topic `payments` with
one, each of three replicas, min.insync.replicas 2. Most faults are in `orders` 0. Cluster `idle`
has had no new pass for five minutes.
"""

from __future__ import annotations

from typing import Any, Final

from tests.export.make import alert, open_alert
from tidemark.core.broker_report import LogDirectory
from tidemark.core.events import JmxFigures
from tidemark.core.records import Alert, JmxView, ReplicaView, ShrinkCounts, View, view_key

HEALTHY, FROZEN, UNDER_MIN, UNCLEAN, OFFLINE = SCENES = (
    "healthy",
    "follower frozen",
    "under min ISR",
    "unclean election",
    "offline",
)
CLUSTER: Final = "demo"
IDLE: Final = "idle"
IDLE_SECONDS: Final = 300.0
PLACES: Final = {
    ("orders", 0): [1, 2, 3],
    ("orders", 1): [2, 3, 1],
    ("orders", 2): [3, 1, 2],
    ("payments", 0): [1, 2, 3],
}
# The log end offsets of a healthy partition and of the frozen follower, and the follower's lag.
END, FROZEN_END, LAG, LAG_MS = 1040, 1000, 40, 4000.0


def _replica(broker: int, end: int = END, mark: int = END, **changes: Any) -> ReplicaView:
    values: dict[str, Any] = {
        "log_start_offset": 0,
        "leader_epoch": 5,
        "in_sync": True,
        "lag_records": 0,
        "lag_ms": 0.0,
    }
    return ReplicaView(
        broker=broker, log_end_offset=end, high_watermark=mark, **{**values, **changes}
    )


def _view(topic: str, partition: int, at: float, **changes: Any) -> View:
    assigned = PLACES[topic, partition]
    values: dict[str, Any] = {
        "leader": assigned[0],
        "leader_epoch": 5,
        "assigned": assigned,
        "in_sync_replicas": assigned,
        "effective_min_in_sync_replicas": 2,
        "high_watermark": END,
        "log_end_offset": END,
        "log_start_offset": 0,
        "uncommitted_records": 0,
        "uncommitted_ms": 0.0,
        "replicas": [_replica(broker) for broker in sorted(assigned)],
        "isr_history": [(1.0, assigned)],
    }
    return View(
        scope="partition",
        kafka_cluster=CLUSTER,
        at=at,
        pass_number=1,
        collector="c",
        topic=topic,
        partition=partition,
        **{**values, **changes},
    )


def _alert(name: str, at: float, **options: Any) -> Alert:
    return alert(name, at=at, starts_at=at, cluster=CLUSTER, topic="orders", **options)


def alerts_of(scene: str, at: float) -> list[Alert]:
    """The alerts at the begin of the scene."""
    change = {"suspected_cause": "does not answer", "leader": 1}
    records: dict[str, list[Alert]] = {
        HEALTHY: [],
        FROZEN: [_alert("KafkaFollowerLag", at, partition="0", broker="2")],
        UNDER_MIN: [
            _alert("KafkaUnderMinIsr", at, partition="0", broker=None, severity="critical"),
            _alert(
                "KafkaIsrChange",
                at,
                partition="0",
                severity="info",
                evidence={**change, "before": [1, 2, 3], "after": [1, 3], "changed_at": at},
            ),
            _alert(
                "KafkaIsrChange",
                at,
                partition="0",
                severity="info",
                state="update",
                description="later",
                evidence={**change, "before": [1, 3], "after": [1], "changed_at": at + 0.1},
            ),
        ],
        UNCLEAN: [
            _alert(
                "KafkaUncleanElection",
                at,
                partition="0",
                severity="critical",
                incident="a1",
                evidence={"verdict": "unclean"},
            ),
            _alert(
                "KafkaCommittedDataLoss",
                at,
                partition="0",
                severity="critical",
                incident="a2",
                evidence={"proven": [1000, 1007], "exposed": [1007, 1010]},
            ),
            _alert(
                "KafkaLogTruncation",
                at,
                partition="0",
                severity="info",
                incident="a3",
                broker="1",
                evidence={"cut_at": 1000, "committed_records_cut": "proven"},
            ),
        ],
        OFFLINE: [_alert("KafkaOffline", at, partition="1", broker=None, severity="critical")],
    }
    return records[scene]


def _orders_0(scene: str, at: float) -> dict[str, Any]:
    """How the partition with most faults differs from a healthy one."""
    if scene == FROZEN:
        silent = _replica(
            2, FROZEN_END, FROZEN_END, lag_records=LAG, lag_ms=LAG_MS, error="timed_out"
        )
        return {
            "high_watermark": FROZEN_END,
            "uncommitted_records": LAG,
            "uncommitted_ms": 4200.0,
            "replicas": [_replica(1, mark=FROZEN_END), silent, _replica(3, mark=FROZEN_END)],
        }
    if scene == UNDER_MIN:
        behind = [
            _replica(
                b,
                FROZEN_END,
                FROZEN_END,
                lag_records=LAG,
                lag_ms=9000.0,
                high_watermark_lag_ms=9000.0,
                log_start_offset=8,
                in_sync=False,
            )
            for b in (2, 3)
        ]
        return {
            "in_sync_replicas": [1],
            "replicas": [_replica(1, log_start_offset=12), *behind],
            "isr_history": [(1.0, [1, 2, 3]), (at, [1, 3]), (at + 0.1, [1])],
        }
    if scene == UNCLEAN:
        gone = _replica(1, in_sync=False, lag_records=None, lag_ms=None, error="refused")
        out = _replica(
            3, FROZEN_END, FROZEN_END, in_sync=False, leader_epoch=5, lag_records=0, lag_ms=0.0
        )
        return {
            "leader": 2,
            "leader_epoch": 6,
            "in_sync_replicas": [2],
            "high_watermark": FROZEN_END,
            "log_end_offset": FROZEN_END,
            "replicas": [gone, _replica(2, FROZEN_END, FROZEN_END, leader_epoch=6), out],
            "isr_history": [(1.0, [1, 2, 3]), (2.0, [1, 3]), (3.0, [1]), (at, [2])],
        }
    if scene == OFFLINE:
        return {
            "leader": 2,
            "leader_epoch": 6,
            "replicas": [_replica(b, leader_epoch=6) for b in (1, 2, 3)],
            "isr_history": [(at, [2]), (at + 0.2, [2, 1]), (at + 0.3, [2, 1, 3])],
        }
    return {}


def _others(scene: str) -> dict[tuple[str, int], dict[str, Any]]:
    if scene == UNDER_MIN:
        leaving = _replica(
            2,
            FROZEN_END,
            FROZEN_END,
            lag_records=LAG,
            lag_ms=LAG_MS,
            isr_removal_earliest_ms=6_000.0,
            isr_removal_latest_ms=21_000.0,
        )
        two = [_replica(1, mark=FROZEN_END), leaving, _replica(3, in_sync=False)]
        return {
            ("payments", 0): {
                "in_sync_replicas": [1, 2],
                "effective_min_in_sync_replicas": 1,
                "high_watermark": FROZEN_END,
                "uncommitted_records": LAG,
                "uncommitted_ms": LAG_MS,
                "replicas": two,
            }
        }
    if scene != OFFLINE:
        return {}
    without = [_replica(broker, error="refused") for broker in (1, 2, 3)]
    leaderless: dict[str, Any] = {
        "leader": None,
        "leaderless": True,
        "in_sync_replicas": [],
        "high_watermark": None,
        "log_end_offset": None,
    }
    return {
        ("orders", 1): {
            **leaderless,
            "uncommitted_records": None,
            "uncommitted_ms": None,
            "replicas": without,
        },
        ("payments", 0): {"missed_passes": 4},
    }


def _jmx(scene: str, began: float, now: float) -> JmxView:
    """Produce requests wait for the frozen follower; then it leaves the in-sync sets."""
    frozen, shrinks = scene == FROZEN, 0 if scene in (HEALTHY, FROZEN) else 2
    return JmxView(
        read_at=now,
        produce_purgatory=40 if frozen else 0,
        fetch_purgatory=6,
        figures=JmxFigures(
            expired_produces=0 if scene == HEALTHY else 5,
            fetcher_max_lag_records=17 if frozen else 0,
            failed_fetcher_partitions=2 if frozen else 0,
            dead_fetcher_threads=1 if frozen else 0,
        ),
        isr_shrinks=ShrinkCounts(since=began, by_jmx=shrinks, sampled=shrinks, of_absent=0),
    )


def views_of(scene: str, began: float, now: float) -> dict[str, View]:
    """key -> view, at `now` of a scene that began at `began` (Unix seconds)."""
    opened = {
        _key(each): open_alert(each)
        for past in SCENES[: SCENES.index(scene) + 1]
        for each in alerts_of(past, began)
    }
    # States end with their scene, events stay.
    names = {each.labels["alertname"] for each in alerts_of(scene, began)} | {
        "KafkaUncleanElection",
        "KafkaCommittedDataLoss",
        "KafkaLogTruncation",
    }
    held = [each for each in opened.values() if each.labels["alertname"] in names]
    found: dict[str, View] = {}
    for topic, partition in PLACES:
        changes = (
            _orders_0(scene, began)
            if (topic, partition) == ("orders", 0)
            else _others(scene).get((topic, partition), {})
        )
        mine = [
            each
            for each in held
            if topic == "orders" and each.labels["partition"] == str(partition)
        ]
        found[view_key(CLUSTER, topic, partition)] = _view(
            topic, partition, now, alerts=mine, **changes
        )
    outcomes = {"1": "ok", "2": "ok", "3": "ok"} | {
        FROZEN: {"2": "timed_out"},
        UNCLEAN: {"1": "refused"},
    }.get(scene, {})
    found[CLUSTER] = View(
        scope="cluster",
        kafka_cluster=CLUSTER,
        at=now,
        pass_number=1,
        collector="c",
        broker_outcomes=outcomes,
        period_ms=1000.0,
        quorum_leader=100,
        quorum_epoch=3,
        metadata_lag_ms={"1": 0.0, "2": 8000.0 if scene == FROZEN else 0.0, "3": 0.0},
    )
    found[view_key(CLUSTER, broker=3)] = View(
        scope="broker",
        kafka_cluster=CLUSTER,
        at=now,
        pass_number=1,
        collector="c",
        broker=3,
        log_directories=[
            LogDirectory(path="/a", total_bytes=400, usable_bytes=100),
            LogDirectory(path="/b", error="KAFKA_STORAGE_ERROR")
            if scene == OFFLINE
            else LogDirectory(path="/b", total_bytes=400, usable_bytes=300),
        ],
    )
    found[view_key(CLUSTER, broker=1)] = View(
        scope="broker",
        kafka_cluster=CLUSTER,
        at=now,
        pass_number=1,
        collector="c",
        broker=1,
        outcome=outcomes["1"],
        jmx=_jmx(scene, began, now),
    )
    found[IDLE] = View(
        scope="cluster", kafka_cluster=IDLE, at=now - IDLE_SECONDS, pass_number=1, collector="d"
    )
    return found


def _key(each: Alert) -> tuple[str, str]:
    return each.labels["alertname"], each.labels["partition"]

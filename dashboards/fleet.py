"""The Fleet dashboard: which of many clusters needs attention, the worst first."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.health_rules import STALE_SECONDS
from dashboards.panels import SECONDS, AnyPanel, grid, lines, link, listing, number, page, queries
from dashboards.promql import FEW, RECENT, chosen, increase, largest, pass_age

UID = frame.FLEET
CLUSTER = "{{kafka_cluster}}"
# What of a cluster is worst. No word for health: what is not seen may be anything.
PROBLEMS = {
    "3": ("critical", "red"),
    "2": ("not seen", "purple"),
    "1": ("warning", "orange"),
    "0": ("none known", "green"),
}


def _by_cluster(expression: str) -> str:
    return f"max by (kafka_cluster) ({expression})"


def _alerts(severity: str) -> str:
    return f"sum by (kafka_cluster) ({chosen('tidemark_alert_open', severity=severity)})"


def _problem() -> str:
    """3, 2, 1 or 0 of each cluster, as in PROBLEMS.

    Every configured cluster has the counter of elections, also one that no pass has named.
    """
    known = _by_cluster(chosen("tidemark_leader_elections_total"))
    passed = _by_cluster(chosen("tidemark_last_pass_timestamp_seconds"))
    offline, under_min, under_replicated, unseen, partitions = (
        _by_cluster(chosen(name))
        for name in (
            "tidemark_partitions_leaderless",
            "tidemark_partitions_under_min_in_sync",
            "tidemark_partitions_under_replicated",
            "tidemark_partitions_blind",
            "tidemark_partitions",
        )
    )
    found = {
        3: [f"{each} > 0" for each in (_alerts("critical"), offline, under_min)],
        2: [
            f"time() - {passed} > {STALE_SECONDS}",
            f"({known} unless {passed})",
            f"({known} unless {partitions} > 0)",
            f"{unseen} > 0",
        ],
        1: [f"{each} > 0" for each in (_alerts("warning"), under_replicated)],
        0: [known],
    }
    return " or ".join(f"0 * ({each}) + {rank}" for rank in found for each in found[rank])


def _numbers() -> list[AnyPanel]:
    """How many clusters have which worst problem."""
    problem = _problem()
    return [
        number(
            1 + place,
            title,
            f"Clusters {why}.",
            f"sum(({problem}) == bool {rank})",
            "",
            bad=None if rank == 0 else 1,
            colour=PROBLEMS[str(rank)][1],
        )
        for place, (rank, title, why) in enumerate(
            (
                (3, "Critical", "with a critical alert, or a partition offline or under min ISR"),
                (2, "Not seen", "without a recent pass, or with partitions that it missed"),
                (1, "Warning", "with an open warning or under-replicated partitions"),
                (0, "No known problem", "of which none of these is known"),
            )
        )
    ]


def _table() -> AnyPanel:
    handed = {"kafka_cluster": "${__data.fields.Cluster}"}
    to_page = page("Status page", "", cluster="${__data.fields.Cluster:percentencode}")
    columns = {
        "Problem": _problem(),
        "Critical alerts": _alerts("critical"),
        "Warnings": _alerts("warning"),
        "Offline": chosen("tidemark_partitions_leaderless"),
        "Under min ISR": chosen("tidemark_partitions_under_min_in_sync"),
        "Under-replicated": chosen("tidemark_partitions_under_replicated"),
        "Not seen": chosen("tidemark_partitions_blind"),
        "Lag": chosen("tidemark_cluster_replica_lag_seconds_max"),
        "Last pass": pass_age(),
    }
    return listing(
        5,
        "Clusters",
        "The worst first. An empty cell is not known. Click a cluster for its overview.",
        list(columns.items()),
        labels={"kafka_cluster": "Cluster"},
        sort=list(columns),
        units={"Lag": "s", "Last pass": "s"},
        bad={"Offline": 1, "Under min ISR": 1, "Last pass": STALE_SECONDS},
        words={"Problem": PROBLEMS},
        links={"Cluster": [link("Overview", frame.OVERVIEW, **handed), to_page]},
    )


def _graphs() -> list[AnyPanel]:
    return [
        lines(
            6,
            "Largest follower lag",
            f"Age of the oldest record that is missing on a replica of the cluster. {FEW}",
            queries((largest(chosen("tidemark_cluster_replica_lag_seconds_max")), CLUSTER)),
            unit=SECONDS,
        ),
        lines(
            7,
            "Age of the newest pass",
            f"Clusters without a pass for more than {STALE_SECONDS} s: all else of them is old.",
            queries((f"{pass_age()} > {STALE_SECONDS}", CLUSTER)),
            unit=SECONDS,
            absent="no known silence",
        ),
    ]


def build() -> dashboard.Dashboard:
    lost = chosen("tidemark_committed_records_lost_total", kind="proven")
    clusters = frame.choice(
        "kafka_cluster", "Cluster", "tidemark_leader_elections_total", many=True
    )
    return frame.make_dashboard(
        UID,
        "Fleet",
        "Many Kafka clusters at once: which of them needs attention.",
        [clusters],
        [frame.annotation("Records lost", "red", f"{increase(lost, RECENT)} > 0", CLUSTER)],
        grid((4, _numbers()), (18, [_table()]), (8, _graphs())),
    )

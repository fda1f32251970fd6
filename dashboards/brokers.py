"""Brokers: which one can be stopped, which one causes the churn, and which one is behind."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.panels import ANSWERS, AnyPanel, grid, lines, listing, number, queries, states
from dashboards.promql import chosen, increase, sum_by
from tidemark.core.signals import SIGNALS

UID = frame.BROKERS
CLUSTER = "{{kafka_cluster}}"
BROKER = f"{CLUSTER} broker {{{{broker}}}}"
IMPACT = "tidemark_broker_stop_impact_partitions"


def _of(metric: str, **matchers: str) -> str:
    """Within the chosen clusters and brokers."""
    assert "broker" in SIGNALS[metric].labels
    return chosen(metric, broker="=~$broker", **matchers)


def _safe_to_stop() -> AnyPanel:
    effects = {
        "Offline": "offline",
        "Under min ISR": "under_min_isr",
        "Last copy": "last_copy",
        "Unknown": "unknown",
    }
    counts = [(heading, _of(IMPACT, effect=effect)) for heading, effect in effects.items()]
    up, replicas, leaders = (
        _of(f"tidemark_broker_{what}") for what in ("up", "replicas", "leaders")
    )
    return listing(
        1,
        "Safe to stop",
        "Partitions that stopping the broker now would hurt. All zero: it can be stopped. `tidemark safe-to-stop` names the partitions.",
        [*counts, ("Replicas", replicas), ("Leads", leaders), ("Answers", up)],
        labels={"kafka_cluster": "Cluster", "broker": "Broker"},
        sort="Offline",
        bad=dict.fromkeys(effects, 1),
        absent="no broker is known",
    )


def _unsafe() -> list[AnyPanel]:
    worst = sum_by(
        _of(IMPACT, effect="=~offline|under_min_isr|last_copy|unknown"), "kafka_cluster", "broker"
    )
    return [
        number(
            2,
            "Brokers safe to stop",
            "One at a time: stopping it now hurts no partition.",
            f"count by (kafka_cluster) ({worst} == 0)",
            CLUSTER,
            bad=None,
            absent="none, or none known",
        ),
        number(
            3, "Brokers silent", "They did not answer the last pass.", _silent(), CLUSTER, bad=1
        ),
    ]


def _silent() -> str:
    return f"count by (kafka_cluster) ({_of('tidemark_broker_up')}) - {sum_by(_of('tidemark_broker_up'), 'kafka_cluster')}"


def _churn() -> list[AnyPanel]:
    def counted(metric: str) -> str:
        return increase(_of(metric), "$__rate_interval")

    causes = increase(chosen("tidemark_isr_shrinks_by_cause_total"), "$__rate_interval")
    return [
        lines(
            4,
            "Leaves in-sync sets",
            "Times that the broker left one.",
            queries((counted("tidemark_isr_shrinks_total"), BROKER)),
            unit="short",
        ),
        lines(
            5,
            "Its followers leave",
            "Times that a follower left a set that the broker led: all of them leaving one leader points at the leader.",
            queries((counted("tidemark_isr_shrinks_led_total"), BROKER)),
            unit="short",
        ),
        lines(
            6,
            "Joins again",
            "Times that the broker joined one.",
            queries((counted("tidemark_isr_expands_total"), BROKER)),
            unit="short",
        ),
        lines(
            7,
            "Suspected causes",
            "Of all shrinks of the cluster.",
            queries((causes, f"{CLUSTER} {{{{cause}}}}")),
            unit="short",
        ),
    ]


def _behind() -> list[AnyPanel]:
    preferred = f"{_of('tidemark_broker_preferred_leaders')} - {_of('tidemark_broker_leaders')}"
    return [
        lines(
            8,
            "Largest lag",
            "Age of the oldest record that a replica on the broker lacks.",
            queries((_of("tidemark_broker_replica_lag_seconds_max"), BROKER)),
            unit="s",
        ),
        lines(
            9,
            "Replicas out of sync",
            "Assigned to the broker, and not in their in-sync sets.",
            queries((_of("tidemark_broker_out_of_sync_replicas"), BROKER)),
            unit="short",
        ),
        lines(
            10,
            "Leads fewer than preferred",
            "Partitions whose preferred leader it is, less those that it leads; after a restart until a preferred election.",
            queries((preferred, BROKER)),
            unit="short",
            from_zero=False,
        ),
    ]


def build() -> dashboard.Dashboard:
    answers = states(
        11,
        "Answers",
        "Whether the broker answered the last pass.",
        queries((_of("tidemark_broker_up"), BROKER)),
        words=ANSWERS,
    )
    metadata = lines(
        12,
        "Metadata lag",
        "How long ago the quorum's leader last saw the node caught up with the metadata log.",
        queries((_of("tidemark_broker_metadata_lag_seconds"), BROKER)),
        unit="s",
        absent="not told: no quorum, or no right to ask it",
    )
    quorum = states(
        13,
        "Metadata quorum",
        "Its leader and the epoch of that leader.",
        queries(
            (chosen("tidemark_quorum_leader"), f"{CLUSTER} leader"),
            (chosen("tidemark_quorum_epoch"), f"{CLUSTER} epoch"),
        ),
        absent="not told: no quorum, or no right to ask it",
    )
    churn = _churn()
    silent = f"{_of('tidemark_broker_up')} == 0"
    return frame.board(
        UID,
        "Brokers",
        "Which broker can be stopped, which one causes the churn, and which one is behind.",
        [
            frame.clusters(),
            frame.choice(
                "broker",
                "Broker",
                "tidemark_broker_up",
                many=True,
                numeric=True,
                kafka_cluster="=~$kafka_cluster",
            ),
        ],
        [frame.annotation("Broker silent", "red", silent, BROKER)],
        grid(
            (4, _unsafe()),
            (9, [_safe_to_stop()]),
            (8, churn[:2]),
            (8, churn[2:]),
            (8, _behind()),
            (8, [answers, metadata, quorum]),
        ),
    )

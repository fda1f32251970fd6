"""The Brokers dashboard: which broker can be stopped, causes ISR churn, or is behind."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.broker_risks import risks
from dashboards.panels import ANSWERS, AnyPanel, grid, lines, listing, number, queries, states
from dashboards.promql import ESTIMATED, chosen, increase, sum_by
from tidemark.core.metric_table import METRICS

UID = frame.BROKERS
CLUSTER = "{{kafka_cluster}}"
BROKER = f"{CLUSTER} broker {{{{broker}}}}"
IMPACT = "tidemark_broker_stop_impact_partitions"


def _of(metric: str, **matchers: str) -> str:
    """A selector within the chosen clusters and brokers."""
    assert "broker" in METRICS[metric].labels
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
        "Partitions harmed by stopping the broker now. The broker is safe to stop when all are 0. "
        "`tidemark safe-to-stop` lists the partitions.",
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
            "Brokers that harm no partition when stopped now, one at a time.",
            f"count by (kafka_cluster) ({worst} == 0)",
            CLUSTER,
            bad=None,
            absent="none, or unknown",
        ),
        number(
            3,
            "Silent brokers",
            "Brokers that did not answer the last pass.",
            _silent(),
            CLUSTER,
            bad=1,
        ),
    ]


def _silent() -> str:
    up = _of("tidemark_broker_up")
    return f"count by (kafka_cluster) ({up}) - {sum_by(up, 'kafka_cluster')}"


def _churn() -> list[AnyPanel]:
    def grown(metric: str) -> str:
        return increase(_of(metric), "$__rate_interval")

    causes = increase(chosen("tidemark_isr_shrinks_by_cause_total"), "$__rate_interval")
    return [
        lines(
            4,
            "ISR shrinks by removed broker",
            f"Removals of the broker from in-sync sets. {ESTIMATED}",
            queries((grown("tidemark_isr_shrinks_total"), BROKER)),
            unit="short",
        ),
        lines(
            5,
            "ISR shrinks by leader",
            "Removals from in-sync sets led by the broker. When all followers of one leader are "
            f"removed, the leader is the likely cause. {ESTIMATED}",
            queries((grown("tidemark_isr_shrinks_led_total"), BROKER)),
            unit="short",
        ),
        lines(
            6,
            "ISR expands",
            f"Additions of the broker to in-sync sets. {ESTIMATED}",
            queries((grown("tidemark_isr_expands_total"), BROKER)),
            unit="short",
        ),
        lines(
            7,
            "ISR shrinks by suspected cause",
            f"All shrinks of the cluster. {ESTIMATED}",
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
            "Age of the oldest record that is missing on a replica of the broker.",
            queries((_of("tidemark_broker_replica_lag_seconds_max"), BROKER)),
            unit="s",
        ),
        lines(
            9,
            "Out-of-sync replicas",
            "Replicas assigned to the broker that are not in sync.",
            queries((_of("tidemark_broker_out_of_sync_replicas"), BROKER)),
            unit="short",
        ),
        lines(
            10,
            "Missing leaderships",
            "Partitions with the broker as preferred leader, minus partitions led by it. Above 0 "
            "after a restart, until a preferred leader election.",
            queries((preferred, BROKER)),
            unit="short",
            from_zero=False,
        ),
    ]


def _directories() -> list[AnyPanel]:
    usable, total = (_of(f"tidemark_log_directory_{what}_bytes") for what in ("usable", "total"))
    directory = f"{BROKER} {{{{log_directory}}}}"
    return [
        lines(
            14,
            "Usable space",
            "Usable part of the volume of each log directory.",
            queries((f"{usable} / {total}", directory)),
            unit="percentunit",
            absent="unknown: no right to describe the cluster, or Kafka before 3.3",
        ),
        states(
            15,
            "Log directories",
            "Whether the broker can use each log directory.",
            queries((_of("tidemark_log_directory_online"), directory)),
            words={"0": ("offline", "red"), "1": ("online", "green")},
            absent="unknown: no right to describe the cluster",
        ),
    ]


def _jmx() -> list[AnyPanel]:
    expired = increase(_of("tidemark_broker_operations_expired_total"), "$__rate_interval")
    absent = "unknown: JMX is not read"
    return [
        lines(
            16,
            "Requests that wait",
            "Requests in the broker's purgatories, by JMX. Long polls of idle consumers are among "
            "the fetches.",
            queries(
                (_of("tidemark_broker_purgatory_operations"), f"{BROKER} {{{{purgatory}}}}"),
            ),
            unit="short",
            absent=absent,
        ),
        lines(
            17,
            "Expired requests",
            "Requests that waited until their time-out, by JMX. A consumer's fetch that expires "
            f"found no new records. {ESTIMATED}",
            queries((expired, f"{BROKER} {{{{operation}}}}")),
            unit="short",
            absent=absent,
        ),
        lines(
            18,
            "Fetcher lag",
            "Largest distance of the broker's fetchers from a leader's high watermark, by JMX.",
            queries((_of("tidemark_broker_fetcher_lag_records_max"), BROKER)),
            unit="short",
            absent=absent,
        ),
        lines(
            19,
            "Failed fetchers",
            "Partitions that a fetcher gave up, and fetcher threads that ended, by JMX.",
            queries(
                (_of("tidemark_broker_fetcher_failed_partitions"), f"{BROKER} partitions"),
                (_of("tidemark_broker_fetcher_dead_threads"), f"{BROKER} threads"),
            ),
            unit="short",
            absent=absent,
        ),
        lines(
            20,
            "ISR shrinks by JMX and by samples",
            "Shrinks led by the broker since the comparison began: by JMX, as sampled, and among "
            "the latter those of brokers that did not answer, which the leader may not count.",
            queries((_of("tidemark_broker_isr_shrinks_compared"), f"{BROKER} {{{{source}}}}")),
            unit="short",
            absent=absent,
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
        "Time since the quorum leader last saw the node caught up.",
        queries((_of("tidemark_broker_metadata_lag_seconds"), BROKER)),
        unit="s",
        absent="unknown: no quorum, or no right to describe it",
    )
    quorum = states(
        13,
        "Metadata quorum",
        "Leader of the quorum, and its epoch.",
        queries(
            (chosen("tidemark_quorum_leader"), f"{CLUSTER} leader"),
            (chosen("tidemark_quorum_epoch"), f"{CLUSTER} epoch"),
        ),
        absent="unknown: no quorum, or no right to describe it",
    )
    churn, jmx = _churn(), _jmx()
    silent = f"{_of('tidemark_broker_up')} == 0"
    return frame.make_dashboard(
        UID,
        "Brokers",
        "Which broker can be stopped, which one causes ISR churn, and which one is behind.",
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
            (8, risks()),
            (8, churn[:2]),
            (8, churn[2:]),
            (8, _behind()),
            (8, [answers, metadata, quorum]),
            (8, _directories()),
            (8, jmx[:3]),
            (8, jmx[3:]),
        ),
    )

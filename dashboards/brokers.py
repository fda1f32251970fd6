"""The Brokers dashboard: which broker can be stopped, causes ISR churn, or is behind."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from dashboards import frame
from dashboards.broker_risks import SHORT, risks
from dashboards.panels import (
    ANSWERS,
    SECONDS,
    AnyPanel,
    Section,
    lines,
    listing,
    number,
    page,
    queries,
    sections,
    states,
)
from dashboards.promql import (
    ESTIMATED,
    FEW,
    LINES,
    chosen,
    largest,
    most_grown,
    smallest,
    sum_by,
    worst,
)
from tidemark.core.metric_table import METRICS

UID = frame.BROKERS
CLUSTER = "{{kafka_cluster}}"
TO_PAGE = page(
    "Status page",
    "broker",
    cluster="${__data.fields.Cluster:percentencode}",
    broker="${__data.fields.Broker}",
)
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
        [
            *counts,
            ("Replicas", replicas),
            ("Leads", leaders),
            ("Answers", up),
            ("Lag", _of("tidemark_broker_replica_lag_seconds_max")),
            ("Out of sync", _of("tidemark_broker_out_of_sync_replicas")),
        ],
        labels={"kafka_cluster": "Cluster", "broker": "Broker"},
        sort=[*effects, "Out of sync"],
        units={"Lag": "s"},
        bad={**dict.fromkeys(effects, 1), "Out of sync": 1},
        words={"Answers": ANSWERS},
        links={"Broker": [TO_PAGE]},
        absent="no broker is known",
    )


def _unsafe() -> list[AnyPanel]:
    harmed = sum_by(
        _of(IMPACT, effect="=~offline|under_min_isr|last_copy|unknown"), "kafka_cluster", "broker"
    )
    return [
        number(
            2,
            "Brokers safe to stop",
            "Brokers that harm no partition when stopped now, one at a time.",
            sum_by(f"{harmed} == bool 0", "kafka_cluster"),
            CLUSTER,
            bad=None,
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
    causes = most_grown(chosen("tidemark_isr_shrinks_by_cause_total"))
    return [
        lines(
            4,
            "ISR shrinks by removed broker",
            f"Removals of the broker from in-sync sets. {FEW} {ESTIMATED}",
            queries((most_grown(_of("tidemark_isr_shrinks_total")), BROKER)),
            unit="short",
        ),
        lines(
            5,
            "ISR shrinks by leader",
            "Removals from in-sync sets led by the broker. When all followers of one leader are "
            f"removed, the leader is the likely cause. {FEW} {ESTIMATED}",
            queries((most_grown(_of("tidemark_isr_shrinks_led_total")), BROKER)),
            unit="short",
        ),
        lines(
            6,
            "ISR expands",
            f"Additions of the broker to in-sync sets. {FEW} {ESTIMATED}",
            queries((most_grown(_of("tidemark_isr_expands_total")), BROKER)),
            unit="short",
        ),
        lines(
            7,
            "ISR shrinks by suspected cause",
            f"All shrinks of the cluster. {FEW} {ESTIMATED}",
            queries((causes, f"{CLUSTER} {{{{cause}}}}")),
            unit="short",
        ),
    ]


def _behind() -> list[AnyPanel]:
    preferred, leaders = (
        _of(f"tidemark_broker_{what}") for what in ("preferred_leaders", "leaders")
    )
    missing = worst(
        f"clamp_min({preferred} - {leaders}, 0)",
        f"max_over_time({preferred}[$__range] @ end())"
        f" - min_over_time({leaders}[$__range] @ end())",
    )
    return [
        lines(
            8,
            "Largest lag",
            f"Age of the oldest record that is missing on a replica of the broker. {FEW}",
            queries((largest(_of("tidemark_broker_replica_lag_seconds_max")), BROKER)),
            unit=SECONDS,
        ),
        lines(
            9,
            "Out-of-sync replicas",
            f"Replicas assigned to the broker that are not in sync. {FEW}",
            queries((largest(_of("tidemark_broker_out_of_sync_replicas")), BROKER)),
            unit="short",
        ),
        lines(
            10,
            "Missing leaderships",
            "Partitions with the broker as preferred leader, minus partitions led by it. Above 0 "
            f"after a restart, until a preferred leader election. {FEW}",
            queries((missing, BROKER)),
            unit="short",
        ),
    ]


def _directories() -> list[AnyPanel]:
    usable, total = (_of(f"tidemark_log_directory_{what}_bytes") for what in ("usable", "total"))
    directory = f"{BROKER} {{{{log_directory}}}}"
    fullest = worst(
        f"{usable} / {total}",
        f"min_over_time({usable}[$__range] @ end()) / max_over_time({total}[$__range] @ end())",
        least=True,
    )
    return [
        lines(
            14,
            "Usable space",
            f"Usable part of the volume of each log directory. {FEW}",
            queries((fullest, directory)),
            unit="percentunit",
            absent="unknown: no right to describe the cluster, or Kafka before 3.3",
        ),
        states(
            15,
            "Log directories",
            f"Whether the broker can use each log directory. {FEW}",
            queries((smallest(_of("tidemark_log_directory_online")), directory)),
            words={"0": ("offline", "red"), "1": ("online", "green")},
            absent="unknown: no right to describe the cluster",
        ),
    ]


def _jmx() -> list[AnyPanel]:
    expired = most_grown(_of("tidemark_broker_operations_expired_total"))
    waiting, fetcher_lag, compared = (
        largest(_of(f"tidemark_broker_{what}"))
        for what in ("purgatory_operations", "fetcher_lag_records_max", "isr_shrinks_compared")
    )
    failed, dead = (
        largest(_of(f"tidemark_broker_fetcher_{what}"), LINES // 2)
        for what in ("failed_partitions", "dead_threads")
    )
    absent = "unknown: JMX is not read"
    return [
        lines(
            16,
            "Requests that wait",
            "Requests in the broker's purgatories, by JMX. Long polls of idle consumers are among "
            f"the fetches. {FEW}",
            queries((waiting, f"{BROKER} {{{{purgatory}}}}")),
            unit="short",
            dashed="fetch",
            absent=absent,
        ),
        lines(
            17,
            "Expired requests",
            "Requests that waited until their time-out, by JMX. A consumer's fetch that expires "
            f"found no new records. {FEW} {ESTIMATED}",
            queries((expired, f"{SHORT}, {{{{operation}}}}")),
            unit="short",
            dashed="consumer_fetch",
            absent=absent,
        ),
        lines(
            18,
            "Fetcher lag",
            "Largest distance of the broker's fetchers from a leader's high watermark, by JMX. "
            f"{FEW}",
            queries((fetcher_lag, BROKER)),
            unit="short",
            absent=absent,
        ),
        lines(
            19,
            "Failed fetchers",
            f"Partitions that a fetcher gave up, and fetcher threads that ended, by JMX. {FEW}",
            queries((failed, f"{BROKER} partitions"), (dead, f"{BROKER} threads")),
            unit="short",
            dashed="threads",
            absent=absent,
        ),
        lines(
            20,
            "ISR shrinks by JMX and by samples",
            "Shrinks led by the broker since the comparison began: by JMX, as sampled, and among "
            "the latter those of brokers that did not answer, which the leader may not count. "
            f"{FEW}",
            queries((compared, f"{BROKER} {{{{source}}}}")),
            unit="short",
            dashed="jmx",
            absent=absent,
        ),
    ]


def build() -> dashboard.Dashboard:
    answers = states(
        11,
        "Answers",
        f"Whether the broker answered the last pass. {FEW}",
        queries((smallest(_of("tidemark_broker_up")), BROKER)),
        words=ANSWERS,
    )
    metadata = lines(
        12,
        "Metadata lag",
        f"Time since the quorum leader last saw the node caught up. {FEW}",
        queries((largest(_of("tidemark_broker_metadata_lag_seconds")), BROKER)),
        unit=SECONDS,
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
        own_scales=True,
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
        sections(
            Section(101, "Stop a broker", [(4, _unsafe()), (12, [_safe_to_stop()]), (8, risks())]),
            Section(102, "In-sync sets", [(8, churn[:2]), (8, churn[2:]), (8, _behind())]),
            Section(103, "Answers and metadata", [(9, [answers, metadata, quorum])]),
            Section(104, "Disks", [(8, _directories())], collapsed=True),
            Section(105, "JMX", [(8, jmx[:3]), (8, jmx[3:])], collapsed=True),
        ),
    )

"""The collector against real brokers: one cluster, one pause."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import requests
import yaml
from kafka import TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.metadata_truth import (
    compare_records,
    copy_of_log,
    expected_states,
    following,
    reported_states,
)
from tests.cluster.producing import connection, producer_of
from tests.conftest import ROOT
from tests.jmx_agent import RULES, jmx_agent, jmx_endpoints
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.sources.jmx.endpoint import scrape
from tidemark.collect.sources.jmx.figures import FIGURES, FigureReader, ScrapeError
from tidemark.collect.sources.log_directories.directory import HIGH_WATERMARKS
from tidemark.collect.sources.log_directories.formats import parse_offsets
from tidemark.collect.sources.log_directories.sidecar import LogDirectoriesReader
from tidemark.collect.sources.metadata_log.folder import FOLDER, MetadataFolder
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ClusterError
from tidemark.core.events import (
    BrokerState,
    Checkpoint,
    Event,
    Observation,
    PartitionDeleted,
    Pass,
)
from tidemark.kafka.client import make_producer
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Cluster, Collect, Connection, JmxEndpoint, Topics
from tidemark.verbs.inspect.command import observe_topics
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

BROKER_FIGURES = {
    *("produce_purgatory", "fetch_purgatory", "produce_purgatory_watches"),
    *("fetch_purgatory_watches", "isr_shrinks", "isr_expands", "failed_isr_updates"),
    *("under_replicated_partitions", "offline_replicas", "fetcher_max_lag_records"),
    *("fetcher_min_rate", "failed_fetcher_partitions", "dead_fetcher_threads"),
    *("expired_follower_fetches",),
}
CONTROLLER_FIGURES = {
    *("unclean_leader_elections", "is_active_controller", "last_applied_record_lag_ms"),
}
# Longer than a test: a paused broker stays in the in-sync set and registered.
OVERRIDES = {
    "replica.lag.time.max.ms": "120000",
    "broker.session.timeout.ms": "120000",
    # A snapshot of the metadata log is due at each change.
    "metadata.log.max.record.bytes.between.snapshots": "500",
}
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def endpoints() -> list[JmxEndpoint]:
    return jmx_endpoints()


@pytest.fixture(scope="module")
def brokers(
    endpoints: list[JmxEndpoint], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    # Each form of the names: Tidemark's rules, those of jmx_exporter's example, and none.
    example = ROOT / "tests" / "testdata" / "jmx" / "kafka-2_0_0.yml"
    none = tmp_path_factory.mktemp("jmx") / "none.yml"
    beans = yaml.safe_load(RULES.read_text(encoding="utf-8"))["includeObjectNames"]
    none.write_text(yaml.safe_dump({"includeObjectNames": beans}), encoding="utf-8")
    rules = {2: example, 3: none}
    flags = {
        each.broker: [jmx_agent(each.url, rules.get(each.broker, RULES))] for each in endpoints
    }
    of_3 = {"broker.rack": "b", "replica.selector.class": RACK_AWARE}
    with LocalCluster(overrides=OVERRIDES, broker_overrides={3: of_3}, jvm_flags=flags) as cluster:
        cluster.create_topic("t", {0: [1, 2, 3], 1: [2, 3, 1]}, {"min.insync.replicas": "2"})
        cluster.create_topic("short", {0: [3, 1]})
        yield cluster


@pytest.fixture
def passes(brokers: LocalCluster) -> Iterator[PassRunner]:
    cluster = Cluster(
        name="c", bootstrap_servers=brokers.bootstrap_servers, topics_allow=["t", "short"]
    )
    made = PassRunner(cluster, Collect(collector="k"), 4, 1)
    yield made
    made.close()


def run(passes: PassRunner, number: int = 1, pause: float = 0.2) -> list[list[Event]]:
    """The events of each pass."""
    found: list[list[Event]] = []

    async def work() -> None:
        for _ in range(number):
            found.append(
                [
                    event
                    for record in await passes.run(set())
                    for event in decode_batch(record.payload).events
                ]
            )
            await passes.loop.sleep(pause)

    passes.loop.run(work)
    return found


@contextlib.contextmanager
def producing(brokers: LocalCluster, acks: int | str = "all") -> Iterator[Callable[[int], None]]:
    """Sends a number of records to both partitions.

    The first send is at once: for metadata kafka-python asks any broker, also a paused one.
    """
    with producer_of(brokers, acks=acks, enable_idempotence=False) as producer:

        def send(count: int) -> None:
            sent = [
                producer.send("t", value=str(n).encode(), partition=partition)
                for n in range(count)
                for partition in (0, 1)
            ]
            for future in sent:
                future.get(10)

        send(1)
        yield send


def last(events: list[list[Event]], topic: str, partition: int) -> Observation:
    return next(
        event
        for one in reversed(events)
        for event in one
        if isinstance(event, Observation) and (event.topic, event.partition) == (topic, partition)
    )


def test_every_replica_is_read_and_the_high_watermark_is_the_leaders(
    brokers: LocalCluster, passes: PassRunner
) -> None:
    with producing(brokers) as send:
        send(4)
    events = run(passes, 6, 0.3)
    seen = last(events, "t", 1)
    assert (
        seen.leader,
        seen.leader_epoch,
        seen.committed,
        seen.effective_min_in_sync_replicas,
    ) == (2, 0, 5, 2)
    assert {
        s.broker: (s.log_end_offset, s.high_watermark, s.log_start_offset, s.error)
        for s in seen.samples
    } == dict.fromkeys((1, 2, 3), (5, 5, 0, None))
    assert seen.eligible_leader_replicas == []
    assert (seen.lineage, seen.lineage_complete_from) == ([(0, 5)], 0)
    assert seen.leader_log_end_offset_before == seen.leader_log_end_offset_after == 5
    assert passes.inventory.partitions["t", 1].configuration.compacted is False
    ended = next(event for event in events[-1] if isinstance(event, Pass))
    assert {b.broker: (b.preferred, b.preferred_led, b.in_sync) for b in ended.brokers} == {
        1: (1, 1, 3),
        2: (1, 1, 2),
        3: (1, 1, 3),
    }


def test_a_paused_broker_shows_the_gap_from_the_live_leader(
    brokers: LocalCluster, passes: PassRunner
) -> None:
    with producing(brokers, acks=1) as send:
        before = last(run(passes, 3), "t", 0)
        brokers.pause_broker(3)
        try:
            send(4)
            events = run(passes, 6)
        finally:
            brokers.resume_broker(3)
    seen = last(events, "t", 0)
    silent = next(s for s in seen.samples if s.broker == 3)
    assert (silent.error, silent.log_end_offset) == ("timed_out", None)
    shown = [last([one], "t", 0) for one in events]
    gaps = {
        o.leader_log_end_offset_before - o.committed
        for o in shown
        if o.leader_log_end_offset_before is not None and o.committed is not None
    }
    assert gaps == {4}
    assert (seen.leader, seen.in_sync_replicas) == (before.leader, before.in_sync_replicas)
    ended = [next(event for event in one if isinstance(event, Pass)) for one in events]
    assert {answer.broker: answer.outcome for answer in ended[-1].brokers} == {
        1: "ok",
        2: "ok",
        3: "timed_out",
    }
    # No pass waits for a broker known to be silent; on a busy machine some passes are slow anyway.
    assert min(one.ended_at - one.started_at for one in ended[2:]) < 0.5
    assert ended[-1].quorum_leader == 100


def test_brokers_report_directories_sizes_and_configuration(
    brokers: LocalCluster, passes: PassRunner
) -> None:
    with producing(brokers) as send:
        send(50)
    events = run(passes, 8)
    states = {
        event.broker: event
        for one in events
        for event in one
        if isinstance(event, BrokerState) and event.configuration is not None
    }
    assert sorted(states) == [1, 2, 3]
    for state in states.values():
        (directory,) = state.log_directories or []
        assert (directory.error, state.offline_log_dirs) == (None, 0)
        assert 0 < (directory.usable_bytes or 0) <= (directory.total_bytes or 0)
        found = state.configuration
        assert found is not None
        assert (found.replica_lag_time_max_ms, found.unclean_leader_election) == (120_000, False)
        assert found.replication_throttles == {}
    assert {
        broker: state.configuration and state.configuration.replica_selector_class
        for broker, state in states.items()
    } == {1: "", 2: "", 3: RACK_AWARE}
    folders = brokers.directory.glob("data-*/t-0/*.log")
    on_disk = {int(path.parts[-3][5:]): path.stat().st_size for path in folders}
    seen = [
        event
        for one in events
        for event in one
        if isinstance(event, Observation) and (event.topic, event.partition) == ("t", 0)
    ]
    sizes = {s.broker: s.size_bytes for o in seen for s in o.samples if s.size_bytes is not None}
    assert sizes == on_disk
    told = next(o for o in reversed(seen) if o.throttled_replicas is not None)
    assert (told.throttled_replicas, told.unclean_leader_election) == ([], False)
    ended = next(event for event in events[-1] if isinstance(event, Pass))
    assert ended.reassigning == 0


def _figures(text: str) -> dict[tuple[str, str | None], float]:
    """As FIGURES names them -> value, by another parser than Tidemark's."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            base, _, attribute = sample.name.lower().rpartition("_")
            bean = sample.labels.get("name")
            if bean is not None and attribute in ("value", "count"):
                name = f"{base}_{bean.removesuffix('PerSec').lower()}"
            else:
                name = sample.name.lower().removesuffix("_total")
            labels = {name.lower(): value.lower() for name, value in sample.labels.items()}
            if "topic" not in labels:
                variants = ("delayedoperation", "fetchertype", "clientid")
                variant = next((labels[each] for each in variants if each in labels), None)
                found[name, variant] = sample.value
    return found


def test_jmx_figures_are_those_of_the_endpoint(
    brokers: LocalCluster, endpoints: list[JmxEndpoint]
) -> None:
    producer = make_producer(
        Connection(bootstrap_servers=brokers.bootstrap_servers[:2]),
        acks="all",
        enable_idempotence=False,
    )
    # For metadata kafka-python asks any broker, also a paused one.
    producer.send("t", value=b"first", partition=0).get(20)
    brokers.pause_broker(3)
    try:
        waiting = producer.send("t", value=b"waits for broker 3", partition=0)
        wait_until(
            lambda: scrape(endpoints[0], 20.0).event(1, 0.0).produce_purgatory == 1,
            20.0,
            "the write waits in the purgatory",
        )
    finally:
        brokers.resume_broker(3)
    waiting.get(20)
    producer.close(timeout=1)
    started = []
    for endpoint in endpoints:
        text = requests.get(endpoint.url, timeout=20).text
        reader = FigureReader()
        reader.feed(text.encode())
        event = reader.event(endpoint.broker, 0.0)
        assert event.jmx is not None
        started.append(event.jmx.started_at is not None)
        shown = {**msgspec.structs.asdict(event), **msgspec.structs.asdict(event.jmx)}
        known = _figures(text)
        assert {field: shown[field] for field in FIGURES.values()} == {
            field: known.get(key) for key, field in FIGURES.items()
        }
        present = {field for field in FIGURES.values() if shown[field] is not None}
        wanted = CONTROLLER_FIGURES if endpoint.broker == CONTROLLER else BROKER_FIGURES
        assert wanted <= present, endpoint.broker
    # The example's rules leave out beans without a name.
    assert started == [True, False, True, True]
    with pytest.raises(ScrapeError, match="that of broker 1"):
        scrape(endpoints[0], 20.0).event(2, 0.0)


def test_a_kafka_port_is_no_jmx_endpoint(brokers: LocalCluster) -> None:
    host, port = brokers.address(1)
    endpoint = JmxEndpoint(broker=1, url=f"http://{host}:{port}/metrics")
    with pytest.raises(ScrapeError, match="no HTTP answer; is this the agent's port, not Kafka's"):
        scrape(endpoint, 20.0)


def test_topics_are_made_once_and_another_partition_count_is_refused(brokers: LocalCluster) -> None:
    own = connection(brokers)
    with pytest.raises(ClusterError, match="replication factor 9: the cluster has fewer brokers"):
        ensure_topics(own, Topics(partitions=4, replication_factor=9))
    ensure_topics(own, Topics(partitions=4))
    ensure_topics(own, Topics(partitions=4))
    with pytest.raises(ClusterError, match="has 4 partitions, but the configuration says 5"):
        ensure_topics(own, Topics(partitions=5))


def test_inspect_reads_lineages_and_knows_a_wrong_name(brokers: LocalCluster) -> None:
    cluster = Cluster(name="c", bootstrap_servers=brokers.bootstrap_servers)
    found, _ = observe_topics(cluster, Collect(), ["t"])
    assert [(o.topic, o.partition, len(o.samples)) for o in found] == [("t", 0, 3), ("t", 1, 3)]
    assert all(sample.lineage for o in found for sample in o.samples if sample.broker != o.leader)
    with pytest.raises(ClusterError, match=r"shows no topic shotr.*Did you mean short\?"):
        observe_topics(cluster, Collect(), ["shotr"])


def test_a_deleted_topic_is_gone(brokers: LocalCluster, passes: PassRunner) -> None:
    run(passes, 2)
    assert ("short", 0) in passes.inventory.partitions
    brokers.administer(lambda admin: admin.delete_topics(["short"]), "delete a topic")
    events: list[Event] = []
    for _ in range(20):
        passes.immediate_next_pass = True
        events += run(passes)[0]
    assert [
        (event.topic, event.partition) for event in events if isinstance(event, PartitionDeleted)
    ] == [("short", 0)]


def test_the_metadata_log_is_read_as_kafka_dumps_it(brokers: LocalCluster, tmp_path: Path) -> None:
    with following(brokers) as seen:
        brokers.create_topic("logged", {p: [1, 2, 3] for p in range(6)})
        wanted = {TopicPartition("logged", 0): [3, 2, 1]}
        brokers.administer(lambda admin: admin.alter_partition_reassignments(wanted), "reassign")
        brokers.elect_preferred_leaders({"logged": [0]})
        seen.until(lambda: any(e.leader == 3 for e in seen.changes() if e.topic == "logged"))
        end = seen.changes()[-1].metadata_offset
        folder = copy_of_log(brokers.directory / "data-1" / FOLDER, tmp_path, end)
    compared, log = compare_records(folder)
    assert compared > len(log) > 20, "a snapshot was compared too"
    expected = sorted(item for item in expected_states(log).items() if item[0] <= end)
    # Not of topics that were deleted before it began to read.
    watched = ("t", "logged")
    reported = [item for item in reported_states(seen.events) if item[1][0] in watched]
    begun = reported[0][0]
    snapshot = {state[:2]: state for offset, state in expected if offset <= begun}
    assert {state[:2]: state for offset, state in reported if offset == begun} == {
        place: state for place, state in snapshot.items() if place[0] in watched
    }
    assert [item for item in reported if item[0] > begun] == [
        item for item in expected if item[0] > begun and item[1][0] in watched
    ]
    everything = Inventory(Cluster(name="c"), 1)
    offline = reported_states(list(MetadataFolder(folder, print).read(everything)))
    assert [item for item in offline if item[0] <= end] == expected
    assert {e.cause for e in seen.changes()} >= {"created", "reassignment"}


def test_the_files_of_a_broker_follow_its_log_and_equal_it_after_a_clean_stop(
    brokers: LocalCluster, passes: PassRunner
) -> None:
    """The last test: broker 3 remains stopped."""
    directory = brokers.log_directory(3)
    reader = LogDirectoriesReader([directory], Cluster(name="c"), "host-3", 1, 1)

    def events() -> tuple[dict[tuple[str, int], Checkpoint], BrokerState]:
        (record,) = reader.records(time.time(), 0.0)
        *checkpoints, state = decode_batch(record.payload).events
        assert isinstance(state, BrokerState)
        found = {(e.topic, e.partition): e for e in checkpoints if isinstance(e, Checkpoint)}
        return found, state

    with producing(brokers) as send:
        send(50)
    high_watermarks = parse_offsets((directory / HIGH_WATERMARKS).read_bytes())
    on_disk, state = events()
    live = last(run(passes, 2), "t", 0)
    sample = next(sample for sample in live.samples if sample.broker == 3)
    assert sample.high_watermark is not None
    assert (state.broker, state.stopped_clean) == (3, None)
    for key, event in on_disk.items():
        # Kafka may have written the file since.
        assert (event.high_watermark or 0) >= high_watermarks.get(key, 0)
    seen = on_disk["t", 0]
    assert seen.topic_id == live.topic_id
    assert (seen.high_watermark or 0) <= sample.high_watermark
    assert (seen.recovery_point or 0) <= (sample.log_end_offset or 0)
    assert [epoch for epoch, _ in seen.lineage_starts or []] == [e for e, _ in live.lineage or []]
    brokers.stop_broker(3)
    stopped, state = events()
    assert (state.stopped_clean, state.cluster_id) == (True, passes.inventory.cluster_id)
    files = stopped["t", 0]
    assert files.high_watermark == files.recovery_point == sample.log_end_offset

"""What brokers report of themselves, on real brokers: a directory that fails, a reassignment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from tests.cluster.producing import producer_of
from tidemark.assess.risky_configuration import KINDS, Kind, RiskCount, list_risks
from tidemark.collect.collection_pass import PassRunner
from tidemark.core.codec import decode_batch
from tidemark.core.records import AddingView, OpenAlert, View
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews
from tidemark.settings import Cluster, Collect
from tidemark_lab.brokers.cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATE = 400_000
RECORD = b"x" * 1000
RECORDS = 20_000


class Watch:
    """Passes over a cluster, folded as the stream does."""

    def __init__(self, brokers: LocalCluster) -> None:
        cluster = Cluster(name="c", bootstrap_servers=brokers.bootstrap_servers)
        settings = Collect(collector="k", configuration_seconds=2.0, metadata_seconds=1.0)
        self._passes = PassRunner(cluster, settings, 1, 1)
        self.found = ClusterViews(Detection())

    def until(self, reached: Callable[[], bool], seconds: float = 60.0) -> float:
        """Runs passes until then. Returns the seconds that it took."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            for record in self._passes.loop.run(self._passes.run, set()):
                self.found.add(decode_batch(record.payload))
            if reached():
                return time.monotonic() - began
            self._passes.loop.run(self._passes.loop.sleep, 0.5)
        raise AssertionError(f"not within {seconds} s")

    def whole(self) -> list[View]:
        return self.found.cluster_views("c")

    def alerts(self, broker: int) -> list[OpenAlert]:
        return [each for view in self.whole() if view.broker == broker for each in view.alerts]

    def partition(self, topic: str) -> View | None:
        return next((view for view in self.found.views("c") if view.topic == topic), None)

    def adding(self) -> AddingView | None:
        view = self.partition("big")
        return view.adding_progress[0] if view is not None and view.adding_progress else None

    def throttles(self) -> RiskCount:
        return self.risk("leftover_throttle")

    def risk(self, kind: Kind) -> RiskCount:
        return list_risks([*self.found.views("c"), *self.whole()])[KINDS.index(kind)]

    def close(self) -> None:
        self._passes.close()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    directories = {"log.dirs": f"{folder}/data-3,{folder}/more-3"}
    with LocalCluster(folder, broker_overrides={3: directories}) as cluster:
        cluster.create_topic("t", {n: [3, 1] for n in range(4)})
        cluster.create_topic("big", {0: [1, 2]}, {"min.insync.replicas": "1"})
        yield cluster


@pytest.fixture
def watch(brokers: LocalCluster) -> Iterator[Watch]:
    made = Watch(brokers)
    yield made
    made.close()


def configure(
    brokers: LocalCluster, kind: str, name: str, values: dict[str, str] | dict[str, None]
) -> None:
    """Sets dynamic configurations; None removes one."""
    changes = {key: ("DELETE", None) if v is None else ("SET", v) for key, v in values.items()}
    resource = ConfigResource(ConfigResourceType[kind], name, changes)
    brokers.administer(
        # kafka-python takes a throttle for unknown: the broker does not list one that is not set.
        lambda admin: admin.alter_configs([resource], raise_on_unknown=False),
        f"configure {name}",
    )


def test_a_reassignment_has_an_end_that_comes_true(brokers: LocalCluster, watch: Watch) -> None:
    with producer_of(brokers) as producer:
        for sent in [producer.send("big", RECORD) for _ in range(RECORDS)]:
            sent.get(30)
    for broker in (1, 2, 3):
        configure(brokers, "BROKER", str(broker), dict.fromkeys(RATES, str(RATE)))
    configure(brokers, "TOPIC", "big", {LISTS[0]: "0:1,0:2", LISTS[1]: "0:3"})
    watch.until(lambda: watch.throttles().found == 4)
    assert watch.throttles()[1:] == (1, [1, 2, 3], 0)
    brokers.administer(
        lambda admin: admin.alter_partition_reassignments({TopicPartition("big", 0): [1, 3]}),
        "reassign",
    )
    watch.until(lambda: (each := watch.adding()) is not None and each.latest_ms is not None)
    seen, began = watch.adding(), time.monotonic()
    assert seen is not None
    assert seen.earliest_ms is not None
    assert seen.latest_ms is not None
    assert 0 < (seen.remaining_records or 0) < RECORDS
    assert watch.throttles()[1:] == (0, [], 0), "a throttle in use is not left behind"
    watch.until(lambda: watch.adding() is None, 120.0)
    took_ms = (time.monotonic() - began) * 1000
    print(f"estimate {seen}; it took {took_ms:.0f} ms")
    # The first fetches go beyond the throttle, and the end is seen a pass later.
    assert seen.earliest_ms * 0.6 <= took_ms <= seen.latest_ms * 1.4 + 3_000
    watch.until(lambda: watch.throttles().found == 4)
    for broker in (1, 2, 3):
        configure(brokers, "BROKER", str(broker), dict.fromkeys(RATES))
    configure(brokers, "TOPIC", "big", dict.fromkeys(LISTS))
    watch.until(lambda: watch.throttles().found == 0)


def test_a_cordoned_directory_is_shown_and_is_no_alert(brokers: LocalCluster, watch: Watch) -> None:
    def cordoned() -> list[bool | None]:
        views = [v.log_directories or [] for v in watch.whole() if v.broker == 3]
        return [directory.cordoned for directories in views for directory in directories]

    watch.until(lambda: cordoned() == [False, False])
    configure(brokers, "BROKER", "3", {"cordoned.log.dirs": f"{brokers.directory}/more-3"})
    watch.until(lambda: cordoned() == [False, True])
    assert watch.alerts(3) == []
    configure(brokers, "BROKER", "3", {"cordoned.log.dirs": None})
    watch.until(lambda: cordoned() == [False, False])


def test_eligible_leader_replicas_that_are_off_are_risky(
    brokers: LocalCluster, watch: Watch
) -> None:
    watch.until(lambda: watch.risk("elr_off")[1:] == (0, [], 0))
    feature = "eligible.leader.replicas.version"
    brokers.administer(
        lambda admin: admin.update_features({feature: ("SAFE_DOWNGRADE", 0)}), "turn ELR off"
    )
    watch.until(lambda: watch.risk("elr_off")[1:] == (0, [1, 2, 3], 0))
    brokers.administer(lambda admin: admin.update_features({feature: 1}), "turn ELR on")
    watch.until(lambda: watch.risk("elr_off")[1:] == (0, [], 0))


def test_a_directory_that_fails_is_an_alert_until_it_is_back(
    brokers: LocalCluster, watch: Watch
) -> None:
    failing, away = brokers.directory / "more-3", Path(f"{brokers.directory}/away")
    watch.until(lambda: all(v.log_directories for v in watch.whole() if v.broker is not None))
    assert watch.alerts(3) == []
    failing.rename(away)
    seconds = watch.until(lambda: bool(watch.alerts(3)))
    (alert,) = watch.alerts(3)
    print(f"after {seconds:.1f} s: {alert.annotations['description']}")
    assert alert.labels["alertname"] == "KafkaLogDirOffline"
    assert alert.labels["severity"] == "warning"
    assert f"1 of its 2 log directories: {failing}" in alert.annotations["description"]
    away.rename(failing)
    # The broker uses the directory again only after a restart.
    watch.until(lambda: "KAFKA_STORAGE_ERROR" in str(watch.alerts(3)))
    brokers.stop_broker(3)
    brokers.start_broker(3)
    watch.until(lambda: not any("LogDir" in str(each.labels) for each in watch.alerts(3)))

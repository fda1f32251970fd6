"""200 changes and more, two failovers of the controllers, snapshots: equal to Kafka's own dump."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from kafka import TopicPartition

from tests.cluster.metadata_truth import (
    Following,
    compare_records,
    expected_states,
    following,
    newest,
    removed_topics,
    reported_states,
)
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.sources.metadata_log.folder import FOLDER, MetadataFolder
from tidemark.collect.sources.metadata_log.tail import MetadataLogTail
from tidemark.core.errors import ClusterError
from tidemark.core.events import BrokerState, MetadataChange
from tidemark.core.records import Alert
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark.settings import Cluster, Collect
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

OVERRIDES = {
    "replica.lag.time.max.ms": "30000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "metadata.log.max.record.bytes.between.snapshots": "6000",
    "metadata.log.segment.ms": "2000",
}
# The controllers drop what a snapshot covers; the brokers keep every segment.
SHORT = {"metadata.max.retention.bytes": "10000", "metadata.max.retention.ms": "2000"}


def again(act: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What `act` returns once the controllers have elected one of them."""
    answers: list[Any] = []

    def is_answered() -> bool:
        with contextlib.suppress(ClusterError):
            answers.append(act())
        return bool(answers)

    wait_until(is_answered, seconds, "the controllers have elected one of them")
    return answers[0]


def active_controller(brokers: LocalCluster) -> int:
    found = wait_until(brokers.active_controller, 60.0, "the controllers have elected one of them")
    assert found is not None
    return found


def create(brokers: LocalCluster, name: str, partitions: int = 18) -> None:
    replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    again(lambda: brokers.create_topic(name, {p: replicas[p % 3] for p in range(partitions)}))


def reassign(brokers: LocalCluster, topic: str, partitions: int) -> None:
    wanted = {TopicPartition(topic, p): [3, 2, 1] for p in range(partitions)}
    again(
        lambda: brokers.administer(
            lambda admin: admin.alter_partition_reassignments(wanted), "reassign"
        )
    )


def whole(brokers: LocalCluster, seen: Following, topics: list[str]) -> None:
    seen.until(lambda: brokers.is_whole(topics))


def test_the_changes_are_those_of_kafkas_dump_through_failovers() -> None:
    by_node = dict.fromkeys((100, 101, 102), SHORT)
    with LocalCluster(overrides=OVERRIDES, broker_overrides=by_node, controllers=3) as brokers:
        with following(brokers) as seen:
            topics = ["a", "b"]
            for name in topics:
                create(brokers, name)
            brokers.kill_broker(3)
            seen.until(lambda: any(e.cause == "fenced" for e in seen.changes()))
            brokers.start_broker(3)
            whole(brokers, seen, topics)

            first = active_controller(brokers)
            brokers.kill_broker(first)
            create(brokers, "c")
            reassign(brokers, "a", 6)
            brokers.start_broker(first)
            brokers.stop_broker(2)
            seen.until(lambda: any(e.cause == "controlled_shutdown" for e in seen.changes()))
            brokers.start_broker(2)
            whole(brokers, seen, [*topics, "c"])

            second = active_controller(brokers)
            assert second != first
            brokers.stop_broker(second)
            again(lambda: brokers.elect_preferred_leaders({"b": range(18), "c": range(18)}))
            create(brokers, "d")
            again(lambda: brokers.administer(lambda admin: admin.delete_topics(["a"]), "delete"))
            brokers.start_broker(second)
            whole(brokers, seen, ["b", "c", "d"])

            with following(brokers) as late:
                seen.until(lambda: seen.offset >= late.offset)
                end = min(seen.offset, late.offset)
                assert newest(late.events) == newest(seen.events)
        for node in (1, 2, 3, 100, 101, 102):
            brokers.stop_broker(node)
        folders = {n: brokers.directory / f"data-{n}" / FOLDER for n in (1, 100, 101, 102)}
        compared = {node: compare_records(folder) for node, folder in folders.items()}
        log = compared[1][1]
        assert min(log) <= 1, "the broker's folder has the whole log"
        expected = {offset: s for offset, s in expected_states(log).items() if offset <= end}
        reported = [found for found in reported_states(seen.events) if found[0] <= end]
        read = Inventory(Cluster(name="c"), 1)
        offline = reported_states(list(MetadataFolder(folders[1], print).read(read)))

    assert reported == sorted(expected.items()), "each change once, in order, with its state"
    assert [found for found in offline if found[0] <= end] == reported
    assert len(reported) >= 200
    assert removed_topics(log) == 1
    # The late reader began at a snapshot, which it downloaded from a controller.
    (begun, partitions), *_ = Counter(e.metadata_offset for e in late.changes()).most_common(1)
    assert begun > 0
    assert partitions > 1
    causes = Counter(e.cause for e in seen.events if isinstance(e, MetadataChange))
    print(f"changes {len(reported)}, causes {dict(causes)}, records compared", end=" ")
    print({node: count for node, (count, _) in compared.items()})
    assert {"created", "fenced", "controlled_shutdown", "leader", "reassignment"} <= set(causes)
    starts = [e for e in seen.events if isinstance(e, BrokerState) and e.broker == 3]
    assert len({e.incarnation for e in starts}) == 2


def test_recorded_causes_and_an_exact_unclean_election_reach_the_reducer() -> None:
    """Broker 2 leaves, broker 1 dies as the last in-sync replica, broker 2 is elected."""
    overrides = {**OVERRIDES, "unclean.leader.election.enable": "true"}
    reducer = LineReducer(Detection())
    lines: list[bytes] = []
    with LocalCluster(overrides=overrides) as brokers:
        brokers.create_topic("pair", {0: [1, 2]}, {"min.insync.replicas": "1"})
        # A broker that leads nothing stops without a record of its controlled shutdown.
        brokers.create_topic("wide", {p: [2, 1, 3] for p in range(4)})
        cluster = Cluster(
            name="c", bootstrap_servers=brokers.bootstrap_servers, controllers=brokers.controllers
        )
        tail = MetadataLogTail(cluster, lambda *_: None)
        tail.start()
        passes = PassRunner(cluster, Collect(collector="k"), 1, 1, [tail])

        def observe(until: Callable[[], bool], seconds: float = 60.0) -> None:
            async def work() -> None:
                deadline = time.monotonic() + seconds
                while not until():
                    assert time.monotonic() < deadline, (causes(), lines[-3:])
                    lines.extend(record.payload for record in await passes.run(set()))
                    await passes.loop.sleep(0.2)

            passes.loop.run(work)

        def alerts() -> list[Alert]:
            for number in range(seen[0], len(lines)):
                found.extend(reducer.records(Line(0, number + 1, lines[number]), "alerts"))
            seen[0] = len(lines)
            return [alert for alert in found if isinstance(alert, Alert)]

        found: list[Any] = []
        seen = [0]

        def causes() -> set[tuple[int, ShrinkCause, bool]]:
            alerts()
            shrinks = []
            for key in reducer._fold.keys("c/"):
                state = reducer._fold.partition(key)
                shrinks += state.shrinks if state is not None else []
            return {(shrink.broker, shrink.cause, shrink.recorded) for shrink in shrinks}

        observe(lambda: passes.number >= 5)
        brokers.stop_broker(2)
        observe(lambda: (2, ShrinkCause.CONTROLLED_SHUTDOWN, True) in causes())
        brokers.kill_broker(1)
        observe(lambda: (1, ShrinkCause.FENCING, True) in causes())
        brokers.start_broker(2)
        observe(lambda: any(_is_unclean(a) for a in alerts()))
        passes.close()
    (unclean,) = {a.id: a for a in alerts() if _is_unclean(a)}.values()
    print(unclean.labels["severity"], unclean.annotations["description"], sorted(causes()))
    assert unclean.labels["severity"] == "critical"
    assert "suspect" not in unclean.annotations["description"]
    # What samples showed first was confirmed by the record.
    assert {recorded for broker, _, recorded in causes() if broker == 2} == {True}


def _is_unclean(alert: Alert) -> bool:
    return alert.labels["alertname"] == "KafkaUncleanElection"

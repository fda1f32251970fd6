"""The loop of passes of one cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from tests.collect.fake_cluster import FakeCluster
from tidemark.collect.collector import Collector
from tidemark.collect.metrics import CollectMetrics
from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import Publisher
from tidemark.core.broker_outcome_texts import NOT_CHECKED
from tidemark.core.events import REFUSED
from tidemark.settings import Cluster, Collect, Settings
from tidemark_lab.brokers.wait import wait_until

pytestmark = pytest.mark.usefixtures("topic_t")


class Kept(Publisher):
    """A publisher that keeps what it gets."""

    def __init__(self) -> None:
        super().__init__(groups=1)
        self.passes: list[list[EventRecord]] = []
        self.on_put: Callable[[], None] = lambda: None

    def put(self, records: list[EventRecord]) -> None:
        self.passes.append(records)
        self.on_put()


def collector(brokers: FakeCluster, publisher: Kept, limit: int, **options: object) -> Collector:
    watched = Cluster(name="c", bootstrap_servers=[f"127.0.0.1:{brokers.brokers[0].port}"])
    settings = Settings(clusters=[watched], collect=Collect(collector="k", **options))  # type: ignore[arg-type]
    return Collector(watched, settings, publisher, CollectMetrics(), 1_000, limit)


def test_passes_leave_nothing_behind_in_the_future_of_the_stop(cluster: FakeCluster) -> None:
    running = collector(cluster, Kept(), limit=8, pass_seconds=0.01)
    before = len(running._stopped._callbacks)
    running.start()
    running.join(30.0)
    assert running.passes.number == 8
    assert len(running._stopped._callbacks) == before


def test_a_stop_ends_the_rest(cluster: FakeCluster) -> None:
    publisher = Kept()
    running = collector(cluster, publisher, limit=2, pass_seconds=600.0)
    publisher.on_put = running.stop
    running.start()
    running.join(30.0)
    assert not running.is_alive()
    assert running.passes.number == 1


def test_a_pass_follows_at_once_when_a_leader_of_a_fast_topic_goes_away(
    cluster: FakeCluster,
) -> None:
    """Another one follows, as after every contradiction. Then a rest has its full length."""
    publisher = Kept()
    options = {"pass_seconds": 600.0, "fast_high_watermark_topics": ["t"]}
    running = collector(cluster, publisher, limit=9, **options)

    def on_put() -> None:
        # From here on, the leader knows a higher epoch than the metadata.
        for broker in cluster.brokers:
            broker.logs["t", 0].leader_epoch = 1

    publisher.on_put = on_put
    running.start()
    wait_for(lambda: len(publisher.passes) == 3)
    running.passes.fast.take_answers()
    wait_for(lambda: running.passes.fast.take_answers()[1] >= 1)
    assert len(publisher.passes) == 3
    running.stop()
    running.join(30.0)
    assert not running.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    wait_until(condition, 30.0, "the collector is there")


def test_what_is_wrong_with_a_broker_is_logged_once_and_its_end(cluster: FakeCluster) -> None:
    cluster.brokers[2].host, publisher = "127.0.0.2", Kept()
    running = collector(cluster, publisher, limit=8, pass_seconds=0.01)

    def mend() -> None:
        if len(publisher.passes) == 4:
            cluster.brokers[2].host = "127.0.0.1"

    publisher.on_put = mend
    with capture_logs() as logs:
        running.start()
        running.join(30.0)
    found = [line for line in logs if line.get("subject") == "broker 3"]
    assert [(line["log_level"], line["event"]) for line in found] == [
        ("warning", "broker cannot be relied on"),
        ("info", "broker can be relied on"),
    ]
    assert found[0]["address"] == f"127.0.0.2:{cluster.brokers[2].port}"
    assert (found[0]["outcome"], found[0]["meaning"]) == (REFUSED, "no process listens on its port")
    unproven = [line for line in logs if line.get("outcome") == NOT_CHECKED]
    assert [(line["log_level"], line["subject"]) for line in unproven] == [
        ("info", "every broker that answers")
    ]

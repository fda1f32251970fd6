"""Several collectors with a share each observe what one collector of the whole cluster observes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

from tests.bench.bench_collect import replicas_of
from tests.collect.sharded import SharedCluster
from tests.collect.virtual_time import VirtualTime
from tidemark.collect.codecs.metadata_image import PartitionMetadata
from tidemark.core.records import Alert, ReplicaView, view_key

PARTITIONS = range(100)
WHOLE = [(0, 1)]
# Of the view of a cluster or broker: that of the collector whose turn it was.
OF_THE_COLLECTOR = {"collector"}

Made = Callable[[Sequence[tuple[int, int]]], SharedCluster]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    passing = VirtualTime(monkeypatch)
    start = passing.now
    with ExitStack() as stack:

        def made(shares: Sequence[tuple[int, int]]) -> SharedCluster:
            passing.now = start
            cluster = SharedCluster(passing, shares)
            stack.callback(cluster.close)
            return cluster

        yield made


def shares(count: int) -> list[tuple[int, int]]:
    return [(shard, count) for shard in range(count)]


def level(_: int, __: int) -> int:
    return 1_000


def lagging(broker: int, number: int) -> int:
    """Broker 2 is behind on some partitions that it follows."""
    return 500 if broker == 2 and number % 10 == 0 and replicas_of(0, number)[0] != 2 else 1_000


def metadata(number: int, leader: int, epoch: int, *in_sync: int) -> PartitionMetadata:
    error = 0 if leader >= 0 else 5
    return PartitionMetadata(leader, epoch, replicas_of(0, number), in_sync, error)


def play(cluster: SharedCluster) -> None:
    """A lag, a smaller in-sync set, a partition without leader; then broker 3 is away and back."""
    assert cluster.run(8, level) == []
    cluster.changed = {7: metadata(7, -1, 1), 9: metadata(9, 1, 0, 1, 3)}
    cluster.run(12, lagging)
    led_by_others = [number for number in PARTITIONS if number % 3 != 2 and number != 7]
    cluster.changed = {
        7: metadata(7, -1, 1),
        **{number: metadata(number, 1 + number % 3, 0, 1, 2) for number in led_by_others},
    }
    cluster.stopped_brokers = {3}
    cluster.run(15, level)
    cluster.changed, cluster.stopped_brokers = {7: metadata(7, -1, 1)}, set()
    cluster.run(20, level)


def transitions(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    found = [msgspec.to_builtins(alert) for alert in alerts]
    return sorted(found, key=lambda alert: (alert["at"], alert["id"]))


def shown(cluster: SharedCluster) -> dict[str, dict[str, Any]]:
    return {
        key: {
            name: value
            for name, value in msgspec.to_builtins(view).items()
            if name not in OF_THE_COLLECTOR
        }
        for key, view in cluster.views.items()
    }


def key(number: int) -> str:
    return view_key("c", "topic-0", number, None)


@pytest.mark.parametrize("count", [2, 3])
def test_views_and_alerts_are_those_of_one_collector(make: Made, count: int) -> None:
    whole, shared = make(WHOLE), make(shares(count))
    play(whole)
    play(shared)
    names = {alert.labels["alertname"] for alert in whole.alerts}
    assert names >= {
        *("KafkaFollowerLag", "KafkaOffline", "KafkaUnderReplicated", "KafkaBrokerDown"),
    }
    assert {alert.state for alert in whole.alerts} >= {"firing", "resolved"}
    assert "KafkaCollectorConflict" not in names
    assert transitions(shared.alerts) == transitions(whole.alerts)
    assert shown(shared) == shown(whole)
    assert set(map(key, PARTITIONS)) < set(shared.views)


def test_each_partition_is_observed_by_exactly_one_collector(make: Made) -> None:
    shared = make(shares(3))
    play(shared)
    assert shared.observers == {
        number: {member.name} for member in shared.members for number in member.partitions
    }
    assert set(shared.observers) == set(PARTITIONS)
    assert all(len(member.partitions) > 20 for member in shared.members)


def test_collectors_with_the_same_share_are_in_conflict(make: Made) -> None:
    """That the alert is absent above says something."""
    shared = make([(0, 1), (0, 1)])
    assert {a.labels["alertname"] for a in shared.run(30, level)} == {"KafkaCollectorConflict"}


@pytest.mark.parametrize("how", ["stopped", "cut_off"])
def test_a_share_that_is_not_seen_is_unknown_and_no_other_is(make: Made, how: str) -> None:
    """No alert of it resolves, and no view of its partitions claims to be of now."""
    whole, shared = make(WHOLE), make(shares(3))
    for cluster in (whole, shared):
        cluster.run(8, level)
        cluster.changed = {number: metadata(number, 1, 0, 1, 3) for number in range(0, 100, 3)}
        cluster.run(25, level)
    silent, before = shared.members[1], dict(shared.views)
    assert any(before[key(number)].alerts for number in silent.partitions)
    getattr(shared, how).add(silent.name)
    assert whole.run(120, level) == []
    (gap,) = shared.run(120, level)
    assert (gap.labels["alertname"], gap.state) == ("KafkaCollectorGap", "firing")
    assert gap.evidence["shares"] == ["1/3"]
    assert gap.evidence["collectors"]["1/3"]["collector"] == silent.name
    expected, found = shown(whole), shown(shared)
    for number in set(PARTITIONS) - silent.partitions:
        assert found[key(number)] == expected[key(number)]
    for number in silent.partitions:
        now, then = shared.views[key(number)], before[key(number)]
        assert {a.fingerprint for a in now.alerts} >= {a.fingerprint for a in then.alerts}
        assert now.at == then.at or now.missed_passes or all(map(is_unknown, now.replicas))


def is_unknown(replica: ReplicaView) -> bool:
    return replica.error == "timed_out" and replica.lag_ms is None and replica.lag_records is None


def test_the_share_of_a_collector_that_returns_is_seen_again(make: Made) -> None:
    shared = make(shares(3))
    shared.run(8, level)
    shared.stopped.add(shared.members[1].name)
    assert [a.state for a in shared.run(120, level)] == ["firing"]
    shared.stopped.clear()
    assert [a.state for a in shared.run(20, level)] == ["resolved"]


def test_a_share_without_a_collector_is_not_seen(make: Made) -> None:
    shared = make(shares(3)[:2])
    (gap,) = shared.run(120, level)
    assert gap.evidence["shares"] == ["2/3"]
    assert gap.evidence["collectors"] == {}

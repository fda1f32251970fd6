from __future__ import annotations

from tests.collect.fake_cluster import FakeCluster
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.publish.pack import Packer
from tidemark.collect.sources.source import SourceEvent, add_source_events
from tidemark.core.codec import decode_batch
from tidemark.core.events import BrokerState, Checkpoint, Pass
from tidemark.settings import Cluster

GROUPS = 4


class ListedEvents:
    """A source with these events."""

    def __init__(self, *events: SourceEvent) -> None:
        self.events = list(events)

    def take(self) -> list[SourceEvent]:
        taken, self.events = self.events, []
        return taken

    def close(self) -> None:
        pass


def checkpoint(topic: str, partition: int = 0) -> Checkpoint:
    return Checkpoint(topic=topic, partition=partition, observed_at=1.0, broker=1)


def packed(source: ListedEvents, **options: object) -> list[object]:
    cluster = Cluster(name="east", topics_deny=["hidden"], **options)  # type: ignore[arg-type]
    packer = Packer("east", "test", 1, 1, GROUPS)
    inventory = Inventory(cluster, GROUPS)
    add_source_events([source], inventory, packer)
    end = Pass(number=1, started_at=1.0, ended_at=1.0, monotonic=1.0, period_ms=1000.0)
    records = [decode_batch(record.payload) for record in packer.finish(end, [])]
    return [event for record in records for event in record.events if not isinstance(event, Pass)]


def test_events_of_partitions_that_are_not_watched_are_left_out() -> None:
    source = ListedEvents(checkpoint("t"), checkpoint("hidden"))
    assert packed(source) == [checkpoint("t")]
    everything = [checkpoint("t", number) for number in range(40)]
    halves = [packed(ListedEvents(*everything), shard=shard, shards=2) for shard in (0, 1)]
    assert all(halves)
    assert sorted(e.partition for half in halves for e in half) == list(range(40))  # type: ignore[attr-defined]


def test_a_broker_event_reaches_every_group() -> None:
    fenced = BrokerState(broker=1, observed_at=1.0, fenced=True)
    assert packed(ListedEvents(fenced)) == [fenced] * GROUPS


def test_a_pass_takes_from_its_sources_before_it_observes(cluster: FakeCluster) -> None:
    cluster.topic("t", 7)
    cluster.passes._sources = [ListedEvents(checkpoint("t"))]
    kinds = [type(event).__name__ for event in cluster.run() if event.__class__ is not Pass]
    assert kinds.index("Checkpoint") < kinds.index("Observation")


def test_events_about_brokers_are_in_the_order_of_their_times() -> None:
    """The reducer ignores an event that is older than the newest one of its broker."""
    late, early = (BrokerState(broker=1, observed_at=at, fenced=at > 1.5) for at in (2.0, 1.0))
    between = BrokerState(broker=1, observed_at=1.5, is_voter=True)
    packer = Packer("east", "test", 1, 1, 1)
    sources = [ListedEvents(late), ListedEvents(early)]
    add_source_events(sources, Inventory(Cluster(name="east"), 1), packer, [between])
    (record,) = packer.take()
    assert decode_batch(record.payload).events == [early, between, late]
    assert packer.take() == []

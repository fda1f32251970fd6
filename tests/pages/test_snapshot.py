from __future__ import annotations

from tests.export.make import NOW, alert, cluster_view, view
from tests.pages.make import key_of, opened, table, views
from tidemark.assess.safe_to_stop import EFFECTS, stop_impacts
from tidemark.core.records import View
from tidemark_exporters.pages.snapshot import TableSnapshot


def test_stop_impacts_are_those_of_the_pure_function() -> None:
    snapshot = TableSnapshot(table(), NOW + 1, 30)
    of_east = [each for each in views() if each.kafka_cluster == "east"]
    brokers = snapshot.brokers_of("east")
    impacts = {broker: stop_impacts(of_east, broker) for broker in brokers}
    assert {broker: snapshot.stop_impacts("east", broker) for broker in brokers} == impacts
    assert {broker: snapshot.stop_counts("east", broker) for broker in brokers} == {
        broker: {effect: sum(i.effect == effect for i in found) for effect in EFFECTS}
        for broker, found in impacts.items()
    }
    assert any(impacts.values())


def test_a_stop_is_not_judged_from_old_or_incomplete_views() -> None:
    assert TableSnapshot(table(), NOW + 1, 30).can_judge("east")
    assert not TableSnapshot(table(), NOW + 31, 30).can_judge("east")
    assert not TableSnapshot(table(), NOW + 1, 30, caught_up=False).can_judge("east")
    without_partitions = table([cluster_view(broker_outcomes={"1": "refused"})])
    assert not TableSnapshot(without_partitions, NOW + 1, 30).can_judge("east")


def test_a_cluster_has_the_states_of_its_brokers_alerts() -> None:
    down = View(
        scope="broker",
        kafka_cluster="east",
        broker=4,
        at=NOW,
        pass_number=7,
        collector="c1",
        alerts=[opened(alert("KafkaBrokerDown", severity="warning"))],
    )
    held = [view(), view(kafka_cluster="west"), cluster_view(), cluster_view("west"), down]
    snapshot = TableSnapshot(table(held), NOW, 30)
    states = [snapshot.states_of_cluster(name) for name in ("east", "west")]
    assert [[state.name for state in found] for found in states] == [["warning"], ["healthy"]]


def test_a_snapshot_does_not_change_with_the_table() -> None:
    filled = table([view()])
    snapshot = TableSnapshot(filled, NOW, 30)
    filled.apply(key_of(view()), None)
    filled.apply("east/new/0", view("new"))
    assert [(each.topic, each.partition) for each in snapshot.partitions] == [("orders", 0)]
    assert snapshot.topic_aggregate("east", "orders").partitions == 1
    assert snapshot.topic_aggregate("east", "new").partitions == 0


def test_without_a_number_in_the_key_the_view_has_it() -> None:
    filled = table([])
    filled.apply("\u0663", view("orders", 5))
    (partition,) = TableSnapshot(filled, NOW, 30).partitions
    assert (partition.cluster, partition.topic, partition.partition) == ("east", "orders", 5)

"""Aggregates of a table that changes equal those of a fresh table; changes are counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.export.make import NOW, view
from tidemark.assess.safe_to_stop import EFFECTS, stop_impacts
from tidemark.core.records import ReplicaView, View, encode_record
from tidemark_exporters.export.aggregates import BrokerAggregate
from tidemark_exporters.export.table import Table
from tidemark_exporters.export.values import BROKER_VALUES, CLUSTER_VALUES

BROKERS = st.integers(1, 4)


@st.composite
def healthy_view(draw: st.DrawFn) -> View:
    """A view without any doubt: the usual state of most partitions."""
    assigned = draw(st.sampled_from([[1, 2], [2, 1], [1, 2, 3]]))
    lags: list[Any] = [
        draw(st.sampled_from([None, (0, 0.0), (3, 5.5), (4, None)])) for _ in assigned
    ]
    return view(
        draw(st.sampled_from(["orders", "payments"])),
        0,
        assigned=assigned,
        in_sync_replicas=assigned,
        leader=draw(st.sampled_from(assigned)),
        effective_min_in_sync_replicas=draw(st.sampled_from([None, 1, 2])),
        replicas=[
            ReplicaView(
                broker=b,
                log_end_offset=100,
                high_watermark=100,
                lag_records=lag and lag[0],
                lag_ms=lag and lag[1],
            )
            for b, lag in zip(assigned, lags, strict=True)
        ],
        uncommitted_records=draw(st.sampled_from([None, 0, 5])),
    )


@st.composite
def some_view(draw: st.DrawFn) -> View:
    assigned = draw(st.lists(BROKERS, min_size=1, max_size=4, unique=True))
    in_sync = draw(st.none() | st.lists(st.sampled_from(assigned), unique=True))
    leader = draw(st.none() | st.sampled_from(assigned))
    replicas = [
        ReplicaView(
            broker=broker,
            log_end_offset=draw(st.sampled_from([None, 90, 100])),
            high_watermark=draw(st.sampled_from([None, 90, 100])),
            leader_epoch=draw(st.sampled_from([None, 3, 4])),
            lag_records=draw(st.sampled_from([None, 0, 0, 7, 300])),
            lag_ms=draw(st.sampled_from([None, 0.0, 0.0, 12.5, 60_000.0])),
            error=draw(st.sampled_from([None, None, None, "refused"])),
        )
        for broker in assigned
    ]
    return view(
        draw(st.sampled_from(["orders", "payments"])),
        draw(st.integers(0, 2)),
        kafka_cluster=draw(st.sampled_from(["east", "west"])),
        assigned=assigned,
        in_sync_replicas=in_sync,
        leader=leader,
        leaderless=leader is None,
        replicas=replicas,
        effective_min_in_sync_replicas=draw(st.sampled_from([None, 1, 2])),
        eligible_leader_replicas=draw(
            st.none() | st.lists(st.sampled_from(assigned), unique=True, max_size=1)
        ),
        missed_passes=draw(st.sampled_from([0, 0, 0, 2])),
        uncommitted_records=draw(st.sampled_from([None, 0, 5])),
        uncommitted_ms=draw(st.sampled_from([None, 0.0, 40.0])),
    )


def key_of(some: View) -> str:
    return f"{some.kafka_cluster}/{some.topic}/{some.partition}"


def figures(aggregate: Any) -> dict[str, Any]:
    if isinstance(aggregate, BrokerAggregate):
        return {
            **{name: of(aggregate) for name, of in BROKER_VALUES.items()},
            **{str(effect): count for effect, count in aggregate.effects.items()},
        }
    return {
        **{name: of(aggregate) for name, of in CLUSTER_VALUES.items()},
        "stop_unknown": aggregate.stop_unknown,
    }


def sums(table: Table) -> dict[object, dict[str, Any]]:
    """By cluster, topic and broker; a cluster without partitions is left out."""
    aggregates = [
        *table.cluster_aggregates.items(),
        *table.topic_aggregates.items(),
        *table.broker_aggregates.items(),
    ]
    found: dict[object, dict[str, Any]] = {key: figures(aggregate) for key, aggregate in aggregates}
    return {key: values for key, values in found.items() if values.get("tidemark_partitions") != 0}


def filled(views: Iterable[View]) -> Table:
    table = Table()
    for each in views:
        table.apply(key_of(each), each)
    return table


@settings(max_examples=40)
@given(st.lists(st.tuples(some_view() | healthy_view(), st.booleans()), max_size=25))
def test_aggregates_depend_only_on_the_newest_views(steps: list[tuple[View, bool]]) -> None:
    table, newest = Table(), dict[str, View]()
    for some, gone in steps:
        key = key_of(some)
        if gone:
            table.apply(key, None)
            newest.pop(key, None)
        else:
            table.apply(key, some, encode_record(some))
            newest[key] = some
    fresh = filled(newest.values())
    assert sums(table) == sums(fresh)
    assert table.unhealthy.keys() == fresh.unhealthy.keys()
    assert table.replicas == sum(len(each.replicas) for each in newest.values())
    assert {key: row.view for key, row in table.partitions.items()} == newest


@settings(max_examples=40)
@given(st.lists(some_view() | healthy_view(), max_size=12, unique_by=key_of))
def test_effects_of_a_stop_equal_those_of_the_assessment(views: list[View]) -> None:
    table = filled(views)
    for cluster in ("east", "west"):
        brokers = {broker for name, broker in table.broker_aggregates if name == cluster}
        for broker in (each for each in brokers if isinstance(each, int)):
            impacts = stop_impacts([v for v in views if v.kafka_cluster == cluster], broker)
            effects = [impact.effect for impact in impacts]
            ours = table.broker_aggregates[cluster, broker].effects
            stop_unknown = table.cluster_aggregates[cluster].stop_unknown
            assert {
                effect: ours[effect] + (stop_unknown if effect == "unknown" else 0)
                for effect in EFFECTS
            } == {effect: effects.count(effect) for effect in EFFECTS}


def test_changes_of_the_leader_are_counted_once_the_table_is_live() -> None:
    table = Table()
    table.apply("k", view(leader=1))
    table.apply("k", view(leader=2))
    table.live = True
    for leader in (2, None, 2, None, 3, 3, 1):
        table.apply("k", view(leader=leader, leaderless=leader is None))
    assert table.elections == {"east": 2}


def test_expansions_are_counted_from_new_history_only() -> None:
    table = Table()
    table.live = True
    old: list[tuple[float, list[int]]] = [(NOW, [1, 2, 3]), (NOW + 1, [1]), (NOW + 2, [1, 2])]
    table.apply("k", view(isr_history=old))
    assert not table.expands
    for _ in range(2):
        table.apply(
            "k", view(isr_history=[*old, (NOW + 3, [1]), (NOW + 4, [1, 2]), (NOW + 5, [1, 2, 3])])
        )
    assert table.expands == {("east", 2): 1, ("east", 3): 1}


def test_only_retained_rows_hold_a_decoded_view() -> None:
    table = Table()
    table.apply("k", view(), encode_record(view()))
    row = table.partitions["k"]
    assert row.view is not row.view
    row.retain()
    assert row.view is row.view
    table.apply("k", view(leader_epoch=9), encode_record(view(leader_epoch=9)))
    assert (
        table.partitions["k"].retained and table.partitions["k"].view is table.partitions["k"].view
    )
    table.partitions["k"].release()
    assert table.partitions["k"].view is not table.partitions["k"].view


def test_a_follower_at_another_place_in_the_list_keeps_its_lag() -> None:
    table = Table()
    replicas = [ReplicaView(broker=b, lag_records=b * 10, lag_ms=float(b)) for b in (2, 3)]
    table.apply("k", view(replicas=replicas))
    table.apply("k", view(replicas=replicas[1:], assigned=[1, 3]))
    assert table.broker_aggregates["east", 3].lag_records == 30
    assert ("east", 2) not in table.broker_aggregates

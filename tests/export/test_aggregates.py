"""Aggregates of a table that changes equal those of a fresh table; changes are counted."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.assess.thresholds import LAG_THRESHOLD
from tests.export.make import NOW, key_of, table_of, view
from tidemark.assess.safe_to_stop import EFFECTS, stop_impacts
from tidemark.core.records import AddingView, CheckpointView, ReplicaView, View, encode_record
from tidemark_exporters.export.aggregates import BrokerAggregate
from tidemark_exporters.export.metric_values import BROKER_VALUES, CLUSTER_VALUES
from tidemark_exporters.export.table import Table

BROKERS = st.integers(1, 4)
REASSIGNMENTS: list[dict[str, Any]] = [
    {},
    {"removing": [1]},
    {"adding": [2], "adding_progress": [AddingView(broker=2)]},
    {
        "adding": [2],
        "adding_progress": [AddingView(broker=2, remaining_records=5, latest_ms=9.0)],
    },
]


CHECKPOINTS = st.sampled_from(
    [
        None,
        *(
            CheckpointView(read_at=NOW, behind_records=behind, unflushed_records=unflushed)
            for behind, unflushed in ((None, None), (0, 40), (5, None), (7, 0))
        ),
    ]
)


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
                checkpoint=draw(CHECKPOINTS),
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
            checkpoint=draw(CHECKPOINTS),
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
        unclean_leader_election=draw(st.sampled_from([None, False, True])),
        throttled_replicas=draw(st.sampled_from([None, [], [1]])),
        in_sync_on_one_rack=draw(st.sampled_from([None, False, True])),
        **draw(st.sampled_from(REASSIGNMENTS)),
    )


def figures(aggregate: Any) -> dict[str, Any]:
    if isinstance(aggregate, BrokerAggregate):
        return {
            **{name: of(aggregate) for name, of in BROKER_VALUES.items()},
            **{str(effect): count for effect, count in aggregate.effects.items()},
        }
    return {
        **{name: of(aggregate) for name, of in CLUSTER_VALUES.items()},
        **aggregate.counts,
        "risks": +aggregate.risks,
        "risks_unknown": +aggregate.risks_unknown,
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


@settings(max_examples=40)
@given(st.lists(st.tuples(some_view() | healthy_view(), st.booleans()), max_size=25))
def test_aggregates_depend_only_on_the_newest_views(steps: list[tuple[View, bool]]) -> None:
    """The newest view of a key counts, and none after a tombstone, also of an unknown key."""
    table, newest = Table(), dict[str, View]()
    for some, gone in steps:
        key = key_of(some)
        if gone:
            table.apply(key, None)
            newest.pop(key, None)
        else:
            table.apply(key, some, encode_record(some))
            newest[key] = some
    fresh = table_of(*newest.values())
    assert sums(table) == sums(fresh)
    assert table.unhealthy.keys() == fresh.unhealthy.keys()
    assert table.replicas == sum(len(each.replicas) for each in newest.values())
    assert {key: row.view for key, row in table.partitions.items()} == newest


@settings(max_examples=40)
@given(st.lists(some_view() | healthy_view(), max_size=12, unique_by=key_of))
def test_effects_of_a_stop_equal_those_of_the_assessment(views: list[View]) -> None:
    table = table_of(*views)
    for cluster in ("east", "west"):
        brokers = {broker for name, broker in table.broker_aggregates if name == cluster}
        for broker in (each for each in brokers if isinstance(each, int)):
            impacts = stop_impacts(
                [v for v in views if v.kafka_cluster == cluster], LAG_THRESHOLD, broker
            )
            effects = [impact.effect for impact in impacts]
            ours = table.broker_aggregates[cluster, broker].effects
            stop_unknown = table.cluster_aggregates[cluster].counts["stop_unknown"]
            assert {
                effect: ours[effect] + (stop_unknown if effect == "unknown" else 0)
                for effect in EFFECTS
            } == {effect: effects.count(effect) for effect in EFFECTS}

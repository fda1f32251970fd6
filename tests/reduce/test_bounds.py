"""Everything that grows stops growing: each list of the state is driven past its bound."""

from __future__ import annotations

from tests.scenarios.words import ORIGIN
from tests.scenarios.world import World
from tidemark.core import cluster as cluster_module
from tidemark.core.cluster import MAX_BROKERS, MAX_COLLECTORS, MAX_PURGATORY, ClusterState
from tidemark.core.events import MAX_LINEAGE, MAX_REPLICAS, BrokerState, Pass
from tidemark.core.leader_epochs import MAX_COMMITTED
from tidemark.core.offset_history import SIZE
from tidemark.core.partition import (
    MAX_ALERTS,
    MAX_EVENT_ALERTS,
    MAX_ISR_HISTORY,
    MAX_SHRINKS,
    PartitionState,
)
from tidemark.core.sparse_state import MAX_ANOMALIES, MAX_EPOCH_STARTS


def hostile() -> World:
    """A partition that changes its mind about everything, for longer than any list holds."""
    world = World()
    world.run("partition orders-0 replicas=1,2,3 min_isr=2")
    for epoch in range(1, 61):
        leader = 1 + epoch % 3
        world.run(
            f"pass 1 leader={leader} epoch={epoch} isr={leader} leo={1000 - epoch} hw={1000 - epoch} lineage=0:9,{epoch}:{1000 - epoch}"
        )
        world.run(
            f"pass 1 isr=1,2,3 leo={leader}:{2000 + epoch} hw={1000 - epoch} lso=3 lineage@{leader}=9:1,2:0 adding=3"
        )
        world.run(f"record leader={leader} epoch={epoch} isr=1,2,3 adding=3 recovering")
        world.run(f"checkpoint {leader} hw=9999 age=100")
        world.run(f"audit 1,2 offset={epoch} epoch=0")
    return world


def state_of(world: World) -> PartitionState:
    assert world.fold is not None
    state = world.fold.partition("main/orders/0")
    assert state is not None
    return state


def test_every_list_of_a_partition_has_its_bound() -> None:
    state = state_of(hostile())
    sparse = state.sparse
    assert sparse is not None
    assert len(state.committed) <= MAX_COMMITTED
    assert len(state.isr_history) == MAX_ISR_HISTORY
    assert len(state.shrinks) == MAX_SHRINKS
    assert len(state.offset_history) <= 2 * SIZE
    assert len(state.previous_offset_history) <= 2 * SIZE
    assert len(state.lineage or []) <= MAX_LINEAGE
    assert len(sparse.epoch_starts) == MAX_EPOCH_STARTS
    assert len(sparse.anomalies) <= MAX_ANOMALIES
    for held in (
        state.replicas,
        sparse.adding,
        sparse.checkpoints,
        sparse.divergences,
        sparse.short,
    ):
        assert len(held) <= MAX_REPLICAS
    assert len(state.alerts) <= MAX_ALERTS + MAX_EVENT_ALERTS
    assert sum(life.incident is not None for life in state.alerts) <= MAX_EVENT_ALERTS


def test_the_state_of_the_worst_partition_stays_small() -> None:
    world = hostile()
    assert world.fold is not None
    world.fold.close()
    (blob,) = world.fold.state.partitions.values()
    assert len(blob) < 64 * 1024


def test_every_list_of_a_cluster_has_its_bound() -> None:
    cluster = ClusterState()
    for number in range(MAX_COLLECTORS + 10):
        closing = Pass(
            number=1, started_at=ORIGIN, ended_at=ORIGIN + number, monotonic=0.0, period_ms=1000.0
        )
        cluster.tick(f"c{number}", 1, closing)
    assert len(cluster.collectors) == MAX_COLLECTORS
    assert "c0" not in cluster.collectors
    for broker in range(MAX_BROKERS + 10):
        cluster.note_node(BrokerState(broker=broker, observed_at=ORIGIN))
    assert len(cluster.nodes) == MAX_BROKERS
    for step in range(3 * MAX_PURGATORY):
        at = ORIGIN + step * cluster_module.PURGATORY_SECONDS
        cluster.note_node(BrokerState(broker=1, observed_at=at, produce_purgatory=step))
    assert len(cluster.nodes[1].purgatories) == MAX_PURGATORY


def test_a_topic_that_grows_is_watched_on() -> None:
    """New partitions of a known topic begin with no history, and neither raise nor inherit anything."""
    world = World()
    world.run("partition orders-0 replicas=1,2,3")
    world.run("pass 3 add=10")
    world.partition = 7
    assert world.run("pass 3 add=10") == []
    assert world.fold is not None
    assert world.fold.partition("main/orders/7") is not None
    assert world.fold.partition("main/orders/0") is not None

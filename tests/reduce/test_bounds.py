"""Every list of a partition's state has a bound, also when everything changes all the time."""

from __future__ import annotations

import pytest

from tests.scenarios.scenario import Scenario
from tidemark.core.events import MAX_LINEAGE, MAX_REPLICAS
from tidemark.core.leader_epochs import MAX_COMMITTED
from tidemark.core.offset_history import SIZE
from tidemark.core.partition import (
    MAX_ALERTS,
    MAX_EVENT_ALERTS,
    MAX_ISR_HISTORY,
    MAX_SHRINKS,
    encode_state,
)
from tidemark.core.sparse_state import MAX_ANOMALIES, MAX_EPOCH_STARTS


@pytest.fixture(scope="module")
def hostile() -> Scenario:
    """A partition that changes in every pass, more often than any list has entries."""
    scenario = Scenario()
    scenario.run("partition orders-0 replicas=1,2,3 min_isr=2")
    for epoch in range(1, 61):
        leader, end = 1 + epoch % 3, 1000 - epoch
        scenario.play(
            f"pass leader={leader} epoch={epoch} isr={leader} leo={end} hw={end} "
            f"lineage=0:9,{epoch}:{end}",
            f"pass isr=1,2,3 leo={leader}:{2000 + epoch} hw={end} lso=3 "
            f"lineage@{leader}=9:1,2:0 adding=3",
            f"record leader={leader} epoch={epoch} isr=1,2,3 adding=3 recovering",
            f"checkpoint {leader} hw=9999 age=100",
            f"audit 1,2 offset={epoch} epoch=0",
        )
    return scenario


def test_every_list_of_a_partition_has_its_bound(hostile: Scenario) -> None:
    state = hostile.state
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
    per_replica = (state.replicas, sparse.adding, sparse.checkpoints)
    for items in (*per_replica, sparse.divergences, sparse.behind_committed):
        assert len(items) <= MAX_REPLICAS
    assert len(state.alerts) <= MAX_ALERTS + MAX_EVENT_ALERTS
    assert sum(alert.is_event for alert in state.alerts) <= MAX_EVENT_ALERTS


def test_the_state_of_the_worst_partition_stays_small(hostile: Scenario) -> None:
    assert len(encode_state(hostile.state)) < 64 * 1024


def test_new_partitions_of_a_known_topic_start_without_history() -> None:
    scenario = Scenario()
    scenario.play("partition orders-0 replicas=1,2,3", "pass 3 add=10")
    first = scenario.key
    scenario.partition.number = 7
    assert scenario.run("pass 3 add=10") == []
    assert scenario.fold.keys("main/") == [first, scenario.key]
    assert scenario.state.isr_history[0].at == scenario.clock - 2.0

"""Which invariants of the search hold in a state of a scenario."""

from __future__ import annotations

from typing import Final

from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.replica_manager.model_state import to_model_state
from tidemark_lab.model.replica_manager.state import ClusterModel
from tidemark_lab.model.state import Constants

# TypeOk has the bounds of a search.
CHECKED: Final = tuple(name for name in INVARIANTS if name != "TypeOk")


def broken_invariants(cluster: ClusterModel) -> tuple[str, ...]:
    """The names of those that do not hold."""
    constants = Constants(len(cluster.brokers), min_isr=cluster.min_in_sync_replicas)
    state = to_model_state(cluster)
    return tuple(name for name in CHECKED if not INVARIANTS[name].holds(constants, state))

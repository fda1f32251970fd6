"""The controller's actions. Mirrors ControllerUpdateIsr, ControllerShrinkIsr and ControllerElectLeader of KafkaReplication.tla.

Every decision bumps the leader epoch and is sent to the replicas as a request that may come late or never.
"""

from __future__ import annotations

from tidemark.model.action import Successors, action
from tidemark.model.state import ClusterState, Constants, QuorumState, Replicas


@action("ControllerShrinkIsr", "replica")
def controller_shrink_isr(constants: Constants, state: ClusterState) -> Successors:
    """A broker fails or shuts down. A leader that is the last member stays in the set, and nobody leads."""
    quorum = state.quorum
    if quorum.leader_epoch >= constants.max_epoch:
        return
    for replica in constants.everyone:
        rest = tuple(member for member in quorum.isr if member != replica)
        if quorum.leader == replica:
            yield (replica,), _update_isr(state, None, rest or quorum.isr)
        elif replica in quorum.isr:
            yield (replica,), _update_isr(state, quorum.leader, rest)


@action("ControllerElectLeader", "replica")
def controller_elect_leader(constants: Constants, state: ClusterState) -> Successors:
    """Any member of the in-sync set may be made leader, whenever the controller likes."""
    quorum = state.quorum
    if quorum.leader_epoch >= constants.max_epoch:
        return
    for replica in quorum.isr:
        if replica != quorum.leader:
            yield (replica,), _update_isr(state, replica, quorum.isr)


@action("ControllerElectUncleanLeader", "replica")
def controller_elect_unclean_leader(constants: Constants, state: ClusterState) -> Successors:
    """Nobody leads and somebody outside the in-sync set is taken; it is then alone in the set."""
    quorum = state.quorum
    if (
        not constants.unclean_election
        or quorum.leader is not None
        or quorum.leader_epoch >= constants.max_epoch
    ):
        return
    for replica in constants.everyone:
        if replica not in quorum.isr:
            yield (replica,), _update_isr(state, replica, (replica,))


def _update_isr(state: ClusterState, leader: int | None, isr: Replicas) -> ClusterState:
    """ControllerUpdateIsr."""
    quorum = QuorumState(state.quorum.leader_epoch + 1, leader, isr)
    return ClusterState(
        state.logs,
        state.replicas,
        quorum,
        (*state.requests, quorum),
        state.next_record_id,
        state.committed,
        state.acked,
    )

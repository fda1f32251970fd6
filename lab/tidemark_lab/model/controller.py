"""The controller's actions before KRaft. Mirrors those of KafkaReplication.tla.

Every decision raises the leader epoch. It goes to the replicas as a request, which may arrive late
or never.
"""

from __future__ import annotations

from tidemark_lab.model.action import Successors, action
from tidemark_lab.model.state import Constants, ModelState, QuorumState, Replicas, with_decision


@action("ControllerShrinkIsr", "replica")
def controller_shrink_isr(constants: Constants, state: ModelState) -> Successors:
    """A broker fails or shuts down. The last member stays in the ISR, without a leader."""
    quorum = state.quorum
    if quorum.leader_epoch >= constants.max_epoch:
        return
    for replica in constants.all_replicas:
        rest = tuple(member for member in quorum.isr if member != replica)
        if quorum.leader == replica:
            yield (replica,), _update_isr(state, None, rest or quorum.isr)
        elif replica in quorum.isr:
            yield (replica,), _update_isr(state, quorum.leader, rest)


@action("ControllerElectLeader", "replica")
def controller_elect_leader(constants: Constants, state: ModelState) -> Successors:
    """Any member of the ISR can be elected at any time."""
    quorum = state.quorum
    if quorum.leader_epoch < constants.max_epoch:
        for replica in quorum.isr:
            if replica != quorum.leader:
                yield (replica,), _update_isr(state, replica, quorum.isr)


@action("ControllerElectUncleanLeader", "replica")
def controller_elect_unclean_leader(constants: Constants, state: ModelState) -> Successors:
    """Elects a replica outside the ISR, which becomes the whole ISR, while there is no leader."""
    quorum = state.quorum
    allowed = constants.unclean_election and quorum.leader_epoch < constants.max_epoch
    if allowed and quorum.leader is None:
        for replica in constants.all_replicas:
            if replica not in quorum.isr:
                yield (replica,), _update_isr(state, replica, (replica,))


def _update_isr(state: ModelState, leader: int | None, isr: Replicas) -> ModelState:
    """ControllerUpdateIsr."""
    return with_decision(state, QuorumState(state.quorum.leader_epoch + 1, leader, isr))

"""What the KRaft controller decides about a partition, and eligible leader replicas (KIP-966).

The controller writes every change of a partition into a log that each broker replays (`requests`).
The partition epoch counts the changes. The leader epoch changes only with the leader.

Mirrors PartitionChangeBuilder and ReplicationControlManager. KafkaReplication.tla has no actions
for them: names are as close as possible.

This state does not say which brokers are alive: any member can be fenced, and any replica can
return, at any time, as in KafkaReplication.tla. One decision fences one broker
(ReplicationControlManager.maybeFenceOneStaleBroker).
"""

from __future__ import annotations

from tidemark_lab.model.action import Arguments, Successors, action
from tidemark_lab.model.actions import with_lost_suffix
from tidemark_lab.model.state import (
    Constants,
    ModelReplica,
    ModelState,
    QuorumState,
    Replicas,
    with_decision,
)


def max_partition_epoch(constants: Constants) -> int:
    """Each leader epoch allows one change of the ISR besides its election."""
    return 2 * (constants.max_epoch + 1)


def eligible_leader_replicas(
    min_isr: int, before: Replicas, isr: Replicas, unclean: Replicas = ()
) -> Replicas:
    """The ELR after a change to `isr` (KIP-966).

    A replica that leaves an ISR which falls below min ISR still holds all committed records.
    `before` are the replicas that were in sync or eligible. `unclean` are brokers that had an
    unclean shutdown, so their disks may lack records. Mirrors
    PartitionChangeBuilder.maybePopulateTargetElr.
    """
    return () if len(isr) >= min_isr else tuple(sorted(set(before) - {*isr, *unclean}))


@action("ControllerShrinkIsr", "replica")
def controller_shrink_isr(constants: Constants, state: ModelState) -> Successors:
    """A broker is fenced or shuts down. If it led, there is no leader."""
    for replica in constants.all_replicas:
        if replica in state.quorum.isr:
            decision = _without(constants, state.quorum, replica, ())
            yield from _decide(constants, state, (replica,), decision)


@action("ControllerElectLeader", "replica")
def controller_elect_leader(constants: Constants, state: ModelState) -> Successors:
    """Elects a member of the ISR, or of the ELR if the ISR is empty."""
    quorum = state.quorum
    for replica in quorum.isr or quorum.elr:
        if replica != quorum.leader:
            elr = tuple(member for member in quorum.elr if member != replica)
            isr = quorum.isr or (replica,)
            decision = quorum._replace(leader=replica, isr=isr, elr=elr)
            yield from _decide(constants, state, (replica,), decision)


@action("ControllerElectLastKnownLeader", "replica")
def controller_elect_last_known_leader(constants: Constants, state: ModelState) -> Successors:
    """ISR and ELR are empty, and the replica that led last has returned.

    No unclean election needs to be allowed. Its disk may lack records. Mirrors
    PartitionChangeBuilder.canElectLastKnownLeader.
    """
    quorum = state.quorum
    replica = quorum.last_known_leader
    if replica is not None and not quorum.isr and not quorum.elr:
        decision = quorum._replace(leader=replica, isr=(replica,))
        yield from _decide(constants, state, (replica,), decision)


@action("ControllerElectUncleanLeader", "replica")
def controller_elect_unclean_leader(constants: Constants, state: ModelState) -> Successors:
    """There is no leader, and a replica that may lack records is elected. It is then the ISR."""
    quorum = state.quorum
    if constants.unclean_election and quorum.leader is None:
        for replica in constants.all_replicas:
            if replica not in quorum.isr and replica not in quorum.elr:
                decision = quorum._replace(leader=replica, isr=(replica,), elr=())
                yield from _decide(constants, state, (replica,), decision)


@action("ControllerAlterPartition", "leader")
def controller_alter_partition(constants: Constants, state: ModelState) -> Successors:
    """Grants a requested ISR if the leader knew the newest change (compare-and-set)."""
    quorum = state.quorum
    for leader, local in enumerate(state.replicas):
        isr = local.pending_isr
        if isr is not None and local.partition_epoch == quorum.partition_epoch:
            elr = eligible_leader_replicas(
                constants.effective_min_isr, (*quorum.elr, *quorum.isr), isr
            )
            yield from _decide(constants, state, (leader,), quorum._replace(isr=isr, elr=elr))


@action("LoseUnflushed", "replica", "log_end_offset")
def lose_unflushed(constants: Constants, state: ModelState) -> Successors:
    """A broker registers again after an unclean shutdown, and leaves the ISR and the ELR.

    It leaves them even if its disk lost nothing: the controller cannot know that. A pending request
    to add it carries its previous broker epoch and is rejected (KIP-903).
    """
    if not constants.lossy_disk:
        return
    for replica, log in enumerate(state.logs):
        member = replica in state.quorum.isr or replica in state.quorum.elr
        registered = [state]
        if member:
            decision = _without(constants, state.quorum, replica, (replica,))
            registered = [after for _, after in _decide(constants, state, (), decision)]
        replicas = tuple(
            _without_stale_request(local, replica, state.quorum) for local in state.replicas
        )
        for after in registered:
            for end in range(len(log) + member):
                yield (
                    (replica, end),
                    with_lost_suffix(after._replace(replicas=replicas), replica, end),
                )


def _without_stale_request(local: ModelReplica, joining: int, quorum: QuorumState) -> ModelReplica:
    """Drops a leader's request to add a replica that has registered again (INELIGIBLE_REPLICA).

    A request that knows an older partition epoch stays: it was granted, or it never will be.
    """
    pending = local.pending_isr
    stale = (
        pending is not None
        and joining in pending
        and joining not in local.isr
        and local.partition_epoch == quorum.partition_epoch
    )
    return local._replace(pending_isr=None) if stale else local


def _without(
    constants: Constants, quorum: QuorumState, replica: int, unclean: Replicas
) -> QuorumState:
    """The decision that removes a broker from the ISR. The ISR can become empty."""
    isr = tuple(member for member in quorum.isr if member != replica)
    elr = eligible_leader_replicas(
        constants.effective_min_isr, (*quorum.elr, *quorum.isr), isr, unclean
    )
    leader = None if quorum.leader == replica else quorum.leader
    return quorum._replace(leader=leader, isr=isr, elr=elr)


def _decide(
    constants: Constants, state: ModelState, arguments: Arguments, decision: QuorumState
) -> Successors:
    """Writes a change: a new partition epoch, and a new leader epoch if the leader changes."""
    before = state.quorum
    leader_epoch = before.leader_epoch + (decision.leader != before.leader)
    partition_epoch = before.partition_epoch + 1
    if leader_epoch <= constants.max_epoch and partition_epoch <= max_partition_epoch(constants):
        decision = QuorumState(
            leader_epoch,
            decision.leader,
            decision.isr,
            partition_epoch,
            decision.elr,
            _last_known_leader(before, decision),
        )
        yield arguments, with_decision(state, decision)


def _last_known_leader(before: QuorumState, decision: QuorumState) -> int | None:
    """The replica that led when the ISR became empty (maybeUpdateLastKnownLeader); else None."""
    if decision.leader is not None or decision.isr:
        return None
    return before.last_known_leader if before.leader is None else before.leader

"""What the controller decides: who leads, who is in sync, who is eligible. Mirrors PartitionChangeBuilder, and KafkaController before it.

Brokers hear of a decision when they `learn` it. The leader epoch moves with every decision before KRaft, and with the
leader only since; the partition epoch counts them all.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.kraft import eligible_leader_replicas
from tidemark.model.replica_manager.state import Brokers, Cluster


def decide(
    cluster: Cluster,
    leader: int | None,
    members: Brokers,
    *,
    unclean: Brokers = (),
    recovering: bool = False,
) -> Cluster:
    """Writes a decision. `unclean` are brokers whose disk may have lost records: they leave the ELR."""
    before = cluster.controller
    moved = leader != before.leader or not cluster.protocol.kraft
    after = replace(
        before,
        leader=leader,
        leader_epoch=before.leader_epoch + moved,
        in_sync_replicas=members,
        partition_epoch=before.partition_epoch + 1,
        recovering=recovering,
        last_known_leader=before.leader
        if leader is None and before.leader is not None
        else before.last_known_leader,
    )
    if cluster.protocol.kraft:
        known = (*before.eligible_leader_replicas, *before.in_sync_replicas)
        eligible = eligible_leader_replicas(
            cluster.effective_min_in_sync_replicas, known, members, unclean
        )
        after = replace(after, eligible_leader_replicas=() if recovering else eligible)
    return replace(cluster, controller=after)


def fence(cluster: Cluster, *brokers: int) -> Cluster:
    """Sessions or heartbeats end: these brokers leave the in-sync set, and somebody else is elected if one of them led."""
    decided = cluster.controller
    cluster = replace(
        cluster,
        controller=replace(
            decided, alive=tuple(each for each in decided.alive if each not in brokers)
        ),
    )
    return elect(cluster, leaving=brokers)


def register(cluster: Cluster, broker: int) -> Cluster:
    """A broker comes (back). KRaft learns by its epoch whether it stopped cleanly; ZooKeeper never asked."""
    decided = cluster.controller
    clean = cluster.broker(broker).disk.clean
    cluster = replace(
        cluster, controller=replace(decided, alive=tuple(sorted({*decided.alive, broker})))
    )
    if cluster.protocol.kraft:
        cluster = _refuse_old_wishes(cluster, broker)
    if cluster.protocol.kraft and not clean:
        cluster = cluster.noting(
            "it stopped uncleanly and is neither in sync nor eligible until it has caught up"
        )
        return elect(cluster, leaving=(broker,), unclean=(broker,))
    return elect(cluster)


def _refuse_old_wishes(cluster: Cluster, joining: int) -> Cluster:
    """A leader's wish to take a broker in names its epoch of then: once it has registered anew that is refused (KIP-903)."""
    for each in cluster.brokers:
        wanted = each.pending_in_sync_replicas
        if wanted is not None and joining in wanted and joining not in each.in_sync_replicas:
            cluster = cluster.having(replace(each, pending_in_sync_replicas=None))
            cluster = cluster.noting(
                f"what {each.id} asked for is refused, INELIGIBLE_REPLICA: {joining} has registered anew"
            )
    return cluster


def elect(cluster: Cluster, leaving: Brokers = (), unclean: Brokers = ()) -> Cluster:
    """Keeps the leader while it may lead; else the first assigned replica that is in sync and alive; else a worse one, or none.

    An in-sync set never loses its last member before KIP-966: it waits for its disk, however that comes back.
    """
    decided = cluster.controller
    members = tuple(each for each in decided.in_sync_replicas if each not in leaving)
    if not members and not cluster.protocol.kraft:
        members = decided.in_sync_replicas
    eligible = tuple(each for each in decided.eligible_leader_replicas if each not in unclean)
    leader: int | None = decided.leader
    if leader not in members or leader not in decided.alive:
        leader = next(
            (each for each in cluster.assigned if each in members and each in decided.alive), None
        )
    if leader is not None:
        return _decided(cluster, leader, members, unclean)
    if not members:
        leader = next(
            (
                each
                for each in cluster.assigned
                if each in eligible and each in decided.alive and each not in leaving
            ),
            None,
        )
        if leader is not None:
            return _decided(cluster, leader, (leader,), unclean).noting(
                f"{leader} is taken from the eligible leader replicas"
            )
    return _elect_without_proof(cluster, members, unclean)


def _elect_without_proof(cluster: Cluster, members: Brokers, unclean: Brokers) -> Cluster:
    """Nobody who surely has all is there: the last known leader (KIP-966), an unclean election where allowed, or nobody."""
    decided = cluster.controller
    last = decided.last_known_leader if decided.leader is None else decided.leader
    nobody_eligible = not members and not set(decided.eligible_leader_replicas) - set(unclean)
    if cluster.protocol.kraft and nobody_eligible and last in decided.alive:
        return decide(cluster, last, (last,), recovering=True).noting(
            f"{last} led last and is elected, though its disk may have lost records"
        )
    if cluster.unclean_leader_election:
        taken = next((each for each in cluster.assigned if each in decided.alive), None)
        if taken is not None:
            return decide(cluster, taken, (taken,), recovering=True).noting(
                f"{taken} is elected uncleanly: it need not have all that is committed"
            )
    return _decided(cluster, None, members, unclean)


def _decided(cluster: Cluster, leader: int | None, members: Brokers, unclean: Brokers) -> Cluster:
    """Writes a decision if it is one."""
    decided = cluster.controller
    if (leader, members) == (decided.leader, decided.in_sync_replicas) and not set(unclean) & set(
        decided.eligible_leader_replicas
    ):
        return cluster
    return decide(cluster, leader, members, unclean=unclean)


def elect_preferred_leader(cluster: Cluster) -> Cluster:
    """The preferred leader is the first assigned replica; it gets the lead back when it is in sync."""
    preferred, decided = cluster.assigned[0], cluster.controller
    if decided.leader == preferred:
        return cluster.noting(f"{preferred} leads already")
    if preferred not in decided.alive or preferred not in decided.in_sync_replicas:
        return cluster.noting(f"PREFERRED_LEADER_NOT_AVAILABLE: {preferred} is not in sync")
    return decide(cluster, preferred, decided.in_sync_replicas)


def elect_unclean_leader(cluster: Cluster) -> Cluster:
    """An operator's `kafka-leader-election --election-type unclean`, while nobody leads: an election as if the topic allowed it.

    Nobody can be named: who may lead without loss goes first, then the first assigned replica that is alive.
    """
    if cluster.controller.leader is not None:
        return cluster.noting("ELECTION_NOT_NEEDED")
    elected = replace(
        elect(replace(cluster, unclean_leader_election=True)),
        unclean_leader_election=cluster.unclean_leader_election,
    )
    return (
        elected
        if elected.controller.leader is not None
        else elected.noting("ELIGIBLE_LEADERS_NOT_AVAILABLE")
    )

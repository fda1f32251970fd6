"""What the controller decides: the leader, the ISR and the ELR.

Mirrors PartitionChangeBuilder, and KafkaController before it. Brokers know a decision once they
`learn` it. Before KRaft every decision raises the leader epoch. Since KRaft only a change of the
leader does. The partition epoch counts all decisions.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark_lab.model.kraft_controller import eligible_leader_replicas
from tidemark_lab.model.replica_manager.state import Brokers, ClusterModel


def decide(
    cluster: ClusterModel,
    leader: int | None,
    members: Brokers,
    *,
    unclean: Brokers = (),
    recovering: bool = False,
) -> ClusterModel:
    """Writes a decision. Brokers in `unclean` may have lost records: they leave the ELR."""
    before, kraft = cluster.controller, cluster.protocol.kraft
    lost_leader = leader is None and before.leader is not None
    after = replace(
        before,
        leader=leader,
        leader_epoch=before.leader_epoch + (leader != before.leader or not kraft),
        in_sync_replicas=members,
        partition_epoch=before.partition_epoch + 1,
        recovering=recovering,
        last_known_leader=before.leader if lost_leader else before.last_known_leader,
    )
    if kraft:
        known = (*before.eligible_leader_replicas, *before.in_sync_replicas)
        eligible = eligible_leader_replicas(
            cluster.effective_min_in_sync_replicas, known, members, unclean
        )
        after = replace(after, eligible_leader_replicas=() if recovering else eligible)
    return replace(cluster, controller=after, decisions=(*cluster.decisions, after))


def fence(cluster: ClusterModel, broker: int) -> ClusterModel:
    """A broker's session expires: it leaves the ISR, and a new leader is elected if needed.

    One decision fences one broker, even if several sessions have expired
    (ReplicationControlManager.maybeFenceOneStaleBroker). The next decision sees its effect.
    """
    decision = cluster.controller
    alive = tuple(each for each in decision.alive if each != broker)
    return elect(replace(cluster, controller=replace(decision, alive=alive)), leaving=(broker,))


def register(cluster: ClusterModel, broker: int) -> ClusterModel:
    """A broker registers. KRaft knows from its epoch if the last shutdown was clean."""
    decision = cluster.controller
    alive = tuple(sorted({*decision.alive, broker}))
    cluster = replace(cluster, controller=replace(decision, alive=alive))
    if not cluster.protocol.kraft:
        return elect(cluster)
    cluster = _reject_stale_requests(cluster, broker)
    if cluster.broker(broker).disk.clean:
        return elect(cluster)
    cluster = cluster.with_notes(
        "the shutdown was unclean: it is neither in sync nor eligible until it catches up"
    )
    return elect(cluster, leaving=(broker,), unclean=(broker,))


def _reject_stale_requests(cluster: ClusterModel, joining: int) -> ClusterModel:
    """A request to add a broker carries its broker epoch. A new registration ends it (KIP-903)."""
    for each in cluster.brokers:
        pending = each.pending_in_sync_replicas
        if pending is not None and joining in pending and joining not in each.in_sync_replicas:
            cluster = cluster.with_broker(replace(each, pending_in_sync_replicas=None))
            cluster = cluster.with_notes(
                f"the request of {each.id} is rejected, INELIGIBLE_REPLICA: "
                f"{joining} has registered again"
            )
    return cluster


def elect(cluster: ClusterModel, leaving: Brokers = (), unclean: Brokers = ()) -> ClusterModel:
    """Keeps the leader if possible, else elects one.

    The order is: the first assigned replica that is in sync and alive, an eligible one, the last
    known leader, an unclean election if it is allowed. Before KIP-966 the ISR keeps its last
    member, whatever its disk has lost.
    """
    decision = cluster.controller
    members = tuple(each for each in decision.in_sync_replicas if each not in leaving)
    if not members and not cluster.protocol.kraft:
        members = decision.in_sync_replicas
    leader = decision.leader
    if leader not in members or leader not in decision.alive:
        leader = _first_alive(cluster, members)
    if leader is not None:
        return _decide_if_changed(cluster, leader, members, unclean)
    if not members:
        gone = {*unclean, *leaving}
        eligible = (each for each in decision.eligible_leader_replicas if each not in gone)
        leader = _first_alive(cluster, tuple(eligible))
        if leader is not None:
            return _decide_if_changed(cluster, leader, (leader,), unclean).with_notes(
                f"{leader} is elected from the eligible leader replicas"
            )
    return _elect_without_proof(cluster, members, unclean)


def _first_alive(cluster: ClusterModel, candidates: Brokers) -> int | None:
    """The first assigned replica that is alive and a candidate."""
    alive = cluster.controller.alive
    return next((each for each in cluster.assigned if each in candidates and each in alive), None)


def _elect_without_proof(cluster: ClusterModel, members: Brokers, unclean: Brokers) -> ClusterModel:
    """No replica that is known to have all records is alive.

    Elects the last known leader (KIP-966), any replica if unclean elections are allowed, or none.
    """
    decision = cluster.controller
    last = decision.last_known_leader if decision.leader is None else decision.leader
    eligible = set(decision.eligible_leader_replicas) - set(unclean)
    if cluster.protocol.kraft and not members and not eligible and last in decision.alive:
        return decide(cluster, last, (last,), recovering=True).with_notes(
            f"{last} is elected as the last known leader; its disk may have lost records"
        )
    first = _first_alive(cluster, cluster.assigned)
    if cluster.unclean_leader_election and first is not None:
        return decide(cluster, first, (first,), recovering=True).with_notes(
            f"{first} is elected uncleanly: it may lack committed records"
        )
    return _decide_if_changed(cluster, None, members, unclean)


def _decide_if_changed(
    cluster: ClusterModel, leader: int | None, members: Brokers, unclean: Brokers
) -> ClusterModel:
    decision = cluster.controller
    same = (leader, members) == (decision.leader, decision.in_sync_replicas)
    if same and not set(unclean) & set(decision.eligible_leader_replicas):
        return cluster
    return decide(cluster, leader, members, unclean=unclean)


def elect_preferred_leader(cluster: ClusterModel) -> ClusterModel:
    """Elects the preferred leader, which is the first assigned replica, if it is in sync."""
    preferred, decision = cluster.assigned[0], cluster.controller
    if decision.leader == preferred:
        return cluster.with_notes(f"{preferred} is already the leader")
    if preferred not in decision.alive or preferred not in decision.in_sync_replicas:
        return cluster.with_notes(f"PREFERRED_LEADER_NOT_AVAILABLE: {preferred} is not in sync")
    return decide(cluster, preferred, decision.in_sync_replicas)


def elect_unclean_leader(cluster: ClusterModel) -> ClusterModel:
    """`kafka-leader-election --election-type unclean`, while there is no leader.

    The election runs as if the topic allowed unclean elections. The operator cannot choose the
    replica: one that is known to have all records comes first.
    """
    if cluster.controller.leader is not None:
        return cluster.with_notes("ELECTION_NOT_NEEDED")
    elected = replace(
        elect(replace(cluster, unclean_leader_election=True)),
        unclean_leader_election=cluster.unclean_leader_election,
    )
    if elected.controller.leader is None:
        return elected.with_notes("ELIGIBLE_LEADERS_NOT_AVAILABLE")
    return elected

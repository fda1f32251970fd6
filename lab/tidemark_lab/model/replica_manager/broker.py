"""The life cycle of a broker: it learns decisions, writes checkpoints, stops and starts."""

from __future__ import annotations

from dataclasses import replace

from tidemark.core.leader_epochs import NO_EPOCH
from tidemark_lab.model import epoch_cache
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.replica_manager import controller
from tidemark_lab.model.replica_manager.follower import truncate_to, where_to_truncate
from tidemark_lab.model.replica_manager.leader import maybe_increment_leader_hw
from tidemark_lab.model.replica_manager.purgatory import expire
from tidemark_lab.model.replica_manager.state import (
    Broker,
    ClusterModel,
    Controller,
    Fact,
    RemoteReplica,
    broker_list,
    record_names,
)
from tidemark_lab.model.replica_manager.stopping import stop


def create(
    protocol: Protocol,
    brokers: int,
    min_in_sync_replicas: int = 1,
    *,
    unclean_leader_election: bool = False,
) -> ClusterModel:
    """A new partition: broker 1 leads in epoch 0, all brokers know it, all replicas are in sync."""
    ids = tuple(range(1, brokers + 1))
    cluster = ClusterModel(
        protocol=protocol,
        brokers=tuple(Broker(broker) for broker in ids),
        controller=Controller(leader=1, leader_epoch=0, in_sync_replicas=ids, alive=ids),
        min_in_sync_replicas=min_in_sync_replicas,
        unclean_leader_election=unclean_leader_election,
    )
    for broker in ids:
        cluster = learn(cluster, broker)
        cluster = cluster.with_broker(replace(cluster.broker(broker), truncating=False))
    return cluster.without_notes()


def learn(cluster: ClusterModel, broker: int) -> ClusterModel:
    """A broker learns the newest decision, by a LeaderAndIsr request or from the metadata log."""
    local, decision = cluster.broker(broker), cluster.controller
    if not local.running:
        return cluster.with_notes(f"{broker} is down")
    if decision.leader == broker:
        return make_leader(cluster, broker)
    if decision.leader_epoch > local.leader_epoch:
        return make_follower(cluster, broker)
    return cluster.with_notes(f"{broker} knows it already")


def learn_late(cluster: ClusterModel, broker: int, leader_epoch: int) -> ClusterModel:
    """A broker learns a decision after the controller has replaced it."""
    newest = cluster.controller
    old = next(each for each in cluster.decisions if each.leader_epoch == leader_epoch)
    return replace(learn(replace(cluster, controller=old), broker), controller=newest)


def make_leader(cluster: ClusterModel, broker: int) -> ClusterModel:
    """Partition.makeLeader: the epoch starts at its log end. Since 2.0.1 it is noted at once.

    A new leader knows nothing of its followers yet.
    """
    before, decision = cluster.broker(broker), cluster.controller
    after = _apply_decision(cluster, before)
    if cluster.protocol.truncation.notes_epoch_at_election:
        cache = epoch_cache.assign(before.epoch_cache, decision.leader_epoch, before.log_end_offset)
        after = replace(after, epoch_cache=cache)
    if before.leader == broker:
        note = f"{broker} uses ISR {broker_list(decision.in_sync_replicas)}"
    else:
        remotes = {
            each: RemoteReplica(
                last_caught_up_ms=cluster.now_ms if each in decision.in_sync_replicas else None
            )
            for each in cluster.assigned
            if each != broker
        }
        after = replace(_without_delayed_operations(after), remotes=remotes, truncating=False)
        note = (
            f"{broker} leads in epoch {decision.leader_epoch} "
            f"from offset {before.log_end_offset}, HW {before.high_watermark}"
        )
    return maybe_increment_leader_hw(cluster.with_broker(after).with_notes(note), broker)


def make_follower(cluster: ClusterModel, broker: int) -> ClusterModel:
    """Partition.makeFollower, and what the protocol then does to the log.

    The producers that wait here get an error.
    """
    before, decision, protocol = cluster.broker(broker), cluster.controller, cluster.protocol
    asks = (
        protocol.leader_epochs and not protocol.truncates_in_fetch and decision.leader is not None
    )
    after = _without_delayed_operations(_apply_decision(cluster, before))
    cluster = cluster.with_broker(replace(after, remotes={}, truncating=asks))
    if before.produce_purgatory:
        records = tuple(record for each in before.produce_purgatory for record in each.records)
        cluster = cluster.with_notes(
            f"the producers of {record_names(records)} get NOT_LEADER_OR_FOLLOWER"
        ).with_facts(Fact.PRODUCE_COMPLETED)
    if decision.leader is None:
        return cluster.with_notes(f"{broker} has no leader")
    cluster = cluster.with_notes(
        f"{broker} follows {decision.leader} in epoch {decision.leader_epoch}"
    ).with_facts(Fact.FOLLOWS)
    if protocol.leader_epochs:
        return cluster
    end, _ = where_to_truncate(protocol, after, after)
    return truncate_to(cluster, broker, end)


def _apply_decision(cluster: ClusterModel, local: Broker) -> Broker:
    decision = cluster.controller
    return replace(
        local,
        leader=decision.leader,
        leader_epoch=decision.leader_epoch,
        partition_epoch=decision.partition_epoch,
        in_sync_replicas=decision.in_sync_replicas,
        pending_in_sync_replicas=None,
    )


def _without_delayed_operations(local: Broker) -> Broker:
    return replace(
        local,
        response=None,
        produce_purgatory=(),
        fetch_purgatory=(),
        delete_purgatory=(),
        unwatched=(),
    )


def pass_time(cluster: ClusterModel, ms: int) -> ClusterModel:
    """Time passes. Requests that reach their deadlines complete."""
    cluster = replace(cluster, now_ms=cluster.now_ms + ms)
    for each in cluster.assigned:
        cluster = expire(cluster, each)
    return cluster


def checkpoint(cluster: ClusterModel, broker: int) -> ClusterModel:
    """ReplicaManager.checkpointHighWatermarks, by default every 5 s."""
    before = cluster.broker(broker)
    disk = replace(before.disk, high_watermark_checkpoint=before.high_watermark)
    return cluster.with_broker(replace(before, disk=disk)).with_notes(
        f"HW {before.high_watermark} of {broker} is on its disk"
    )


def flush(cluster: ClusterModel, broker: int) -> ClusterModel:
    """The operating system writes the log's pages: they now survive a power failure.

    The broker does not know that: the recovery point stays.
    """
    before = cluster.broker(broker)
    end = before.log_end_offset
    disk = replace(before.disk, flushed=end)
    return cluster.with_broker(replace(before, disk=disk)).with_notes(
        f"everything below offset {end} is on its disk"
    )


def force(cluster: ClusterModel, broker: int) -> ClusterModel:
    """UnifiedLog.flush, as after a segment is rolled: the recovery point becomes the log end."""
    cluster = flush(cluster, broker)
    local = replace(cluster.broker(broker), recovery_point=cluster.broker(broker).log_end_offset)
    return cluster.with_broker(local).with_notes(f"its recovery point is {local.recovery_point}")


def checkpoint_log(cluster: ClusterModel, broker: int) -> ClusterModel:
    """LogManager.checkpointLogRecoveryOffsets and checkpointLogStartOffsets, every 60 s."""
    before = cluster.broker(broker)
    point, start = before.recovery_point, before.log_start_offset
    disk = replace(before.disk, recovery_point_checkpoint=point, log_start_offset_checkpoint=start)
    return cluster.with_broker(replace(before, disk=disk)).with_notes(
        f"recovery point {point} and log start {start} of {broker} are on its disk"
    )


def lose_power(cluster: ClusterModel, broker: int) -> ClusterModel:
    """The machine fails, and records that were not flushed are lost.

    The epoch file is always flushed.
    """
    before = cluster.broker(broker)
    lost = before.log[before.disk.flushed :]
    cluster = stop(cluster, broker, before.disk.flushed, clean=False)
    return cluster.with_notes(f"{record_names(lost)} lost, not flushed") if lost else cluster


def shut_down(cluster: ClusterModel, broker: int) -> ClusterModel:
    """A controlled shutdown: log and high watermark reach the disk, and leadership moves away.

    The broker writes all checkpoints, and `.kafka_cleanshutdown` last.
    """
    cluster = checkpoint_log(force(cluster, broker), broker)
    cluster = controller.fence(checkpoint(cluster, broker), broker)
    end = cluster.broker(broker).log_end_offset
    return stop(cluster.without_notes(), broker, end, clean=True)


def start(cluster: ClusterModel, broker: int) -> ClusterModel:
    """Starts with the high watermark of the checkpoint and the epochs of the epoch file.

    It knows no leader until it learns the newest decision. After an unclean shutdown it checks its
    log from the recovery point on (LogLoader.recoverLog).
    """
    before = cluster.broker(broker)
    end, point = before.log_end_offset, before.disk.recovery_point_checkpoint
    disk = replace(before.disk, flushed=end)
    started = replace(before, running=True, leader=None, leader_epoch=NO_EPOCH, disk=disk)
    started = replace(started, recovery_point=end)
    cluster = cluster.with_broker(started).with_notes(
        f"LEO {end}, HW {before.high_watermark} from its checkpoint"
    )
    if point is not None and not before.disk.clean:
        cluster = cluster.with_notes(
            f"no .kafka_cleanshutdown: it checks its log from {min(point, end)} on"
        )
    return controller.register(cluster, broker)

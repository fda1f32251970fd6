"""A broker's life: it learns what the controller decided, writes its checkpoints, dies and starts again."""

from __future__ import annotations

from dataclasses import replace

from tidemark.model.protocols.protocol import Protocol
from tidemark.model.replica_manager import controller, epoch_cache
from tidemark.model.replica_manager.follower import truncate_to
from tidemark.model.replica_manager.leader import (
    complete_fetches,
    expire_produces,
    maybe_increment_leader_hw,
)
from tidemark.model.replica_manager.state import Broker, Cluster, Controller, Disk, Remote, named
from tidemark.model.state import NO_EPOCH


def create(
    protocol: Protocol,
    brokers: int,
    min_in_sync_replicas: int = 1,
    *,
    unclean_leader_election: bool = False,
) -> Cluster:
    """A partition just made: broker 1 leads in epoch 0, everybody is in sync and knows it, all logs are empty."""
    everyone = tuple(range(1, brokers + 1))
    cluster = Cluster(
        protocol=protocol,
        brokers=tuple(Broker(broker) for broker in everyone),
        controller=Controller(leader=1, leader_epoch=0, in_sync_replicas=everyone, alive=everyone),
        min_in_sync_replicas=min_in_sync_replicas,
        unclean_leader_election=unclean_leader_election,
    )
    for broker in everyone:
        cluster = learn(cluster, broker)
        cluster = cluster.having(replace(cluster.broker(broker), truncating=False))
    return replace(cluster, notes=())


def learn(cluster: Cluster, broker: int) -> Cluster:
    """A broker hears the controller's newest decision, by LeaderAndIsr request or from the metadata log."""
    believed, decided = cluster.broker(broker), cluster.controller
    if not believed.running:
        return cluster.noting(f"{broker} is down and hears nothing")
    if decided.leader == broker:
        return make_leader(cluster, broker)
    if decided.leader_epoch > believed.leader_epoch:
        return make_follower(cluster, broker)
    return cluster.noting(f"{broker} knew that")


def make_leader(cluster: Cluster, broker: int) -> Cluster:
    """Partition.makeLeader: the new epoch starts at its log end, before any write; of its followers it knows nothing yet."""
    before, decided = cluster.broker(broker), cluster.controller
    after = replace(
        before,
        leader=broker,
        leader_epoch=decided.leader_epoch,
        partition_epoch=decided.partition_epoch,
        in_sync_replicas=decided.in_sync_replicas,
        pending_in_sync_replicas=None,
    )
    if before.leader != broker:
        cache = before.epoch_cache
        if cluster.protocol.leader_epochs:
            cache = epoch_cache.assign(cache, decided.leader_epoch, before.log_end_offset)
        members = decided.in_sync_replicas
        remotes = {
            each: Remote(last_caught_up_ms=cluster.now_ms if each in members else None)
            for each in cluster.assigned
            if each != broker
        }
        after = replace(
            after,
            epoch_cache=cache,
            remotes=remotes,
            truncating=False,
            answer=None,
            produce_purgatory=(),
            fetch_purgatory=(),
        )
        cluster = cluster.noting(
            f"{broker} leads in epoch {decided.leader_epoch} from offset {before.log_end_offset}, HW {before.high_watermark}"
        )
    else:
        if cluster.protocol.leader_epochs:
            after = replace(
                after,
                epoch_cache=epoch_cache.assign(
                    before.epoch_cache, decided.leader_epoch, before.log_end_offset
                ),
            )
        cluster = cluster.noting(
            f"{broker} counts {','.join(map(str, decided.in_sync_replicas))} as in sync"
        )
    return maybe_increment_leader_hw(cluster.having(after), broker)


def make_follower(cluster: Cluster, broker: int) -> Cluster:
    """Partition.makeFollower, and what each protocol does to the log then. Producers that waited here are told to look elsewhere."""
    before, decided = cluster.broker(broker), cluster.controller
    after = replace(
        before,
        leader=decided.leader,
        leader_epoch=decided.leader_epoch,
        partition_epoch=decided.partition_epoch,
        in_sync_replicas=decided.in_sync_replicas,
        pending_in_sync_replicas=None,
        remotes={},
        produce_purgatory=(),
        fetch_purgatory=(),
        answer=None,
        truncating=cluster.protocol.leader_epochs
        and not cluster.protocol.kraft
        and decided.leader is not None,
    )
    cluster = cluster.having(after)
    if before.produce_purgatory:
        records = tuple(waiting.record for waiting in before.produce_purgatory)
        cluster = cluster.noting(
            f"the producers of {named(records)} are told NOT_LEADER_OR_FOLLOWER"
        )
    if decided.leader is None:
        return cluster.noting(f"{broker} hears that nobody leads")
    cluster = cluster.noting(f"{broker} follows {decided.leader} in epoch {decided.leader_epoch}")
    if not cluster.protocol.leader_epochs:
        return truncate_to(
            cluster, broker, cluster.protocol.truncation((), after.log, after.high_watermark)
        )
    return cluster


def pass_time(cluster: Cluster, ms: int) -> Cluster:
    """Time passes; fetches that waited long enough are answered with nothing but the high watermark, and producers give up."""
    now_ms = cluster.now_ms + ms
    cluster = replace(cluster, now_ms=now_ms)
    for leader in cluster.assigned:
        cluster = complete_fetches(cluster, leader, lambda parked: parked.deadline_ms <= now_ms)
        cluster = expire_produces(cluster, leader)
    return cluster


def checkpoint(cluster: Cluster, broker: int) -> Cluster:
    """ReplicaManager.checkpointHighWatermarks, every 5 s by default."""
    before = cluster.broker(broker)
    disk = replace(before.disk, high_watermark_checkpoint=before.high_watermark)
    return cluster.having(replace(before, disk=disk)).noting(
        f"HW {before.high_watermark} of {broker} is on its disk"
    )


def flush(cluster: Cluster, broker: int) -> Cluster:
    """The operating system writes the log's pages: now a power failure would not take them."""
    before = cluster.broker(broker)
    disk = replace(before.disk, flushed=before.log_end_offset)
    return cluster.having(replace(before, disk=disk)).noting(
        f"its log is safe there up to offset {before.log_end_offset}"
    )


def kill(cluster: Cluster, broker: int) -> Cluster:
    """The process dies. What it had written stays in the operating system's pages; what it knew is gone."""
    return _stopped(cluster, broker, cluster.broker(broker).log_end_offset, clean=False)


def lose_power(cluster: Cluster, broker: int) -> Cluster:
    """The machine dies: records that were not flushed are gone, from every replica alike. The epoch file is always flushed."""
    before = cluster.broker(broker)
    lost = before.log[before.disk.flushed :]
    cluster = _stopped(cluster, broker, before.disk.flushed, clean=False)
    return (
        cluster.noting(f"{named(lost)} of {broker} had not reached the disk") if lost else cluster
    )


def shut_down(cluster: Cluster, broker: int) -> Cluster:
    """A controlled shutdown: the controller moves the lead away first, the log and the high watermark reach the disk."""
    cluster = checkpoint(flush(cluster, broker), broker)
    cluster = controller.fence(cluster, broker)
    return _stopped(
        replace(cluster, notes=()), broker, cluster.broker(broker).log_end_offset, clean=True
    )


def _stopped(cluster: Cluster, broker: int, end: int, *, clean: bool) -> Cluster:
    before = cluster.broker(broker)
    high_watermark = min(before.disk.high_watermark_checkpoint, end)
    disk = Disk(
        flushed=min(before.disk.flushed, end), high_watermark_checkpoint=high_watermark, clean=clean
    )
    cache = epoch_cache.truncate_from_end(before.epoch_cache, end)
    after = Broker(
        broker,
        running=False,
        log=before.log[:end],
        high_watermark=high_watermark,
        epoch_cache=cache,
        disk=disk,
    )
    cluster = cluster.having(after)
    for other in cluster.assigned:
        each = cluster.broker(other)
        parked = tuple(fetch for fetch in each.fetch_purgatory if fetch.follower != broker)
        cluster = cluster.having(replace(each, fetch_purgatory=parked))
    return cluster


def start(cluster: Cluster, broker: int) -> Cluster:
    """Starts again from its disk: high watermark from the checkpoint, epochs from their file. It believes nothing until told."""
    before = cluster.broker(broker)
    cluster = cluster.having(
        replace(
            before,
            running=True,
            leader=None,
            leader_epoch=NO_EPOCH,
            disk=replace(before.disk, flushed=before.log_end_offset),
        )
    )
    cluster = cluster.noting(
        f"LEO {before.log_end_offset} and, from its checkpoint, HW {before.high_watermark}"
    )
    return controller.register(cluster, broker)

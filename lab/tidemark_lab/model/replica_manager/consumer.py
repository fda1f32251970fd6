"""What a consumer does: it fetches from the leader, or from a follower in its rack (KIP-392).

Mirrors ReplicaManager.fetchMessages for a consumer, ReplicaManager.findPreferredReadReplica with
RackAwareReplicaSelector, and FetchCollector. A response arrives at once.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark_lab.model.replica_manager.delayed import reader_name
from tidemark_lab.model.replica_manager.purgatory import (
    delayed_fetch,
    deliver,
    try_complete_else_watch,
)
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel, Consumer
from tidemark_lab.model.replica_manager.transactions import readable_end


def poll(cluster: ClusterModel, consumer: int) -> ClusterModel:
    """One fetch of a consumer. It waits at the broker if there is nothing that it may read."""
    reader = cluster.consumer(consumer)
    name = reader_name(reader.reader)
    source = reader.preferred_read_replica or cluster.controller.leader
    if source is None:
        return cluster.with_notes("the partition has no leader")
    local = cluster.broker(source)
    if not local.running:
        return _return_to_leader(cluster, reader, f"{source} does not respond")
    if reader.preferred_read_replica is None:
        if not local.leads:
            return cluster.with_notes("NOT_LEADER_OR_FOLLOWER")
        preferred = find_preferred_read_replica(local, reader)
        if preferred is not None:
            reader = replace(reader, preferred_read_replica=preferred)
            return cluster.with_consumer(reader).with_notes(
                f"no record; {preferred} is the preferred read replica of {name}"
            )
    if not local.log_start_offset <= reader.position <= local.log_end_offset:
        error = f"OFFSET_OUT_OF_RANGE, the log of {source} ends at {local.log_end_offset}"
        return _return_to_leader(cluster, reader, error)
    fetch = delayed_fetch(cluster, reader.reader, reader.position, reader.isolation)
    if readable_end(cluster, local, reader.isolation) != reader.position:
        return deliver(cluster, source, fetch)
    cluster = cluster.with_notes(f"{reader.isolation.value} {reader.position}: the fetch waits")
    return try_complete_else_watch(cluster, source, fetch)


def _return_to_leader(cluster: ClusterModel, reader: Consumer, error: str) -> ClusterModel:
    """FetchCollector: the error of a follower ends the preference, and resets no position."""
    if reader.preferred_read_replica is None:
        return cluster.with_notes(f"{error}: auto.offset.reset decides where to continue")
    reader = replace(reader, preferred_read_replica=None)
    return cluster.with_consumer(reader).with_notes(
        f"{error}: {reader_name(reader.reader)} returns to the leader, its position stays"
    )


def find_preferred_read_replica(leader: Broker, reader: Consumer) -> int | None:
    """The follower in the consumer's rack, if it is in sync and its log has the position."""
    remote = leader.remotes.get(reader.rack or leader.id)
    if remote is None or remote.log_end_offset is None or remote.log_start_offset is None:
        return None
    in_log = remote.log_start_offset <= reader.position <= remote.log_end_offset
    return reader.rack if in_log and reader.rack in leader.in_sync_replicas else None

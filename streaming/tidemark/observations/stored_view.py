"""What Tidemark saw of a partition before: its newest view on the topic of views."""

from __future__ import annotations

import copy

from kafka.partitioner.default import murmur2

from tidemark.core.errors import WireError
from tidemark.core.records import LastCommittedView, ReplicaView, View, decode_record, view_key
from tidemark.kafka.topic_reader import TopicReader
from tidemark.settings import Connection


def read_stored_view(
    connection: Connection, topic: str, cluster: str, name: str, partition: int
) -> View | None:
    """The newest view of a partition; None: the topic has none. Raises ClusterError."""
    key = view_key(cluster, name, partition).encode()
    newest: bytes | None = None
    with TopicReader(connection, topic, home_of(key)) as log:
        for message in log.read_to_end():
            if message.key == key:
                newest = message.value
    try:
        record = None if newest is None else decode_record(newest)
    except WireError:
        return None
    return record if isinstance(record, View) else None


def home_of(key: bytes) -> int:
    """A hash of the key; modulo the number of partitions it is where Spark's sink writes it
    (BuiltInPartitioner.partitionForKey).
    """
    return int(murmur2(key)) & 0x7FFFFFFF


def with_earlier_samples(live: View, stored: View | None) -> View:
    """The live view, with what it lacks from an earlier one of the same topic.

    That is the last samples of silent replicas, what the last leader was seen to commit, and the
    open alerts.
    """
    if stored is None or not _is_same_topic(live, stored):
        return live
    made = copy.copy(live)
    earlier = {replica.broker: replica for replica in stored.replicas}
    known = {replica.broker: replica for replica in live.replicas}
    made.replicas = [
        _with_sample(known.get(broker) or ReplicaView(broker=broker), earlier.get(broker))
        for broker in live.assigned or sorted(known)
    ]
    made.alerts = [*stored.alerts, *live.alerts]
    made.isr_history = [*stored.isr_history, *live.isr_history]
    if made.log_end_offset is None and made.last_committed is None:
        made.last_committed = stored.last_committed or _last_committed(stored)
    return made


def _is_same_topic(live: View, stored: View) -> bool:
    ids = (live.topic_id, stored.topic_id)
    is_newer = (stored.leader_epoch or 0) > (live.leader_epoch or 0)
    return not is_newer and (None in ids or live.topic_id == stored.topic_id)


def _with_sample(replica: ReplicaView, earlier: ReplicaView | None) -> ReplicaView:
    if replica.log_end_offset is not None or earlier is None:
        return replica
    made = copy.copy(earlier)
    made.error = replica.error or earlier.error or "no_answer"
    made.in_sync = replica.in_sync
    made.lag_records = made.lag_ms = None
    return made


def _last_committed(stored: View) -> LastCommittedView | None:
    """From a view of the time when the leader still answered."""
    if stored.high_watermark is None:
        return None
    leader = next((each for each in stored.replicas if each.broker == stored.leader), None)
    return LastCommittedView(
        high_watermark=stored.high_watermark,
        log_end_offset=max(stored.log_end_offset or 0, stored.high_watermark),
        leader=stored.leader,
        leader_epoch=stored.leader_epoch,
        read_at=stored.at if leader is None else leader.sampled_at,
        lineage=stored.lineage,
        lineage_complete_from=stored.lineage_complete_from,
    )

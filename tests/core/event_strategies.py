"""Strategies: any event that the schema allows."""

from __future__ import annotations

from hypothesis import strategies as st

from tidemark.core import events as e

offsets = st.integers(0, 2**63 - 1)
epochs = st.integers(0, 2**31 - 1)
brokers = st.integers(0, 2**31 - 1)
partitions = st.integers(0, 2**31 - 1)
seconds = st.floats(0, 4e9, allow_nan=False)
names = st.text(min_size=1, max_size=40)
topics = st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True)
broker_lists = st.lists(brokers, max_size=5)
lineages = st.lists(st.tuples(epochs, offsets), max_size=8)
milliseconds = st.none() | st.floats(0, 1e6, allow_nan=False)


def optional(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


replicas = st.builds(
    e.Replica,
    broker=brokers,
    log_end_offset=optional(offsets),
    high_watermark=optional(offsets),
    log_start_offset=optional(offsets),
    last_stable_offset=optional(offsets),
    leader_epoch=optional(epochs),
    leads=optional(st.booleans()),
    requested_ms=milliseconds,
    answered_ms=milliseconds,
    error=optional(st.text(min_size=1, max_size=64)),
    lineage=optional(lineages),
)
observations = st.builds(
    e.Observation,
    topic=topics,
    partition=partitions,
    observed_at=seconds,
    topic_id=optional(names),
    leader=optional(brokers),
    leader_epoch=optional(epochs),
    leaderless=st.booleans(),
    replicas=broker_lists,
    in_sync_replicas=optional(broker_lists),
    eligible_leader_replicas=optional(broker_lists),
    last_known_eligible_leader_replicas=optional(broker_lists),
    adding=broker_lists,
    removing=broker_lists,
    effective_min_in_sync_replicas=optional(st.integers(1, 2**31 - 1)),
    metadata_from=broker_lists,
    metadata_at=optional(seconds),
    samples=st.lists(replicas, max_size=4, unique_by=lambda sample: sample.broker),
    leader_log_end_offset_before=optional(offsets),
    leader_log_end_offset_after=optional(offsets),
    leader_before_at=optional(seconds),
    leader_after_at=optional(seconds),
    committed=optional(offsets),
    lineage=optional(lineages),
    lineage_complete_from=optional(epochs),
)
answers = st.builds(
    e.BrokerAnswer,
    broker=brokers,
    outcome=st.sampled_from([e.OK, e.REFUSED, e.TIMED_OUT, "NOT_CONTROLLER"]),
)
passes = st.builds(
    e.Pass,
    number=st.integers(0, 2**40),
    started_at=seconds,
    ended_at=seconds,
    monotonic=seconds,
    period_ms=st.floats(0.1, 1e7, allow_nan=False),
    brokers=st.lists(answers, max_size=4, unique_by=lambda answer: answer.broker),
    missed=st.just("all")
    | st.dictionaries(topics, st.lists(st.tuples(partitions, partitions), max_size=3), max_size=3),
)
gone = st.builds(
    e.PartitionDeleted,
    topic=topics,
    partition=partitions,
    observed_at=seconds,
    topic_id=optional(names),
)
acks = st.builds(
    e.Ack,
    fingerprint=names,
    observed_at=seconds,
    topic=optional(topics),
    partition=optional(partitions),
)
checkpoints = st.builds(
    e.Checkpoint,
    topic=topics,
    partition=partitions,
    observed_at=seconds,
    broker=brokers,
    high_watermark=optional(offsets),
)
changes = st.builds(
    e.MetadataChange,
    topic=topics,
    partition=partitions,
    observed_at=seconds,
    metadata_offset=offsets,
    leader_epoch=epochs,
    partition_epoch=epochs,
    in_sync_replicas=broker_lists,
)
states = st.builds(
    e.BrokerState, broker=brokers, observed_at=seconds, fenced=optional(st.booleans())
)
audits = st.builds(
    e.Audit,
    topic=topics,
    partition=partitions,
    observed_at=seconds,
    brokers=broker_lists,
    offset=offsets,
    crcs=st.lists(st.integers(0, 2**32 - 1)),
)
escrows = st.builds(
    e.Escrow,
    topic=topics,
    partition=partitions,
    observed_at=seconds,
    topic_id=optional(names),
    ranges=st.lists(st.tuples(offsets, offsets, optional(epochs)), max_size=8),
    kept_until=optional(seconds),
)
any_event = observations | passes | gone | acks | checkpoints | changes | states | audits | escrows
batches = st.builds(
    e.Batch,
    v=st.just(2),
    cluster=topics,
    collector=names,
    collector_epoch=st.integers(0, 2**63 - 1),
    pass_number=st.integers(0, 2**40),
    events=st.lists(any_event, max_size=5),
)

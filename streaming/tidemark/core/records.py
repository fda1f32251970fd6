"""What Tidemark concludes: one form of records for the topics, `replay --json` and the API.

`{"type": "alert", …}` and `{"type": "view", …}`, version 1. Times are Unix seconds as floats,
offsets are record offsets; an unknown field is absent. An alert is published once per transition
and id. The sink delivers at least once, so readers drop ids that they know. A view is the newest
state of its key, and contains the open alerts.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from tidemark.core.broker_report import BrokerConfiguration, LogDirectory
from tidemark.core.codec import UNREADABLE
from tidemark.core.errors import WireError
from tidemark.core.events import JmxFigures, Milliseconds, Seconds
from tidemark.core.identity import partition_key

RECORD_VERSION: Final = 1
MAX_EVIDENCE_DEPTH: Final = 16
# The labels and annotations that readers rely on.
_LABELS: Final = ("alertname", "kafka_cluster", "severity")
_ANNOTATIONS: Final = ("description",)

# Bounds that no reader computes beyond; the meaning of a number is its writer's.
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

Severity = Literal["critical", "warning", "info"]
AlertState = Literal["firing", "update", "resolved"]
# Why an alert resolved: the condition is absent, the severity changed, the partition was deleted,
# no view asserted it while passes arrived, an operator acknowledged it, an event reached its age.
Reason = Literal[
    "cleared", "escalated", "deleted", "state_lost", "acked", "expired", "removed", "folded"
]


class Alert(Struct, tag="alert", tag_field="type", kw_only=True, omit_defaults=True):
    """One transition of one alert. `labels` identify it; values are annotations and evidence."""

    v: int = RECORD_VERSION
    # The same transition has the same id in every run of a batch.
    id: str
    # 16 hex digits of SHA-256 over the sorted labels.
    fingerprint: str
    state: AlertState
    # kafka_cluster, alertname, severity, and where they apply topic, partition, broker, incident.
    labels: dict[str, str]
    # summary (one static sentence), description (with values).
    annotations: dict[str, str]
    # Samples, epochs, in-sync replicas, ranges "proven" and "exposed" as [from, to), confidence.
    evidence: dict[str, Any] = {}
    starts_at: Seconds
    ends_at: Seconds | None = None
    reason: Reason | None = None
    # The time of the pass (or event) that made this transition.
    at: Seconds


class CheckpointView(Struct, kw_only=True, omit_defaults=True, gc=False):
    """The checkpoint files of a replica as last read on its broker's host."""

    high_watermark: Int64 | None = None
    # Records from here on are not known to be flushed.
    recovery_point: Int64 | None = None
    log_start_offset: Int64 | None = None
    # The first offset that the cleaner has not compacted yet.
    first_dirty_offset: Int64 | None = None
    # (leader epoch, its first offset), ascending, the newest ones.
    lineage_starts: list[tuple[Int64, Int64]] | None = None
    modified_at: Seconds | None = None
    read_at: Seconds
    # The live high watermark - the one on disk, and the live log end offset - the recovery point:
    # upper bounds, because the file may be newer than its reading.
    behind_records: Int64 | None = None
    unflushed_records: Int64 | None = None


class ReplicaView(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One replica in the view of a partition: its last sample and what follows from it."""

    broker: Int64
    log_end_offset: Int64 | None = None
    high_watermark: Int64 | None = None
    log_start_offset: Int64 | None = None
    last_stable_offset: Int64 | None = None
    leader_epoch: Int64 | None = None
    in_sync: bool | None = None
    # Lower bound of the leader's log end offset - this one; `inferred`: from the high watermark.
    lag_records: Int64 | None = None
    lag_ms: Milliseconds | None = None
    inferred: bool = False
    # Of a follower that answers with a high watermark below the leader's: the age at the leader of
    # the first record in between.
    high_watermark_lag_ms: Milliseconds | None = None
    # Until the leader removes it from the in-sync set, unless it catches up. An estimate; absent
    # while it is not behind, and where replica.lag.time.max.ms of the leader was not read.
    isr_removal_earliest_ms: Milliseconds | None = None
    isr_removal_latest_ms: Milliseconds | None = None
    error: str | None = None
    sampled_at: Seconds | None = None
    # Bytes of its segments when the log directories were read last.
    size_bytes: Int64 | None = None
    lineage: list[tuple[Int64, Int64]] | None = None
    checkpoint: CheckpointView | None = None


class AddingView(Struct, kw_only=True, omit_defaults=True, gc=False):
    """A replica that a reassignment adds: what it still has to copy, and for how long.

    The time is a range at the pace of the last minutes; an absent end is not in sight.
    """

    broker: Int64
    remaining_records: Int64 | None = None
    # By the sizes of both logs when the log directories were read last.
    remaining_bytes: Int64 | None = None
    earliest_ms: Milliseconds | None = None
    latest_ms: Milliseconds | None = None


class LastCommittedView(Struct, kw_only=True, omit_defaults=True, gc=False):
    """What the last leader of a partition was seen to commit, for as long as none answers."""

    # The highest of any epoch, without offsets that are known to be lost or deleted.
    high_watermark: Int64
    # The highest log end offset that was seen at the last leader.
    log_end_offset: Int64
    leader: Int64 | None = None
    leader_epoch: Int64 | None = None
    # Its newest reading. What it committed afterwards was not seen.
    read_at: Seconds | None = None
    # (time, its log end offset), newest last, at most 16.
    log_end_offsets: list[tuple[Seconds, Int64]] = []
    lineage: list[tuple[Int64, Int64]] | None = None
    lineage_complete_from: Int64 | None = None


class OpenAlert(Struct, kw_only=True, omit_defaults=True):
    """An open alert in a view: enough to assert or show it without the alert topic."""

    id: str
    fingerprint: str
    labels: dict[str, str]
    annotations: dict[str, str]
    evidence: dict[str, Any] = {}
    starts_at: Seconds


class ShrinkCounts(Struct, kw_only=True, omit_defaults=True):
    """ISR shrinks since `since`: by the leader's JMX, and as collectors sampled them."""

    since: Seconds
    by_jmx: Int64
    sampled: Int64
    # Those of `sampled` in which every removed replica was on a broker that did not answer: the
    # controller has probably removed them, which the leader does not count.
    of_absent: Int64
    # Since when by_jmx is not between sampled - of_absent and sampled; absent while it is, and for
    # the first 30 s.
    differs_since: Seconds | None = None


class JmxView(Struct, kw_only=True, omit_defaults=True):
    """What a broker or a controller reported by JMX at `read_at`."""

    read_at: Seconds
    # Operations that wait.
    produce_purgatory: Int64 | None = None
    fetch_purgatory: Int64 | None = None
    elect_leader_purgatory: Int64 | None = None
    # Its counters are those of the process.
    figures: JmxFigures
    isr_shrinks: ShrinkCounts | None = None
    # By a controller, since the time beside it, over restarts of its process.
    unclean_leader_elections: Int64 | None = None
    unclean_leader_elections_since: Seconds | None = None


class View(Struct, tag="view", tag_field="type", kw_only=True, omit_defaults=True, gc=False):
    """The newest state of one key: a partition, a broker or a whole cluster (`scope`)."""

    v: int = RECORD_VERSION
    scope: Literal["partition", "broker", "cluster"]
    kafka_cluster: str
    at: Seconds
    pass_number: Int64
    collector: str
    topic: str | None = None
    partition: Int64 | None = None
    topic_id: str | None = None
    leader: Int64 | None = None
    leader_epoch: Int64 | None = None
    leaderless: bool = False
    assigned: list[Int64] = []
    in_sync_replicas: list[Int64] | None = None
    eligible_leader_replicas: list[Int64] | None = None
    adding: list[Int64] = []
    removing: list[Int64] = []
    # One for each of `adding`.
    adding_progress: list[AddingView] = []
    effective_min_in_sync_replicas: Int64 | None = None
    # replica.lag.time.max.ms of the leader, while an in-sync replica lags.
    replica_lag_time_max_ms: Milliseconds | None = None
    # unclean.leader.election.enable of the topic, and the replicas that the topic's configuration
    # throttles.
    unclean_leader_election: bool | None = None
    throttled_replicas: list[Int64] | None = None
    # Whether several replicas are in sync, all on one rack, although the cluster has others; absent
    # where a rack is not known.
    in_sync_on_one_rack: bool | None = None
    # The highest that the leader reported in its epoch; before the first one, of any epoch.
    high_watermark: Int64 | None = None
    log_end_offset: Int64 | None = None
    log_start_offset: Int64 | None = None
    # While no leader answers.
    last_committed: LastCommittedView | None = None
    # Leader log end offset - high watermark, and the age of the oldest of these records.
    uncommitted_records: Int64 | None = None
    uncommitted_ms: Milliseconds | None = None
    # (epoch, end offset), ascending; from `lineage_complete_from` on, none is missing.
    lineage: list[tuple[Int64, Int64]] | None = None
    lineage_complete_from: Int64 | None = None
    replicas: list[ReplicaView] = []
    # Passes in a row that did not see the partition: it is blind, neither healthy nor lost.
    missed_passes: Int64 = 0
    # (time, in-sync replicas), newest last, at most 16.
    isr_history: list[tuple[Seconds, list[Int64]]] = []
    alerts: list[OpenAlert] = []
    # scope "broker": its number and how it answered; scope "cluster": how each broker answered.
    broker: Int64 | None = None
    outcome: str | None = None
    # scope "broker": whether the controller has fenced it; partitions whose preferred leader it is,
    # and those that it leads; how long an orderly restart explains its absence; the incarnation of
    # its process.
    fenced: bool | None = None
    preferred: Int64 | None = None
    preferred_led: Int64 | None = None
    in_grace_until: Seconds | None = None
    incarnation: Int64 | None = None
    # scope "broker": what it reported of itself last; absent once that is too old.
    log_directories: list[LogDirectory] | None = None
    configuration: BrokerConfiguration | None = None
    rack: str | None = None
    # scope "broker", where its log directories are read: when the oldest high watermark checkpoint
    # file was written and read, and whether the newest stop that was seen was clean.
    checkpoint_modified_at: Seconds | None = None
    checkpoint_read_at: Seconds | None = None
    stopped_clean: bool | None = None
    stopped_at: Seconds | None = None
    # scope "broker": the newest figures, absent once they are older than a minute; scope "cluster":
    # those of nodes that are no brokers, by node.
    jmx: JmxView | None = None
    jmx_of_nodes: dict[str, JmxView] = {}
    broker_outcomes: dict[str, str] = {}
    cluster_id: str | None = None
    partitions: Int64 | None = None
    period_ms: Milliseconds | None = None
    quorum_leader: Int64 | None = None
    quorum_epoch: Int64 | None = None
    # scope "cluster": partitions under reassignment, watched or not.
    reassigning: Int64 | None = None
    # scope "cluster", by node of the metadata quorum, brokers included: how long ago the quorum's
    # leader last saw it caught up, and the end of its metadata log.
    metadata_lag_ms: dict[str, Milliseconds] = {}
    metadata_log_end_offsets: dict[str, Int64] = {}
    # Second copies that `tidemark escrow` holds: (start, end, leader epoch).
    escrow: list[tuple[Int64, Int64, Int64 | None]] = []
    # Fields that were left out because the record would be too large (`reduce.rows`).
    cut: list[str] = []


class DeadLetter(Struct, tag="dead_letter", tag_field="type", kw_only=True, omit_defaults=True):
    """A record, or one of its events, that was not readable. The rest was processed."""

    v: int = RECORD_VERSION
    reason: str
    field: str
    partition: int
    offset: int
    length: int
    sha256: str
    # Base64 of the first 64 KiB.
    payload: str
    at: float


Record = Alert | View | DeadLetter

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Alert | View | DeadLetter] = msgspec.json.Decoder(
    Alert | View | DeadLetter
)


def encode_record(record: Record) -> bytes:
    """JSON of one record, without a line end."""
    return _encoder.encode(record)


def decode_record(data: bytes | str) -> Record:
    """Decodes one record. Raises WireError when it is none, or none that readers can show."""
    try:
        record = _decoder.decode(data)
    except UNREADABLE as error:
        raise WireError(str(error) or type(error).__name__) from None
    if isinstance(record, View):
        _check_view(record)
    elif isinstance(record, Alert):
        _check_alert(record, "$")
    return record


def _check_view(view: View) -> None:
    if view.scope == "partition" and (view.topic is None or view.partition is None):
        raise WireError("the view of a partition lacks topic or partition", "$.topic")
    if view.scope == "broker" and view.broker is None:
        raise WireError("the view of a broker lacks its number", "$.broker")
    for index, alert in enumerate(view.alerts):
        _check_alert(alert, f"$.alerts[{index}]")


def _check_alert(alert: Alert | OpenAlert, field: str) -> None:
    for name in _LABELS:
        if name not in alert.labels:
            raise WireError(f"the alert has no label {name}", f"{field}.labels")
    for name in _ANNOTATIONS:
        if name not in alert.annotations:
            raise WireError(f"the alert has no annotation {name}", f"{field}.annotations")
    # Evidence is free-form: level by level, because a recursion could go too deep.
    level: list[Any] = [alert.evidence]
    for _ in range(MAX_EVIDENCE_DEPTH):
        if any(isinstance(v, int | float) and not abs(v) < 2**63 for v in level):
            raise WireError("a number is beyond 64 bits", f"{field}.evidence")
        containers = [v for v in level if isinstance(v, dict | list)]
        nested = [v.values() if isinstance(v, dict) else v for v in containers]
        level = [value for values in nested for value in values]
        if not level:
            return
    raise WireError(f"more than {MAX_EVIDENCE_DEPTH} levels deep", f"{field}.evidence")


def view_key(
    kafka_cluster: str,
    topic: str | None = None,
    partition: int | None = None,
    broker: int | None = None,
) -> str:
    """The key of a view: `cluster`, `cluster/broker` or `cluster/topic/partition`."""
    if topic is not None and partition is not None:
        return partition_key(kafka_cluster, topic, partition)
    return kafka_cluster if broker is None else f"{kafka_cluster}/{broker}"

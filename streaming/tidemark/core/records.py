"""What Tidemark concludes: the one record form of the topics, of `replay --json` and of the API.

`{"type": "alert", …}` and `{"type": "view", …}`, version 1. Times are Unix seconds as floats, offsets are record
offsets; a field that is not known is absent. An alert is published once per transition and id; the sink is
at-least-once, so readers drop ids they have seen. A view is the newest state of its key; open alerts stand inside it.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from tidemark.core.identity import partition_key

RECORD_VERSION: Final = 1

Severity = Literal["critical", "warning", "info"]
AlertState = Literal["firing", "update", "resolved"]
# Why an alert ended (or was replaced): the condition is gone, its severity changed, its partition was deleted, it was
# not asserted again while passes flowed, an operator acknowledged it, or an event alert reached 24 hours.
Reason = Literal["cleared", "escalated", "deleted", "state_lost", "acked", "expired"]


class Alert(Struct, tag="alert", tag_field="type", kw_only=True, omit_defaults=True):
    """One transition of one alert. Identity is `labels` alone; values live in annotations and evidence."""

    v: int = RECORD_VERSION
    # The same transition has the same id however often a batch is run again.
    id: str
    # 16 hex digits of SHA-256 over the sorted labels.
    fingerprint: str
    state: AlertState
    # kafka_cluster, alertname, severity, and where they apply topic, partition, broker, incident.
    labels: dict[str, str]
    # summary (one static sentence), description (with values), runbook_url.
    annotations: dict[str, str]
    # Samples, epochs, in-sync replicas before and after, ranges "proven" and "exposed" as [from, to), confidence.
    evidence: dict[str, Any] = {}
    starts_at: float
    ends_at: float | None = None
    reason: Reason | None = None
    # The time of the pass (or event) that made this transition.
    at: float


class ReplicaView(Struct, kw_only=True, omit_defaults=True):
    """One replica in a partition's view: its last known sample and what follows from it."""

    broker: int
    log_end_offset: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    leader_epoch: int | None = None
    in_sync: bool | None = None
    # Lower bound of leader log end offset - this log end offset; `inferred` when taken from the high watermark.
    lag_records: int | None = None
    lag_ms: float | None = None
    inferred: bool = False
    error: str | None = None
    sampled_at: float | None = None
    lineage: list[tuple[int, int]] | None = None


class OpenAlert(Struct, kw_only=True, omit_defaults=True):
    """An open alert inside a view: enough to re-assert or to show it without the alert topic."""

    id: str
    fingerprint: str
    labels: dict[str, str]
    annotations: dict[str, str]
    evidence: dict[str, Any] = {}
    starts_at: float


class View(Struct, tag="view", tag_field="type", kw_only=True, omit_defaults=True):
    """The newest state of one key: a partition (scope "partition"), a broker or a whole cluster."""

    v: int = RECORD_VERSION
    scope: Literal["partition", "broker", "cluster"]
    kafka_cluster: str
    at: float
    pass_number: int
    collector: str
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    leaderless: bool = False
    assigned: list[int] = []
    in_sync_replicas: list[int] | None = None
    eligible_leader_replicas: list[int] | None = None
    adding: list[int] = []
    removing: list[int] = []
    effective_min_in_sync_replicas: int | None = None
    # The highest that the leader showed in its epoch; until it has shown one, the highest of any epoch.
    high_watermark: int | None = None
    log_end_offset: int | None = None
    log_start_offset: int | None = None
    # Leader log end offset - high watermark, and the age of the oldest record in that window.
    uncommitted_records: int | None = None
    uncommitted_ms: float | None = None
    # The leader's last epochs, ascending (epoch, end offset); from `lineage_complete_from` on, none is missing.
    lineage: list[tuple[int, int]] | None = None
    lineage_complete_from: int | None = None
    replicas: list[ReplicaView] = []
    # Passes in a row that did not see this partition: "blind", neither healthy nor lost.
    missed_passes: int = 0
    # (time, in-sync replicas), newest last, at most 16.
    isr_history: list[tuple[float, list[int]]] = []
    alerts: list[OpenAlert] = []
    # scope "broker": its number and how it answered; scope "cluster": how each broker answered.
    broker: int | None = None
    outcome: str | None = None
    # scope "broker": whether the controller has fenced it, the partitions whose preferred leader it is and those of them that it
    # leads, until when its absence is put down to an orderly restart, and the incarnation of its process.
    fenced: bool | None = None
    preferred: int | None = None
    preferred_led: int | None = None
    in_grace_until: float | None = None
    incarnation: int | None = None
    broker_outcomes: dict[str, str] = {}
    cluster_id: str | None = None
    partitions: int | None = None
    period_ms: float | None = None
    quorum_leader: int | None = None
    quorum_epoch: int | None = None
    # Scope "cluster", by node of the metadata quorum (brokers too): how long ago its leader last saw the node caught up, and
    # how far the node's metadata log goes.
    metadata_lag_ms: dict[str, float] = {}
    metadata_log_end_offsets: dict[str, int] = {}


class DeadLetter(Struct, tag="dead_letter", tag_field="type", kw_only=True, omit_defaults=True):
    """A record, or one event of it, that could not be decoded. The rest of the record was processed."""

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
    """Reads one record. Raises `msgspec.DecodeError` (or its subclass `ValidationError`) when it is none."""
    return _decoder.decode(data)


def view_key(
    kafka_cluster: str,
    topic: str | None = None,
    partition: int | None = None,
    broker: int | None = None,
) -> str:
    """The key of a view in the compacted topic: `cluster`, `cluster/broker` or `cluster/topic/partition`."""
    if topic is not None and partition is not None:
        return partition_key(kafka_cluster, topic, partition)
    return kafka_cluster if broker is None else f"{kafka_cluster}/{broker}"

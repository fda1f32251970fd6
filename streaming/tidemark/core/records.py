"""What Tidemark concludes: one form of records for the topics, `replay --json` and the API.

`{"type": "alert", …}` and `{"type": "view", …}`, version 1. Times are Unix seconds as floats,
offsets are record offsets; an unknown field is absent. An alert is published once per transition
and id. The sink delivers at least once, so readers drop ids that they know. A view is the newest
state of its key, and contains the open alerts.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from tidemark.core.identity import partition_key

RECORD_VERSION: Final = 1

Severity = Literal["critical", "warning", "info"]
AlertState = Literal["firing", "update", "resolved"]
# Why an alert resolved: the condition is absent, the severity changed, the partition was deleted,
# no view asserted it while passes arrived, an operator acknowledged it, an event reached its age.
Reason = Literal["cleared", "escalated", "deleted", "state_lost", "acked", "expired"]


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
    # summary (one static sentence), description (with values), runbook_url.
    annotations: dict[str, str]
    # Samples, epochs, in-sync replicas, ranges "proven" and "exposed" as [from, to), confidence.
    evidence: dict[str, Any] = {}
    starts_at: float
    ends_at: float | None = None
    reason: Reason | None = None
    # The time of the pass (or event) that made this transition.
    at: float


class ReplicaView(Struct, kw_only=True, omit_defaults=True):
    """One replica in the view of a partition: its last sample and what follows from it."""

    broker: int
    log_end_offset: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    last_stable_offset: int | None = None
    leader_epoch: int | None = None
    in_sync: bool | None = None
    # Lower bound of the leader's log end offset - this one; `inferred`: from the high watermark.
    lag_records: int | None = None
    lag_ms: float | None = None
    inferred: bool = False
    error: str | None = None
    sampled_at: float | None = None
    lineage: list[tuple[int, int]] | None = None


class OpenAlert(Struct, kw_only=True, omit_defaults=True):
    """An open alert in a view: enough to assert or show it without the alert topic."""

    id: str
    fingerprint: str
    labels: dict[str, str]
    annotations: dict[str, str]
    evidence: dict[str, Any] = {}
    starts_at: float


class View(Struct, tag="view", tag_field="type", kw_only=True, omit_defaults=True):
    """The newest state of one key: a partition, a broker or a whole cluster (`scope`)."""

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
    # The highest that the leader reported in its epoch; before the first one, of any epoch.
    high_watermark: int | None = None
    log_end_offset: int | None = None
    log_start_offset: int | None = None
    # Leader log end offset - high watermark, and the age of the oldest of these records.
    uncommitted_records: int | None = None
    uncommitted_ms: float | None = None
    # (epoch, end offset), ascending; from `lineage_complete_from` on, none is missing.
    lineage: list[tuple[int, int]] | None = None
    lineage_complete_from: int | None = None
    replicas: list[ReplicaView] = []
    # Passes in a row that did not see the partition: it is blind, neither healthy nor lost.
    missed_passes: int = 0
    # (time, in-sync replicas), newest last, at most 16.
    isr_history: list[tuple[float, list[int]]] = []
    alerts: list[OpenAlert] = []
    # scope "broker": its number and how it answered; scope "cluster": how each broker answered.
    broker: int | None = None
    outcome: str | None = None
    # scope "broker": whether the controller has fenced it; partitions whose preferred leader it is,
    # and those that it leads; how long an orderly restart explains its absence; the incarnation of
    # its process.
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
    # scope "cluster", by node of the metadata quorum, brokers included: how long ago the quorum's
    # leader last saw it caught up, and the end of its metadata log.
    metadata_lag_ms: dict[str, float] = {}
    metadata_log_end_offsets: dict[str, int] = {}


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
    """Decodes one record. Raises `msgspec.DecodeError` when it is none."""
    return _decoder.decode(data)


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

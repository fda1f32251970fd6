"""Alerts, as the pages and the API list them: open ones, and in bounded memory those that ended."""

from __future__ import annotations

import heapq
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from sys import intern
from typing import Final, TypeVar

from msgspec import Struct

from tidemark.assess.health import SEVERITIES, alert_level, severity_rank
from tidemark.assess.losses import LOSS
from tidemark.core.errors import WireError
from tidemark.core.records import Alert, OpenAlert, decode_record
from tidemark.kafka.topic_reader import TopicReader
from tidemark_exporters.failures import Failures

# Past alerts kept, newest first. Losses have their own bound: other alerts cannot displace them.
MAX_PAST: Final = 10_000
MAX_PAST_LOSSES: Final = 1_000
# Records are compressed against the first one with the same alert name, or so much of it. Names
# beyond the bound share one.
MAX_SAMPLES: Final = 64
SAMPLE_BYTES: Final = 4_096
# No header and no checksum: the compressed form never leaves the process.
RAW_DEFLATE: Final = -15


class PastAlert(Struct, frozen=True, order=True, gc=False):
    """An alert that ended: what lists choose by, and its record, compressed.

    Ordered by its end. It has no dictionary of labels, which would take as much as all the rest.
    """

    ended_at: float
    # The hash of its id, which is as unique and takes a third of the memory.
    key: int
    starts_at: float
    # Labels, under their own names. Alerts share most values.
    kafka_cluster: str | None
    alertname: str | None
    severity: str | None
    topic: str | None
    partition: str | None
    broker: str | None
    incident: str | None
    # As `_compressed` makes it, and what it refers to.
    record: bytes
    sample: bytes

    def alert(self) -> Alert:
        """The whole alert, for what is shown."""
        inflate = zlib.decompressobj(RAW_DEFLATE, zdict=self.sample)
        found = decode_record(inflate.decompress(self.record))
        assert isinstance(found, Alert)
        return found


def _compressed(record: bytes, sample: bytes) -> bytes:
    deflate = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=RAW_DEFLATE, zdict=sample)
    return deflate.compress(record) + deflate.flush()


def _shared(label: str | None) -> str | None:
    """The same string for equal labels. An interned one goes with its last alert."""
    return None if label is None else intern(label)


class AlertHistory:
    """Written by one thread, read by many."""

    def __init__(self, max_past: int = MAX_PAST, max_losses: int = MAX_PAST_LOSSES) -> None:
        # Whether the topic was read to its end.
        self.complete = False
        self._max = {False: max_past, True: max_losses}
        self._alerts: dict[int, PastAlert] = {}
        # By whether it is a loss: a heap, the first to end on top.
        self._ends: dict[bool, list[PastAlert]] = {False: [], True: []}
        self._samples: dict[str, bytes] = {}

    def add(self, alert: Alert, record: bytes) -> None:
        """Keeps an alert that ended, by its record. An escalated one goes on under a new severity.

        The record is not encoded again: what was decoded once is decodable.
        """
        if alert.state != "resolved" or alert.reason == "escalated":
            return
        key = hash(alert.id)
        if key in self._alerts:
            return
        labels = alert.labels
        is_loss = labels.get("alertname") == LOSS
        ends, sample = self._ends[is_loss], self._sample(labels.get("alertname", ""), record)
        past = PastAlert(
            ended_at=alert.ends_at or alert.at,
            key=key,
            starts_at=alert.starts_at,
            kafka_cluster=_shared(labels.get("kafka_cluster")),
            alertname=_shared(labels.get("alertname")),
            severity=_shared(labels.get("severity")),
            topic=_shared(labels.get("topic")),
            partition=_shared(labels.get("partition")),
            broker=_shared(labels.get("broker")),
            incident=labels.get("incident"),
            record=_compressed(record, sample),
            sample=sample,
        )
        self._alerts[key] = past
        heapq.heappush(ends, past)
        if len(ends) > self._max[is_loss]:
            del self._alerts[heapq.heappop(ends).key]

    def _sample(self, name: str, record: bytes) -> bytes:
        """The first record of an alert name; records of one name differ in little but numbers."""
        if name not in self._samples and len(self._samples) >= MAX_SAMPLES:
            name = ""
        return self._samples.setdefault(name, record[:SAMPLE_BYTES])

    def newest_first(self) -> list[PastAlert]:
        return sorted(self._alerts.values(), key=attrgetter("ended_at"), reverse=True)


def read_past_alerts(
    reader: TopicReader,
    history: AlertHistory,
    stopped: threading.Event,
    poll_ms: int = 500,
    failures: Failures | None = None,
) -> None:
    """Reads the alerts topic from its beginning until `stopped`.

    Delivery has a reader of its own, which starts at its committed offset and counts records that
    cannot be decoded. Raises ClusterError when the client gives up.
    """
    failures = failures or Failures()
    reader.start()
    while not stopped.is_set():
        for message in reader.poll(poll_ms):
            # Most records begin or repeat an alert: not worth decoding.
            if message.value is not None and b'"resolved"' in message.value:
                try:
                    record = decode_record(message.value)
                except WireError:
                    continue
                if isinstance(record, Alert):
                    with failures.guard("view", "past alerts"):
                        history.add(record, message.value)
        history.complete = history.complete or reader.caught_up()
    reader.close()


A = TypeVar("A", Alert, PastAlert)


def label_of(alert: Alert | PastAlert, name: str) -> str | None:
    """A label that lists choose by."""
    if isinstance(alert, Alert):
        return alert.labels.get(name)
    found: str | None = getattr(alert, name)
    return found


def open_alert_records(alerts: Iterable[OpenAlert], newest: dict[str, float]) -> list[Alert]:
    """Open alerts as records of the alerts topic, worst severity first, then newest first."""
    records: dict[str, Alert] = {}
    for alert in alerts:
        records[alert.fingerprint] = Alert(
            id=alert.id,
            fingerprint=alert.fingerprint,
            state="firing",
            labels=alert.labels,
            annotations=alert.annotations,
            evidence=alert.evidence,
            starts_at=alert.starts_at,
            at=newest.get(alert.labels.get("kafka_cluster", ""), alert.starts_at),
        )
    return sorted(records.values(), key=lambda alert: (severity_rank(alert), -alert.starts_at))


def select_alerts(alerts: Iterable[A], labels: Mapping[str, str | None]) -> list[A]:
    """The alerts with these labels, in their order. A null label matches every alert."""
    wanted = [(name, value) for name, value in labels.items() if value is not None]
    return [a for a in alerts if all(label_of(a, name) == value for name, value in wanted)]


def count_by_severity(alerts: Iterable[Alert]) -> dict[str, int]:
    counts = Counter(map(alert_level, alerts))
    return {severity: counts[severity] for severity in SEVERITIES}

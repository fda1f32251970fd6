"""The alerts that ended, from the alerts topic, in bounded memory."""

from __future__ import annotations

import heapq
import threading
import zlib
from operator import attrgetter
from sys import intern
from typing import Final, NamedTuple

from tidemark.core.errors import WireError
from tidemark.core.records import Alert, decode_record
from tidemark.kafka.topic_reader import TopicReader
from tidemark_exporters.failures import Failures

# Past alerts kept, newest first. Losses have their own bound: other alerts cannot displace them.
MAX_PAST: Final = 10_000
MAX_PAST_LOSSES: Final = 1_000
LOSS: Final = "KafkaCommittedDataLoss"
# What records have in common: their compressed form refers to it.
COMMON: Final = (
    b'"alertname":"KafkaUnderReplicatedKafkaIsrChangeKafkaHighWatermarkStalledKafkaBrokerDown'
    b'KafkaFollowerUnreachableKafkaFollowerLag","severity":"critical"info"warning","incident":"'
    b'"annotations":{"summary":"A follower\'s log is behind the leader\'s log end offset.",'
    b'"description":"Broker 1 (still in sync) is at least 1,000 records and 2.0 s behind leader 2 '
    b'in topic-0. It leaves the in-sync set in 10 to 20 s unless it catches up.","runbook_url":"'
    b'http://docs/runbooks#kafka"},"evidence":{"leader":1,"leader_epoch":1,"high_watermark":'
    b'"leader_log_end_offset":"follower_log_end_offset":"lag_records":"lag_ms":"inferred":false,'
    b'"in_sync_replicas":[1,2,3],"replicas":"missing":"sampled_at":"last_answer_at":'
    b'"silent_passes":"outcome":"timed_out"},"starts_at":1800000000.0,"ends_at":1800000000.0,'
    b'"reason":"cleared","at":1800000000.0}{"type":"alert","id":".resolved","fingerprint":"'
    b'"state":"resolved","labels":{"kafka_cluster":"topic":"partition":"broker":"'
)

_ended_at = attrgetter("ended_at")


class PastAlert(NamedTuple):
    """An alert that ended: what lists choose by, and its record, in a fifth of the memory."""

    labels: dict[str, str]
    fingerprint: str
    starts_at: float
    ended_at: float
    # As `compressed` makes it.
    record: bytes

    def alert(self) -> Alert:
        """The whole alert, for what is shown."""
        inflate = zlib.decompressobj(zdict=COMMON)
        found = decode_record(inflate.decompress(self.record))
        assert isinstance(found, Alert)
        return found


def compressed(record: bytes) -> bytes:
    deflate = zlib.compressobj(zdict=COMMON)
    return deflate.compress(record) + deflate.flush()


class AlertHistory:
    """Written by one thread, read by many."""

    def __init__(self, max_past: int = MAX_PAST, max_losses: int = MAX_PAST_LOSSES) -> None:
        # Whether the topic was read to its end.
        self.complete = False
        self._max = {False: max_past, True: max_losses}
        self._alerts: dict[str, PastAlert] = {}
        # By whether it is a loss: a heap of (end, id), the first to end on top.
        self._ends: dict[bool, list[tuple[float, str]]] = {False: [], True: []}

    def add(self, alert: Alert, record: bytes) -> None:
        """Keeps an alert that ended, by its record. An escalated one goes on under a new severity.

        The record is not encoded again: what was decoded once is decodable.
        """
        if alert.state != "resolved" or alert.reason == "escalated" or alert.id in self._alerts:
            return
        is_loss = alert.labels.get("alertname") == LOSS
        ends = self._ends[is_loss]
        past = PastAlert(
            # Alerts share most of their labels. An interned string goes with its last alert.
            {intern(name): intern(value) for name, value in alert.labels.items()},
            alert.fingerprint,
            alert.starts_at,
            alert.ends_at or alert.at,
            compressed(record),
        )
        self._alerts[alert.id] = past
        heapq.heappush(ends, (past.ended_at, alert.id))
        if len(ends) > self._max[is_loss]:
            _, oldest = heapq.heappop(ends)
            del self._alerts[oldest]

    def newest_first(self) -> list[PastAlert]:
        return sorted(self._alerts.values(), key=_ended_at, reverse=True)


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

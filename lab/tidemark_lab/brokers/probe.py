"""Polls every broker five times a second, one thread each, and keeps each sample with its time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import MetadataResponse

from tidemark_lab.brokers.broker_socket import (
    CONSUMER,
    DEBUGGING_REPLICA,
    BrokerSocket,
    latest_offset,
    metadata_request,
)
from tidemark_lab.brokers.reference_detector import ReferenceDetector, Sample

PERIOD_SECONDS: Final = 0.2
TIMEOUT_SECONDS: Final = 0.4
# Beyond any log: the response is the end of the requested epoch and no records.
_BEYOND: Final = 2**60


class Probe:
    """Watches one partition, apart from Tidemark, and dates each condition."""

    def __init__(
        self, addresses: Mapping[int, tuple[str, int]], topic: str, partition: int, file: Path
    ) -> None:
        self._addresses, self._topic, self._partition = dict(addresses), topic, partition
        self._detector = ReferenceDetector()
        self._file = file.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(b,), name=f"probe-{b}", daemon=True)
            for b in self._addresses
        ]

    def first(self, condition: str, since: float, broker: int | None = None) -> float | None:
        """When `condition` was first observed at or after `since`, Unix seconds."""
        with self._lock:
            return self._detector.first(condition, since, broker)

    def _run(self, broker: int) -> None:
        connection: BrokerSocket | None = None
        while not self._stop.wait(PERIOD_SECONDS):
            try:
                connection = connection or BrokerSocket(self._addresses[broker], TIMEOUT_SECONDS)
                sample = self._poll(connection, broker)
            except (OSError, ValueError, IndexError) as error:
                if connection is not None:
                    connection.close()
                connection = None
                sample = Sample(at=time.time(), broker=broker, error=type(error).__name__)
            with self._lock:
                if not self._file.closed:
                    self._file.write(json.dumps(asdict(sample)) + "\n")
                self._detector.feed(sample)
        if connection is not None:
            connection.close()

    def _poll(self, connection: BrokerSocket, broker: int) -> Sample:
        place = (self._topic, self._partition)
        topics = connection.send(metadata_request([self._topic]), MetadataResponse).topics
        metadata = next(
            (p for t in topics for p in t.partitions if p.partition_index == self._partition), None
        )
        if metadata is None:
            return Sample(at=time.time(), broker=broker)
        end = latest_offset(connection, *place, DEBUGGING_REPLICA)
        leads = metadata.leader_id == broker
        epoch = metadata.leader_epoch
        committed = latest_offset(connection, *place, CONSUMER, epoch) if leads else None
        with self._lock:
            epochs = self._detector.epochs_to_request(broker, epoch)
        ends = {e: self._epoch_end(connection, e) for e in epochs} if end is not None else {}
        return Sample(
            at=time.time(),
            broker=broker,
            leader=metadata.leader_id,
            leader_epoch=epoch,
            in_sync_replicas=tuple(metadata.isr_nodes),
            replicas=tuple(metadata.replica_nodes),
            log_end_offset=end,
            committed=committed,
            epoch_ends={epoch: offset for epoch, offset in ends.items() if offset is not None},
        )

    def _epoch_end(self, connection: BrokerSocket, epoch: int) -> int | None:
        """The end offset of the epochs up to `epoch` in this broker's own log."""
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=self._partition,
            fetch_offset=_BEYOND,
            last_fetched_epoch=epoch,
            current_leader_epoch=-1,
            partition_max_bytes=1,
        )
        topic = FetchRequest.FetchTopic(topic=self._topic, partitions=[partition])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, topics=[topic])
        # Version 12 is the first with epochs and the last with topic names.
        response: Any = connection.send(request, FetchResponse, 12).responses[0].partitions[0]
        diverging = response.diverging_epoch
        known = response.error_code == 0 and diverging is not None and diverging.epoch >= 0
        return int(diverging.end_offset) if known else None

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=2 * TIMEOUT_SECONDS + 2)
        with self._lock:
            self._file.close()

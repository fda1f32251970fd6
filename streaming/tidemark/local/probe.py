"""Looks at every broker five times a second, each from a thread of its own, and keeps what it saw with its time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kafka.protocol.metadata import MetadataResponse

from tidemark.local.conditions import Conditions, Sample
from tidemark.local.wire import BrokerSocket, metadata_request

PERIOD_SECONDS: Final = 0.2
TIMEOUT_SECONDS: Final = 0.4
_DEBUGGING_REPLICA: Final = -2
_CONSUMER: Final = -1
_LATEST: Final = -1
# Far above any log: the answer is where the replica's log leaves the asked epoch, and no records.
_BEYOND: Final = 2**60


class Probe:
    """Watches one partition. `conditions` tells when each condition was first to be seen from outside."""

    def __init__(
        self, addresses: Mapping[int, tuple[str, int]], topic: str, partition: int, file: Path
    ) -> None:
        self._addresses, self._topic, self._partition = dict(addresses), topic, partition
        self.conditions = Conditions()
        self._file = file.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(b,), name=f"probe-{b}", daemon=True)
            for b in self._addresses
        ]

    def first(self, condition: str, since: float, broker: int | None = None) -> float | None:
        """When `condition` could first be seen at or after `since`, Unix seconds."""
        with self._lock:
            return self.conditions.first(condition, since, broker)

    def _run(self, broker: int) -> None:
        connection: BrokerSocket | None = None
        while not self._stop.wait(PERIOD_SECONDS):
            try:
                connection = connection or BrokerSocket(self._addresses[broker], TIMEOUT_SECONDS)
                sample = self._look(connection, broker)
            except (OSError, ValueError, IndexError) as error:
                if connection is not None:
                    connection.close()
                connection = None
                sample = Sample(at=time.time(), broker=broker, error=type(error).__name__)
            with self._lock:
                if not self._file.closed:
                    self._file.write(json.dumps(asdict(sample)) + "\n")
                self.conditions.feed(sample)
        if connection is not None:
            connection.close()

    def _look(self, broker: BrokerSocket, number: int) -> Sample:
        topics = broker.ask(metadata_request([self._topic]), MetadataResponse).topics
        shown = next(
            (p for t in topics for p in t.partitions if p.partition_index == self._partition), None
        )
        if shown is None:
            return Sample(at=time.time(), broker=number)
        end = self._offset(broker, _DEBUGGING_REPLICA, -1)
        committed = (
            self._offset(broker, _CONSUMER, shown.leader_epoch)
            if shown.leader_id == number
            else None
        )
        with self._lock:
            epochs = self.conditions.epochs_to_ask(number, shown.leader_epoch)
        ends = (
            {epoch: self._epoch_end(broker, epoch) for epoch in epochs} if end is not None else {}
        )
        return Sample(
            at=time.time(),
            broker=number,
            leader=shown.leader_id,
            leader_epoch=shown.leader_epoch,
            in_sync_replicas=tuple(shown.isr_nodes),
            replicas=tuple(shown.replica_nodes),
            log_end_offset=end,
            committed=committed,
            epoch_ends={epoch: found for epoch, found in ends.items() if found is not None},
        )

    def _offset(self, broker: BrokerSocket, replica: int, leader_epoch: int) -> int | None:
        """The replica's own end (as debugging replica) or the leader's high watermark (as consumer, fenced by the epoch)."""
        wanted = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=self._partition, current_leader_epoch=leader_epoch, timestamp=_LATEST
        )
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self._topic, partitions=[wanted])
        request = ListOffsetsRequest(
            replica_id=replica, isolation_level=0, topics=[topic], timeout_ms=300
        )
        answer = broker.ask(request, ListOffsetsResponse).topics[0].partitions[0]
        return int(answer.offset) if answer.error_code == 0 and answer.offset >= 0 else None

    def _epoch_end(self, broker: BrokerSocket, epoch: int) -> int | None:
        """Where this broker's own log leaves the epochs up to `epoch`."""
        kinds = FetchRequest.FetchTopic
        wanted = kinds.FetchPartition(
            partition=self._partition,
            fetch_offset=_BEYOND,
            last_fetched_epoch=epoch,
            current_leader_epoch=-1,
            partition_max_bytes=1,
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1,
            topics=[kinds(topic=self._topic, partitions=[wanted])],
        )
        # Version 12 is the first with epochs and the last with topic names.
        answer: Any = broker.ask(request, FetchResponse, 12).responses[0].partitions[0]
        diverging = answer.diverging_epoch
        known = answer.error_code == 0 and diverging is not None and diverging.epoch >= 0
        return int(diverging.end_offset) if known else None

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=2 * TIMEOUT_SECONDS + 2)
        with self._lock:
            self._file.close()

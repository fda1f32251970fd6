"""Faults of transactions: one that no producer ends."""

from __future__ import annotations

from typing import Any, Final

from kafka.errors import KafkaError

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import Producer, close_producer
from tidemark_lab.brokers.cluster import LocalCluster, Place
from tidemark_lab.faults.topic_faults import TopicFault

# The broker's transaction.max.timeout.ms: the coordinator aborts it no earlier.
_TIMEOUT_MS: Final = 900_000
TRANSACTIONAL_ID: Final = "hanging"


class HangingTransaction(TopicFault):
    """A producer begins a transaction, writes a record, and neither commits nor aborts it."""

    name = "hanging transaction"

    def __init__(self, cluster: LocalCluster, place: Place) -> None:
        super().__init__(cluster, [place])
        self._producer: Any = None

    def inject(self) -> None:
        topic, partition = self.partitions[0]
        try:
            self._producer = Producer(
                bootstrap_servers=self._cluster.bootstrap_servers,
                transactional_id=TRANSACTIONAL_ID,
                transaction_timeout_ms=_TIMEOUT_MS,
            )
            self._producer.init_transactions()
            self._producer.begin_transaction()
            self._producer.send(topic, value=b"open", partition=partition).get(30)
        except KafkaError as error:
            raise ClusterError(f"the local cluster began no transaction: {error}") from None

    def heal(self) -> None:
        if self._producer is None:
            return
        try:
            self._producer.abort_transaction()
        except KafkaError as error:
            raise ClusterError(f"the local cluster aborted no transaction: {error}") from None
        finally:
            close_producer(self._producer, 1.0)
            self._producer = None

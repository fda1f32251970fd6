"""Connections and producers of the tests' own clients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tidemark.kafka.client import make_producer
from tidemark.settings import Connection
from tidemark_lab.brokers.cluster import LocalCluster


def connection(brokers: LocalCluster) -> Connection:
    return Connection(bootstrap_servers=brokers.bootstrap_servers)


@contextmanager
def producer_of(brokers: LocalCluster, **options: Any) -> Iterator[Any]:
    """By default with acks=all. What it sent is on its way to no broker at the end."""
    producer = make_producer(connection(brokers), **{"acks": "all", **options})
    yield producer
    producer.flush(30)
    producer.close(timeout=5)

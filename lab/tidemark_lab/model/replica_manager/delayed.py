"""Requests that wait in a broker's purgatories, and the response that ends a follower's wait.

Mirrors DelayedProduce, DelayedFetch, DelayedDeleteRecords and FetchIsolation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from tidemark_lab.model.log import Log

# Kafka's defaults: how long a fetch waits for records (replica.fetch.wait.max.ms and
# fetch.max.wait.ms), and how long a producer waits for its response (request.timeout.ms).
FETCH_WAIT_MS: Final = 500
REQUEST_TIMEOUT_MS: Final = 30_000


class FetchIsolation(Enum):
    """Where a fetch stops: followers at the log end, consumers at one of the other two."""

    LOG_END = "log end offset"
    HIGH_WATERMARK = "high watermark"
    TXN_COMMITTED = "last stable offset"


@dataclass(frozen=True)
class DelayedProduce:
    """A produce request with acks=all. It waits until the high watermark is `required_offset`.

    `elsewhere`: it also waits for a partition that the model does not have.
    """

    records: tuple[int, ...]
    required_offset: int
    deadline_ms: int
    elsewhere: bool = False


@dataclass(frozen=True)
class DelayedFetch:
    """A fetch of a follower or a consumer that found nothing. It waits at most FETCH_WAIT_MS.

    A consumer's number is negative, so that it differs from every broker: see `reader_name`.
    `completed`: another partition completed it, and the list of this one still has its entry.
    """

    reader: int
    offset: int
    deadline_ms: int
    isolation: FetchIsolation = FetchIsolation.LOG_END
    completed: bool = False


@dataclass(frozen=True)
class DelayedDeleteRecords:
    """A DeleteRecords request. It waits until the low watermark is `required_offset`."""

    required_offset: int
    deadline_ms: int


@dataclass(frozen=True)
class FetchResponse:
    """A fetch response in transit: records from `offset` and the high watermark, or why not.

    `diverging` is (epoch, its end offset) if the logs diverge.
    """

    leader: int
    offset: int
    records: Log = ()
    high_watermark: int = 0
    diverging: tuple[int, int] | None = None
    error: str | None = None
    log_start_offset: int = 0


def reader_name(reader: int) -> str:
    """A follower's broker id, or the name of a consumer: C1, C2, …"""
    return str(reader) if reader > 0 else f"C{-reader}"

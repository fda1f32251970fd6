"""Brokers before Kafka 2.7, which have no Fetch v12: kafka-python's own messages, fewer facts.

Fetch v11 (2.3) is answered by followers; up to v3 (0.10) with replica −2; between them a follower answers error 6 and
its high watermark stays unknown. Log end offsets come from ListOffsets, a moment earlier. No lineage is read here.
"""

from __future__ import annotations

import time
from typing import Any

from kafka.protocol.consumer import FetchRequest

from tidemark.collect.links import Link, LinkError
from tidemark.collect.plan import Asked, BrokerPlan, Subset
from tidemark.collect.wire import FETCH


async def probe(link: Link, plan: BrokerPlan, subset: Subset, seconds: float) -> Asked:
    """Fetches at the log end offset each replica just named, and fills `plan.fetched`. Raises LinkError."""
    version = link.version(FETCH, 11)
    if version is None:
        raise LinkError("unsupported")
    sent = time.monotonic()
    answer = await link.ask(request_at_ends(plan, subset, version), seconds)
    asked = Asked(sent, time.monotonic())
    lay(answer, plan, subset)
    return asked


def request_at_ends(plan: BrokerPlan, subset: Subset, version: int) -> Any:
    """A Fetch of no bytes at each slot's log end offset, for versions 0 to 11."""
    topic_class = FetchRequest.FetchTopic
    topics = []
    index = iter(subset.indices)
    for topic, numbers in subset.blocks:
        partitions = []
        for number in numbers:
            latest = plan.latest[next(index)]
            end = latest[2] if latest is not None and latest[1] == 0 and latest[2] >= 0 else 0
            partitions.append(
                topic_class.FetchPartition(
                    partition=number,
                    current_leader_epoch=-1,
                    fetch_offset=end,
                    last_fetched_epoch=-1,
                    log_start_offset=-1,
                    partition_max_bytes=1,
                )
            )
        topics.append(topic_class(topic=topic, partitions=partitions))
    request = FetchRequest(
        replica_id=-2 if version <= 3 else -1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=topics,
        forgotten_topics_data=[],
        rack_id="",
    )
    request.API_VERSION = version
    return request


def lay(answer: Any, plan: BrokerPlan, subset: Subset) -> None:
    """kafka-python's answer as entries beside their slots, marked as plain."""
    topics = []
    for topic in answer.responses:
        entries = [
            (
                p.partition_index,
                p.error_code,
                p.high_watermark,
                _or_unknown(p.last_stable_offset),
                _or_unknown(p.log_start_offset),
                -1,
                -1,
            )
            for p in topic.partitions
        ]
        topics.append((topic.topic, entries))
    subset.lay(topics, plan.fetched)
    plan.plain.update(subset.indices)


def _or_unknown(value: int | None) -> int:
    return -1 if value is None else value

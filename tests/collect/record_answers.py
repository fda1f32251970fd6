"""Records answers of real brokers: `python -m tests.collect.record_answers [VERSION ...]`.

Starts three brokers of each version of Kafka, asks broker 1 with the collector's own requests, and
writes whole frames to tests/testdata/answers.json. They are recorded twice: of a healthy cluster,
and after broker 3 has stopped, with wrong leader epochs, unknown topics and partitions.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any, Final, TypedDict

from kafka import KafkaProducer
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.consumer import FetchRequest

from tests.conftest import ROOT
from tidemark.collect.codecs.fetch import BEYOND, FetchTemplate
from tidemark.collect.codecs.list_offsets import CONSUMER, DEBUG_REPLICA, ListOffsetsTemplate
from tidemark.collect.codecs.metadata import encode_metadata_request
from tidemark.collect.codecs.topic_configuration import TOPIC_OPTIONS
from tidemark.collect.codecs.wire import GroupedPartitions
from tidemark.collect.legacy.epoch_end_offset import encode_epoch_end_offsets
from tidemark.collect.legacy.legacy_reads import encode_legacy_fetch
from tidemark.collect.metadata.admin_queries import TOPIC_RESOURCE
from tidemark_lab.brokers.broker_socket import fetch_metadata
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.wait import wait_until

ANSWERS: Final = ROOT / "tests" / "testdata" / "answers.json"
OLD_VERSION: Final = "0.11.0.3"
ASKED, STOPPED = 1, 3
PARTITIONS: Final = 6
RECORDS: Final = 20
# Orders' leaders are 1, 2, 3, 1, 2, 3; broker 3 alone has the topic `audit`.
ASSIGNED: Final = {
    "orders": {n: [1 + n % 3, 1 + (n + 1) % 3, 1 + (n + 2) % 3] for n in range(PARTITIONS)},
    "audit": {0: [STOPPED]},
}
HEALTHY: Final[GroupedPartitions] = (("orders", tuple(range(PARTITIONS))),)
# After the stop: broker 1 leads 0, 2, 3 and 5, and 2 and 5 in epoch 1.
ODD: Final[GroupedPartitions] = (
    ("orders", (*range(PARTITIONS), 77)),
    ("audit", (0,)),
    ("absent", (0,)),
)
FENCES: Final = [0, 0, 0, 9, -1, 1, -1, -1, -1]
EPOCHS: Final = [0, -1, 0, 0, 5, 0, 0, 0, 0]
TIMEOUT_SECONDS: Final = 20.0

Named = tuple[str, int, int, Any]


class Answer(TypedDict):
    """A frame with its size and header, in hexadecimal digits."""

    name: str
    api_key: int
    version: int
    frame: str


def main(versions: list[str]) -> None:
    found = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    for version in versions or [KAFKA_VERSION, OLD_VERSION]:
        found[version] = record(version)
    ANSWERS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def record(version: str) -> list[Answer]:
    old = version == OLD_VERSION
    with LocalCluster(version=version) as cluster:
        for topic, places in ASSIGNED.items():
            cluster.create_topic(topic, places)
        _write(cluster)
        address = cluster.address(ASKED)
        requests = old_requests(healthy=True) if old else new_requests(healthy=True)
        answers = [_ask(address, each) for each in requests]
        cluster.stop_broker(STOPPED)
        wait_until(lambda: _is_leaderless(address), 60.0, "the topic `audit` has no leader")
        requests = old_requests(healthy=False) if old else new_requests(healthy=False)
        return answers + [_ask(address, each) for each in requests]


def new_requests(healthy: bool) -> Iterator[Named]:
    word = "" if healthy else ", errors"
    topics = HEALTHY if healthy else ODD
    size = sum(len(numbers) for _, numbers in topics)
    epochs, fences = ([0] * size, [0] * size) if healthy else (EPOCHS, FENCES)
    for version in (9, 12):
        yield f"Metadata{word}", 3, version, encode_metadata_request(version)
    for version in (1, 5, 9):
        template = ListOffsetsTemplate(topics, version, DEBUG_REPLICA if healthy else CONSUMER)
        yield f"ListOffsets{word}", 2, version, template.request(fences)
    fetched = FetchTemplate(topics).request(epochs, fences, [BEYOND] * size)
    yield f"Fetch{word}", 1, 12, fetched
    if healthy:
        yield "Fetch, at the end", 1, 12, FetchTemplate(topics).request([-1] * 6, fences, [20] * 6)
        yield "Fetch, records", 1, 12, _fetch_records()
    yield f"Fetch{word}", 1, 11, encode_legacy_fetch(topics, [RECORDS] * size, 11)
    yield f"OffsetForLeaderEpoch{word}", 23, 3, encode_epoch_end_offsets(topics, epochs, fences, 3)
    names = ["orders"] if healthy else ["orders", "absent"]
    yield f"DescribeConfigs{word}", 32, 4, _describe_configs(names)


def old_requests(healthy: bool) -> Iterator[Named]:
    word = "" if healthy else ", errors"
    topics = HEALTHY if healthy else ODD
    size = sum(len(numbers) for _, numbers in topics)
    epochs, fences = ([0] * size, [0] * size) if healthy else (EPOCHS, FENCES)
    template = ListOffsetsTemplate(topics, 2, DEBUG_REPLICA if healthy else CONSUMER)
    yield f"ListOffsets{word}", 2, 2, template.request(fences)
    yield f"Fetch{word}", 1, 5, encode_legacy_fetch(topics, [RECORDS] * size, 5)
    yield f"OffsetForLeaderEpoch{word}", 23, 0, encode_epoch_end_offsets(topics, epochs, fences, 0)


def _fetch_records() -> Any:
    """Tidemark never asks for records; an answer with them must decode all the same."""
    topic_class = FetchRequest.FetchTopic
    partitions = [
        topic_class.FetchPartition(
            partition=number,
            current_leader_epoch=-1,
            fetch_offset=RECORDS - 2,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=200,
        )
        for number in (0, 3)
    ]
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1_000,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[topic_class(topic="orders", partitions=partitions)],
        forgotten_topics_data=[],
        rack_id="",
    )


def _describe_configs(names: list[str]) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(
                resource_type=TOPIC_RESOURCE,
                resource_name=name,
                configuration_keys=list(TOPIC_OPTIONS),
            )
            for name in names
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def _write(cluster: LocalCluster) -> None:
    """As many records to each partition; returns when every replica knows that they are read."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, acks="all", enable_idempotence=False
    )
    for _ in range(RECORDS):
        sent = [
            producer.send(topic, b"record", partition=number)
            for topic, places in ASSIGNED.items()
            for number in places
        ]
        for each in sent:
            each.get(timeout=TIMEOUT_SECONDS)
    producer.close()
    # A follower hears of the high watermark with its next fetch.
    time.sleep(2.0)


def _is_leaderless(address: tuple[str, int]) -> bool:
    audit, orders = fetch_metadata(address, ["audit", "orders"]).topics
    leaders = {p.partition_index: p.leader_id for p in orders.partitions}
    return bool(audit.partitions[0].leader_id < 0 and leaders[2] == leaders[5] == ASKED)


def _ask(address: tuple[str, int], named: Named) -> Answer:
    name, api_key, version, request = named
    request.API_VERSION = version
    request.with_header(correlation_id=7, client_id="tidemark")
    with socket.create_connection(address, TIMEOUT_SECONDS) as connection:
        connection.sendall(request.encode(header=True, framed=True))
        size = _read(connection, 4)
        frame = size + _read(connection, struct.unpack(">i", size)[0])
    print(f"{name} v{version}: {len(frame)} bytes", flush=True)
    return Answer(name=name, api_key=api_key, version=version, frame=frame.hex())


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionResetError("the broker closed the connection")
        data += part
    return data


if __name__ == "__main__":
    main(sys.argv[1:])

"""The answers of tests/testdata/answers.json, and both decodings of each: ours and the library's.

`record_answers.py` records them again.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.consumer import FetchRequest, FetchResponse, OffsetForLeaderEpochRequest
from kafka.protocol.consumer import ListOffsetsResponse as LibraryOffsets
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.parser import KafkaProtocol

from tests.collect.record_answers import ANSWERS, Answer
from tidemark.collect.codecs.fetch import decode_fetch
from tidemark.collect.codecs.list_offsets import decode_list_offsets
from tidemark.collect.codecs.metadata import METADATA, MetadataDecoder
from tidemark.collect.codecs.metadata_image import BrokerAddress
from tidemark.collect.codecs.wire import FETCH, LIST_OFFSETS, RawRequest
from tidemark.collect.metadata.read_metadata import decode_topic

# The first version of each API whose header and body have tagged fields.
FLEXIBLE = {FETCH: 12, LIST_OFFSETS: 6, METADATA: 9}
LIBRARY_REQUESTS = {
    FETCH: FetchRequest,
    23: OffsetForLeaderEpochRequest,
    32: DescribeConfigsRequest,
}


class Recorded(NamedTuple):
    kafka: str
    name: str
    api_key: int
    version: int
    frame: bytes

    def __str__(self) -> str:
        return f"{self.kafka} {self.name} v{self.version}"

    @property
    def has_codec(self) -> bool:
        """Whether Tidemark decodes the bytes; otherwise, kafka-python does."""
        return self.api_key in (LIST_OFFSETS, METADATA) or (
            self.api_key == FETCH and self.version == FLEXIBLE[FETCH]
        )

    def response(self) -> Any:
        """As the connection gives it: through kafka-python's parser, which reads whole frames."""
        request: Any
        if self.has_codec:
            is_flexible = self.version >= FLEXIBLE[self.api_key]
            request = RawRequest(self.api_key, self.version, b"", is_flexible)
        else:
            request = LIBRARY_REQUESTS[self.api_key]()
            request.API_VERSION = self.version
        protocol = KafkaProtocol(client_id="t")
        correlation = struct.pack(">i", protocol.send_request(request))
        ((_, response),) = protocol.receive_bytes(self.frame[:4] + correlation + self.frame[8:])
        return response


def recorded_answers() -> list[Recorded]:
    found: dict[str, list[Answer]] = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return [
        Recorded(
            kafka, each["name"], each["api_key"], each["version"], bytes.fromhex(each["frame"])
        )
        for kafka, answers in found.items()
        for each in answers
    ]


def decode(api_key: int, body: bytes, version: int) -> Any:
    """By Tidemark's codec."""
    if api_key == METADATA:
        return MetadataDecoder().decode(body, version)
    return decode_fetch(body) if api_key == FETCH else decode_list_offsets(body, version)


def decode_by_library(api_key: int, body: bytes, version: int) -> Any:
    """By kafka-python, in the form of `decode`."""
    if api_key == METADATA:
        return metadata(MetadataResponse.decode(body, version=version))
    if api_key == FETCH:
        answer = FetchResponse.decode(body, version=version)
        shown = [(t.topic, [fetch_entry(p) for p in t.partitions]) for t in answer.responses]
        return answer.error_code, shown
    return [
        (topic.name, [offset_entry(p, version) for p in topic.partitions])
        for topic in LibraryOffsets.decode(body, version=version).topics
    ]


def try_library(api_key: int, body: bytes, version: int) -> Any:
    """`decode_by_library`; None where it fails.

    It decodes fields that the codec skips: a tagged field by its schema, although KIP-482 allows
    unknown fields and gives each its size; names and nulls in it.
    """
    try:
        return decode_by_library(api_key, body, version)
    except (AssertionError, IndexError, TypeError, ValueError, struct.error):
        return None


def metadata(answer: Any) -> tuple[Any, ...]:
    return (
        {n.node_id: BrokerAddress(n.host, n.port, n.rack or None) for n in answer.brokers},
        answer.cluster_id or None,
        answer.controller_id,
        {t.name: decode_topic(t) for t in answer.topics},
    )


def fetch_entry(partition: Any) -> tuple[int, ...]:
    """The library's partition of an answer as an entry of `decode_fetch`."""
    end = partition.diverging_epoch
    return (
        partition.partition_index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        *((-1, -1) if end is None else (end.epoch, end.end_offset)),
    )


def offset_entry(partition: Any, version: int) -> tuple[int, ...]:
    """The library's partition of an answer as an entry of `decode_list_offsets`."""
    epoch = partition.leader_epoch if version >= 4 else -1
    return partition.partition_index, partition.error_code, partition.offset, epoch

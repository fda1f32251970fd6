from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)

from tests.collect.recorded_answers import fetch_entry, offset_entry
from tidemark.collect.codecs import fetch, list_offsets
from tidemark.collect.codecs.fetch import FetchTemplate, decode_fetch
from tidemark.collect.codecs.list_offsets import ListOffsetsTemplate, decode_list_offsets

NAMES = st.text(alphabet="abcXYZ019._-é", min_size=1, max_size=140)
INT32 = st.integers(-1, 2**31 - 1)
OFFSETS = st.integers(-1, 2**63 - 1)
VERSIONS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9])


@st.composite
def blocks(draw: st.DrawFn) -> tuple[tuple[str, tuple[int, ...]], ...]:
    names = draw(st.lists(NAMES, max_size=5, unique=True))
    return tuple(
        (name, tuple(draw(st.lists(st.integers(0, 2**31 - 1), max_size=9, unique=True))))
        for name in names
    )


def count(asked: tuple[tuple[str, tuple[int, ...]], ...]) -> int:
    return sum(len(partitions) for _, partitions in asked)


@given(blocks(), VERSIONS, st.sampled_from([-1, -2]), st.data())
def test_list_offsets_requests_equal_the_librarys(
    asked: Any, version: int, replica: int, data: st.DataObject
) -> None:
    template = ListOffsetsTemplate(asked, version, replica)
    for _ in range(2):
        # The second time the bytes of the first are patched.
        fences = data.draw(st.lists(INT32, min_size=count(asked), max_size=count(asked)))
        column = iter(fences)
        topic_class = ListOffsetsRequest.ListOffsetsTopic
        topics = [
            topic_class(
                name=topic,
                partitions=[
                    topic_class.ListOffsetsPartition(
                        partition_index=n, current_leader_epoch=next(column), timestamp=-1
                    )
                    for n in numbers
                ],
            )
            for topic, numbers in asked
        ]
        theirs = ListOffsetsRequest(replica_id=replica, isolation_level=0, topics=topics)
        theirs.API_VERSION = version
        theirs.with_header(correlation_id=77, client_id="tidemark")
        ours = template.request(fences)
        ours.with_header(correlation_id=77, client_id="tidemark")
        assert ours.encode() == theirs.encode(header=True, framed=True)


@given(blocks(), st.data())
def test_fetch_requests_equal_the_librarys(asked: Any, data: st.DataObject) -> None:
    template = FetchTemplate(asked)
    size = count(asked)
    for _ in range(2):
        epochs = data.draw(st.lists(INT32, min_size=size, max_size=size))
        fences = data.draw(st.lists(INT32, min_size=size, max_size=size))
        offsets = data.draw(st.lists(OFFSETS, min_size=size, max_size=size))
        rows = iter(zip(epochs, fences, offsets, strict=True))
        topic_class = FetchRequest.FetchTopic
        topics = [
            topic_class(
                topic=topic,
                partitions=[
                    topic_class.FetchPartition(
                        partition=number,
                        current_leader_epoch=fence,
                        fetch_offset=offset,
                        last_fetched_epoch=epoch,
                        log_start_offset=-1,
                        partition_max_bytes=0,
                    )
                    for number, (epoch, fence, offset) in zip(numbers, rows, strict=False)
                ],
            )
            for topic, numbers in asked
        ]
        theirs = FetchRequest(
            replica_id=-1,
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
        theirs.API_VERSION = 12
        theirs.with_header(correlation_id=5, client_id="t")
        ours = template.request(epochs, fences, offsets)
        ours.with_header(correlation_id=5, client_id="t")
        assert ours.encode() == theirs.encode(header=True, framed=True)


@st.composite
def list_offsets_answers(draw: st.DrawFn) -> Any:
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    topics = []
    for name, numbers in draw(blocks()):
        partitions = [
            topic_class.ListOffsetsPartitionResponse(
                partition_index=number,
                error_code=draw(st.sampled_from([0, 0, 0, 6, 74, 75, 78])),
                timestamp=-1,
                offset=draw(OFFSETS),
                leader_epoch=draw(INT32),
            )
            for number in numbers
        ]
        topics.append(topic_class(name=name, partitions=partitions))
    return ListOffsetsResponse(throttle_time_ms=draw(st.integers(0, 1000)), topics=topics)


@given(list_offsets_answers(), VERSIONS)
def test_list_offsets_answers_decode_as_the_librarys(answer: Any, version: int) -> None:
    data = bytes(answer.encode(version=version))
    theirs = ListOffsetsResponse.decode(data, version=version)
    expected = [(t.name, [offset_entry(p, version) for p in t.partitions]) for t in theirs.topics]
    assert decode_list_offsets(data, version) == expected


@st.composite
def fetch_answers(draw: st.DrawFn) -> Any:
    topic_class = FetchResponse.FetchableTopicResponse
    part_class = topic_class.PartitionData
    # Healthy answers are decoded by strides; one with an odd entry must not be.
    odd = draw(st.sampled_from(["none", "none", "errors", "mixed"]))
    topics = []
    for name, numbers in draw(blocks()):
        partitions = []
        for number in numbers:
            kind = (
                "healthy"
                if odd == "none"
                else draw(st.sampled_from(["healthy", "error", "leader", "records", "aborted"]))
            )
            if odd == "errors":
                kind = "error"
            extra: dict[str, Any] = {}
            if kind != "error":
                extra["diverging_epoch"] = part_class.EpochEndOffset(
                    epoch=draw(INT32), end_offset=draw(OFFSETS)
                )
            if kind == "leader":
                extra["current_leader"] = part_class.LeaderIdAndEpoch(
                    leader_id=1, leader_epoch=draw(INT32)
                )
            aborted = (
                [part_class.AbortedTransaction(producer_id=3, first_offset=4)]
                if kind == "aborted"
                else draw(st.sampled_from([None, []]))
            )
            partitions.append(
                part_class(
                    partition_index=number,
                    error_code=draw(st.sampled_from([1, 6, 74, 75, 56])) if kind == "error" else 0,
                    high_watermark=draw(OFFSETS),
                    last_stable_offset=draw(OFFSETS),
                    log_start_offset=draw(OFFSETS),
                    aborted_transactions=aborted,
                    preferred_read_replica=draw(INT32),
                    records=draw(st.binary(min_size=1, max_size=90))
                    if kind == "records"
                    else draw(st.sampled_from([None, b""])),
                    **extra,
                )
            )
        topics.append(topic_class(topic=name, partitions=partitions))
    return FetchResponse(
        throttle_time_ms=0, error_code=0, session_id=0, responses=topics, node_endpoints=[]
    )


@given(fetch_answers())
@settings(max_examples=200)
def test_fetch_answers_decode_as_the_librarys(answer: Any) -> None:
    data = bytes(answer.encode(version=12))
    theirs = FetchResponse.decode(data, version=12)
    expected = [(t.topic, [fetch_entry(p) for p in t.partitions]) for t in theirs.responses]
    assert decode_fetch(data) == (0, expected)


def test_versions_outside_the_codec_are_refused() -> None:
    for version in (0, 10):
        with pytest.raises(ValueError, match="not encoded"):
            ListOffsetsTemplate((), version, -2)
    assert fetch.VERSION == 12
    assert list_offsets.MAX_VERSION == 9

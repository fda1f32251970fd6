"""Metadata answers, decoded as kafka-python decodes them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from tests.collect import wire_answers
from tests.collect.recorded_answers import decode_by_library
from tidemark.collect.codecs.metadata import (
    MAX_VERSION,
    METADATA,
    MIN_VERSION,
    MetadataDecoder,
    encode_metadata_request,
)
from tidemark.collect.codecs.metadata_image import PartitionMetadata, TopicMetadata

VERSIONS = st.integers(MIN_VERSION, MAX_VERSION)
INT32 = st.integers(-1, 2**31 - 1)
NAMES = st.text(alphabet="abcXYZ019._-é", min_size=1, max_size=140)
BROKERS = st.lists(st.integers(0, 2**31 - 1), max_size=4)

topic_class = MetadataResponse.MetadataResponseTopic
PARTITIONS = st.builds(
    topic_class.MetadataResponsePartition,
    error_code=st.sampled_from([0, 0, 0, 5, 9, 72]),
    partition_index=st.integers(0, 2**31 - 1),
    leader_id=INT32,
    leader_epoch=INT32,
    replica_nodes=BROKERS,
    isr_nodes=BROKERS,
    offline_replicas=BROKERS,
)
TOPICS = st.builds(
    topic_class,
    error_code=st.sampled_from([0, 0, 0, 3, 29]),
    name=NAMES,
    topic_id=st.one_of(st.just(uuid.UUID(int=0)), st.uuids()),
    is_internal=st.booleans(),
    partitions=st.lists(PARTITIONS, max_size=6, unique_by=lambda p: p.partition_index),
    authorized_operations=st.none(),
)
NODES = st.builds(
    MetadataResponse.MetadataResponseBroker,
    node_id=st.integers(0, 2**31 - 1),
    host=NAMES,
    port=st.integers(0, 65535),
    rack=st.one_of(st.none(), NAMES),
)


@st.composite
def answers(draw: st.DrawFn) -> Any:
    return MetadataResponse(
        throttle_time_ms=draw(st.integers(0, 1000)),
        brokers=draw(st.lists(NODES, max_size=4, unique_by=lambda n: n.node_id)),
        cluster_id=draw(st.one_of(st.none(), NAMES)),
        controller_id=draw(INT32),
        topics=draw(st.lists(TOPICS, max_size=5, unique_by=lambda t: t.name)),
        authorized_operations=None,
    )


@pytest.mark.parametrize("version", range(MIN_VERSION, MAX_VERSION + 1))
def test_requests_equal_the_librarys(version: int) -> None:
    theirs = MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    theirs.API_VERSION = version
    theirs.with_header(correlation_id=7, client_id="tidemark")
    ours = encode_metadata_request(version)
    ours.with_header(correlation_id=7, client_id="tidemark")
    assert ours.encode() == theirs.encode(header=True, framed=True)


@given(st.lists(answers(), min_size=1, max_size=2), VERSIONS)
@settings(max_examples=40)
def test_answers_decode_as_the_librarys(several: list[Any], version: int) -> None:
    decoder = MetadataDecoder()
    for answer in several:
        data = bytes(answer.encode(version=version))
        assert decoder.decode(data, version) == decode_by_library(METADATA, data, version)


def encoded(topics: dict[str, int], controller: int = 1) -> bytes:
    """Topics with one partition and the given leader epoch."""
    shown = {
        name: {0: PartitionMetadata(1, epoch, (1, 2), (1, 2), 0)} for name, epoch in topics.items()
    }
    listed = [(name, None, 0, partitions) for name, partitions in shown.items()]
    return wire_answers.metadata({}, "c", controller, listed, 12)


def test_topics_that_did_not_change_are_the_same_objects() -> None:
    decoder = MetadataDecoder()
    first = decoder.decode(encoded({"a": 1, "b": 1, "c": 1}), 12)
    same = decoder.decode(encoded({"a": 1, "b": 1, "c": 1}, controller=2), 12)
    assert same.topics is first.topics
    assert same.controller == 2
    other = decoder.decode(encoded({"c": 1, "b": 2, "d": 1}), 12).topics
    assert list(other) == ["c", "b", "d"]
    assert other["c"] is first.topics["c"]
    assert isinstance(other["b"], TopicMetadata)
    assert other["b"].partitions[0].leader_epoch == 2

"""Answers of real brokers, decoded as kafka-python decodes them, whole and damaged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.errors import KafkaProtocolError
from kafka.protocol.admin import DescribeConfigsRequest

from tests.collect import test_codecs, test_metadata_codec
from tests.collect.record_answers import OLD_VERSION, PARTITIONS, RECORDS
from tests.collect.recorded_answers import (
    Recorded,
    decode,
    decode_by_library,
    recorded_answers,
    try_library,
)
from tidemark.collect.codecs import fetch
from tidemark.collect.codecs.list_offsets import decode_list_offsets
from tidemark.collect.codecs.metadata import METADATA, MetadataDecoder
from tidemark.collect.codecs.topic_configuration import TopicConfiguration, decode_configuration
from tidemark.collect.codecs.wire import FETCH, LIST_OFFSETS
from tidemark.collect.legacy.epoch_end_offset import (
    OFFSET_FOR_LEADER_EPOCH,
    decode_epoch_end_offsets,
)
from tidemark.collect.legacy.legacy_reads import decode_legacy_fetch
from tidemark.core.errors import WireError
from tidemark_lab.brokers.jars import KAFKA_VERSION

ANSWERS = recorded_answers()
BY_CODEC = [each for each in ANSWERS if each.has_codec]
BY_LIBRARY = [each for each in ANSWERS if not each.has_codec]
# Each bit of a byte, and all of them.
FLIPS = (*(1 << bit for bit in range(8)), 0xFF)
# Size and correlation: the connection's.
HEADER = 8
CONFIGS = DescribeConfigsRequest.API_KEY
UNKNOWN_PARTITION, NOT_LEADER, FENCED, UNKNOWN_EPOCH = 3, 6, 74, 75
# What broker 1 answers to the wrong requests: it leads 0, 2, 3 and 5 of orders.
FENCED_ANSWERS = {
    ("orders", 0): 0,
    ("orders", 1): NOT_LEADER,
    ("orders", 2): FENCED,
    ("orders", 3): UNKNOWN_EPOCH,
    ("orders", 4): NOT_LEADER,
    ("orders", 5): 0,
    ("orders", 77): UNKNOWN_PARTITION,
    ("audit", 0): NOT_LEADER,
    ("absent", 0): UNKNOWN_PARTITION,
}


def one(name: str, version: int, kafka: str = KAFKA_VERSION) -> Recorded:
    (found,) = (
        each for each in ANSWERS if (each.kafka, each.name, each.version) == (kafka, name, version)
    )
    return found


def decoded(answer: Recorded) -> Any:
    response = answer.response()
    if answer.has_codec:
        return decode(answer.api_key, response.body, answer.version)
    return DECODERS[answer.api_key](response)


def configurations(response: Any) -> dict[str, Any]:
    """Topic -> its options, or the error."""
    return {
        each.resource_name: each.error_code
        or decode_configuration({option.name: option.value for option in each.configs})
        for each in response.results
    }


# Of kafka-python's messages.
DECODERS: dict[int, Callable[[Any], Any]] = {
    FETCH: decode_legacy_fetch,
    OFFSET_FOR_LEADER_EPOCH: decode_epoch_end_offsets,
    CONFIGS: configurations,
}


def errors(entries: list[tuple[str, list[Any]]]) -> dict[tuple[str, int], int]:
    return {(topic, entry[0]): entry[1] for topic, rows in entries for entry in rows}


@pytest.mark.parametrize("answer", BY_CODEC, ids=str)
def test_an_answer_decodes_as_the_librarys(answer: Recorded) -> None:
    body = answer.response().body
    assert decode(answer.api_key, body, answer.version) == decode_by_library(
        answer.api_key, body, answer.version
    )


@pytest.mark.parametrize("answer", BY_CODEC, ids=str)
def test_a_changed_byte_gives_an_error_or_the_librarys_result(answer: Recorded) -> None:
    """Each byte of the answer in turn."""
    whole = answer.response().body
    refused = compared = 0
    for where in range(len(whole)):
        for flip in FLIPS:
            changed = bytearray(whole)
            changed[where] ^= flip
            try:
                ours = decode(answer.api_key, bytes(changed), answer.version)
            except WireError:
                refused += 1
                continue
            theirs = try_library(answer.api_key, bytes(changed), answer.version)
            compared += theirs is not None
            assert theirs in (None, ours), (where, flip)
    assert refused
    assert compared > len(whole)


@pytest.mark.parametrize("answer", BY_CODEC, ids=str)
def test_a_truncated_or_lengthened_answer_is_refused(answer: Recorded) -> None:
    whole = answer.response().body
    for wrong in (*(whole[:end] for end in range(len(whole))), whole + b"\x00"):
        with pytest.raises(WireError):
            decode(answer.api_key, wrong, answer.version)


# kafka-python raises any error for damaged DescribeConfigs: these are decoded whole only.
@pytest.mark.parametrize("answer", [a for a in BY_LIBRARY if a.api_key != CONFIGS], ids=str)
def test_a_changed_byte_of_the_librarys_raises_only_typed_errors(answer: Recorded) -> None:
    for where in range(HEADER, len(answer.frame)):
        for flip in FLIPS:
            changed = bytearray(answer.frame)
            changed[where] ^= flip
            damaged = answer._replace(frame=bytes(changed))
            with contextlib.suppress(WireError, KafkaProtocolError):
                decoded(damaged)


def test_a_healthy_cluster_has_the_written_records_everywhere() -> None:
    numbers = range(PARTITIONS)
    for version, epoch in ((1, -1), (5, 0), (9, 0)):
        shown = decoded(one("ListOffsets", version))
        assert shown == [("orders", [(n, 0, RECORDS, epoch) for n in numbers])]
    steady = [(n, 0, RECORDS, RECORDS, 0, 0, RECORDS) for n in numbers]
    assert decoded(one("Fetch", 12)) == (0, [("orders", steady)])
    for name, chosen in (("Fetch, at the end", numbers), ("Fetch, records", (0, 3))):
        plain = [(n, 0, RECORDS, RECORDS, 0, -1, -1) for n in chosen]
        assert decoded(one(name, 12)) == (0, [("orders", plain)])
    for answer in (one("Fetch", 11), one("Fetch", 5, OLD_VERSION)):
        ((_, rows),) = decoded(answer)
        assert [row[1:3] for row in rows] == [(0, RECORDS)] * PARTITIONS
    for answer, epoch in (
        (one("OffsetForLeaderEpoch", 3), 0),
        (one("OffsetForLeaderEpoch", 0, OLD_VERSION), -1),
    ):
        ((_, rows),) = decoded(answer)
        # Broker 1 leads these, and only the leader answers.
        assert {row[0]: row[2:] for row in rows if not row[1]} == {
            0: (epoch, RECORDS),
            3: (epoch, RECORDS),
        }


@pytest.mark.parametrize(
    ("name", "version"), [("ListOffsets", 5), ("ListOffsets", 9), ("OffsetForLeaderEpoch", 3)]
)
def test_a_leader_fences_wrong_epochs(name: str, version: int) -> None:
    assert errors(decoded(one(f"{name}, errors", version))) == FENCED_ANSWERS


def test_any_replica_answers_fetch_and_fences_it() -> None:
    code, topics = decoded(one("Fetch, errors", 12))
    # No epoch to look for, and one beyond the newest: the offset is out of range.
    anything = {("orders", 1): 1, ("orders", 4): 1}
    assert (code, errors(topics)) == (0, FENCED_ANSWERS | anything)
    # The broker names a topic twice.
    assert [topic for topic, _ in topics] == ["orders", "audit", "orders", "absent"]


@pytest.mark.parametrize("version", [9, 12])
def test_metadata_shows_the_stopped_broker(version: int) -> None:
    before = decoded(one("Metadata", version))
    after = decoded(one("Metadata, errors", version))
    assert (set(before.brokers), set(after.brokers)) == ({1, 2, 3}, {1, 2})
    orders = {n: (p.leader, p.leader_epoch) for n, p in after.topics["orders"].partitions.items()}
    assert orders == {0: (1, 0), 1: (2, 0), 2: (1, 1), 3: (1, 0), 4: (2, 0), 5: (1, 1)}
    assert all(set(p.in_sync) == {1, 2} for p in after.topics["orders"].partitions.values())
    (alone,) = after.topics["audit"].partitions.values()
    assert (alone.leader, alone.error, alone.in_sync, alone.replicas) == (-1, 5, (), (3,))


def test_configurations_of_a_topic_and_of_an_absent_one() -> None:
    plain = TopicConfiguration(1, False, False, frozenset())
    assert decoded(one("DescribeConfigs", 4)) == {"orders": plain}
    assert decoded(one("DescribeConfigs, errors", 4)) == {
        "orders": plain,
        "absent": UNKNOWN_PARTITION,
    }


# Damaged answers are refused, or decoded as kafka-python decodes them.


class Codec(NamedTuple):
    """Whole answers of an API, its versions, and a new decoder.

    What a decoder has read before must not matter: that of metadata remembers its topics.
    """

    api_key: int
    answers: st.SearchStrategy[Any]
    versions: st.SearchStrategy[int]
    make: Callable[[], Callable[[bytes, int], object]]


CODECS = [
    Codec(
        FETCH,
        test_codecs.fetch_answers(),
        st.just(fetch.VERSION),
        lambda: lambda body, _: fetch.decode_fetch(body),
    ),
    Codec(
        LIST_OFFSETS,
        test_codecs.list_offsets_answers(),
        test_codecs.VERSIONS,
        lambda: decode_list_offsets,
    ),
    Codec(
        METADATA,
        test_metadata_codec.answers(),
        test_metadata_codec.VERSIONS,
        lambda: MetadataDecoder().decode,
    ),
]
each_codec = pytest.mark.parametrize("codec", CODECS, ids=["fetch", "list_offsets", "metadata"])


@each_codec
@given(data=st.data())
def test_a_truncated_or_lengthened_random_answer_is_refused(
    codec: Codec, data: st.DataObject
) -> None:
    version, decode = data.draw(codec.versions), codec.make()
    whole = bytes(data.draw(codec.answers).encode(version=version))
    if data.draw(st.booleans()):
        decode(whole, version)
    cut = data.draw(st.integers(0, len(whole) - 1))
    for wrong in (whole[:cut], whole + data.draw(st.binary(min_size=1, max_size=60))):
        with pytest.raises(WireError):
            decode(wrong, version)


@each_codec
@given(data=st.data())
@settings(max_examples=300)
def test_a_changed_byte_of_a_random_answer_gives_an_error_or_the_librarys_result(
    codec: Codec, data: st.DataObject
) -> None:
    version, decode = data.draw(codec.versions), codec.make()
    changed = bytearray(data.draw(codec.answers).encode(version=version))
    decode(bytes(changed), version)
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        ours = decode(bytes(changed), version)
    except WireError:
        return
    # Outside of any `suppress`: a difference is an AssertionError too.
    assert try_library(codec.api_key, bytes(changed), version) in (None, ours)


@each_codec
@given(data=st.data())
def test_arbitrary_bytes_raise_only_wire_errors(codec: Codec, data: st.DataObject) -> None:
    with contextlib.suppress(WireError):
        codec.make()(data.draw(st.binary(max_size=400)), data.draw(codec.versions))

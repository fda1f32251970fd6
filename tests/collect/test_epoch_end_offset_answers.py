"""OffsetForLeaderEpoch answers of any bytes: only typed errors, and no lineage that cannot be."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.errors import CorrelationIdError, KafkaProtocolError
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.parser import KafkaProtocol

from tests.collect.fake_broker import EPOCH_END_OFFSETS, FETCH, LIST_OFFSETS, METADATA
from tests.collect.fake_cluster import FakeCluster, outcomes, with_versions
from tests.collect.wire_answers import epoch_end_offsets
from tidemark.collect.legacy.epoch_end_offset import (
    MAX_VERSION,
    EpochEndOffset,
    decode_epoch_end_offsets,
    encode_epoch_end_offsets,
)
from tidemark.collect.legacy.leader_epoch_walk import MAX_ROUNDS, LeaderEpochWalk
from tidemark.collect.legacy.legacy_reads import decode_legacy_fetch
from tidemark.collect.watched.newest_epoch import MAX_EPOCH, MAX_SEARCHES, NewestEpoch
from tidemark.core.errors import WireError
from tidemark.core.events import MAX_LINEAGE, Observation

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
VERSIONS = st.integers(0, MAX_VERSION)
ENTRIES = st.lists(st.builds(EpochEndOffset, INT32, INT16, INT32, INT64), max_size=4)
NULL_TOPICS = struct.pack(">i", -1)
NULL_PARTITIONS = struct.pack(">ih1si", 1, 1, b"t", -1)


def decode(body: bytes, version: int) -> Any:
    """As the collector: through kafka-python's parser, which reads whole frames."""
    protocol = KafkaProtocol(client_id="t")
    request = encode_epoch_end_offsets((("t", (0,)),), [0], [-1], version)
    correlation = protocol.send_request(request)
    frame = struct.pack(">ii", len(body) + 4, correlation) + body
    ((_, response),) = protocol.receive_bytes(frame)
    return decode_epoch_end_offsets(response)


@given(ENTRIES, VERSIONS)
def test_every_answer_decodes_to_what_it_says(entries: list[EpochEndOffset], version: int) -> None:
    shown = [entry if version else (*entry[:2], -1, entry[3]) for entry in entries]
    assert decode(epoch_end_offsets([("t", entries)], version), version) == [("t", shown)]


@given(st.binary(max_size=200), VERSIONS)
@example(NULL_TOPICS, 0)
@example(NULL_PARTITIONS, 0)
@example(struct.pack(">i", 2**31 - 1), 0)
def test_arbitrary_bytes_raise_only_typed_errors(body: bytes, version: int) -> None:
    try:
        decode(body, version)
    except (WireError, KafkaProtocolError, CorrelationIdError):
        pass


@given(ENTRIES, VERSIONS, st.data())
def test_a_cut_or_changed_answer_raises_only_typed_errors(
    entries: list[EpochEndOffset], version: int, data: st.DataObject
) -> None:
    body = bytearray(epoch_end_offsets([("t", entries)], version))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(body[: data.draw(st.integers(0, len(body)))]), version)
    except (WireError, KafkaProtocolError):
        pass


@pytest.mark.parametrize("body", [NULL_TOPICS, NULL_PARTITIONS])
def test_a_null_array_is_a_wire_error(body: bytes) -> None:
    with pytest.raises(WireError, match="OffsetForLeaderEpoch answer: a null array"):
        decode(body, 0)
    with pytest.raises(WireError, match="Fetch answer: a null array"):
        decode_legacy_fetch(FetchResponse.decode(bytes(4) + body, version=3))


@given(
    st.integers(-1, MAX_EPOCH),
    st.integers(0, MAX_EPOCH),
    st.integers(0, MAX_SEARCHES),
    st.integers(0, 100),
    st.booleans(),
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 0, 0, 0, 0, 0, 0, 6, 29, 74]),
            INT32 | st.integers(-1, 12),
            INT64 | st.integers(-1, 100),
        ),
        min_size=MAX_ROUNDS,
        max_size=MAX_ROUNDS,
    ),
)
@example(MAX_EPOCH, 0, 0, 0, True, [(0, 2, -1), *[(0, 3, 9)] * (MAX_ROUNDS - 1)])
@example(3, 0, 0, 9, True, [(0, 3, 9), (0, 2, 50), *[(0, 0, 0)] * (MAX_ROUNDS - 2)])
def test_no_answers_give_a_lineage_that_no_log_can_have(
    known: int,
    newest_epoch: int,
    searches: int,
    end: int,
    is_whole: bool,
    answers: list[tuple[int, int, int]],
) -> None:
    newest = NewestEpoch(newest_epoch, searches=searches)
    walking = LeaderEpochWalk(newest, known, end, is_whole=is_whole)
    for error, epoch, end_offset in answers:
        if walking.asked is None:
            break
        # What is asked fits the request.
        assert 0 <= walking.asked <= MAX_EPOCH
        walking.take(EpochEndOffset(0, error, epoch, end_offset))
    entries = [] if walking.lineage is None else walking.lineage.entries
    assert len(entries) <= MAX_LINEAGE
    assert all(0 <= epoch <= MAX_EPOCH and shown >= 0 for epoch, shown in entries)
    assert all(
        older < newer and first <= last for (older, first), (newer, last) in pairwise(entries)
    )


KAFKA_2_3 = with_versions(
    {FETCH: (0, 11), LIST_OFFSETS: (0, 5), METADATA: (0, 8), EPOCH_END_OFFSETS: (0, 3)}
)
# Version 3 begins with the throttle time.
GARBAGE = {
    "cut": lambda body: body[:-3],
    "nothing": lambda _: b"",
    "null topics": lambda _: bytes(4) + NULL_TOPICS,
    "null partitions": lambda _: bytes(4) + NULL_PARTITIONS,
    "two billion topics": lambda _: struct.pack(">ii", 0, 2**31 - 1),
    "a name that is not UTF-8": lambda body: body.replace(b"t", b"\xff"),
}


@KAFKA_2_3
@pytest.mark.parametrize("garble", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_costs_one_broker_its_answer_and_no_other(
    cluster: FakeCluster, garble: Any
) -> None:
    cluster.topic("t", 9)
    cluster.brokers[0].garbles = lambda key, body: (
        garble(body) if key == EPOCH_END_OFFSETS else body
    )
    events = cluster.run(2)
    shown = outcomes(events)
    assert shown[1] not in ("ok", "timed_out"), shown
    assert (shown[2], shown[3]) == ("ok", "ok")
    observed = next(event for event in events if isinstance(event, Observation))
    assert observed.lineage is None
    assert {s.broker: s.log_end_offset for s in observed.samples if s.broker != 1} == {2: 9, 3: 9}
    cluster.brokers[0].garbles = lambda _, body: body
    assert cluster.run_until_ok(1)

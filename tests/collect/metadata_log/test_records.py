"""Records are read in each version; only WireError comes out of anything else."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collect.metadata_log.encoding import (
    BY_TYPE,
    change,
    encode_record,
    partition,
    registration,
    topic,
    topic_id,
)
from tidemark.collect.codecs.wire import encode_uvarint
from tidemark.collect.sources.metadata_log.records import (
    SCHEMAS,
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    EndTransactionRecord,
    FenceBrokerRecord,
    OtherRecord,
    RemoveTopicRecord,
    UnfenceBrokerRecord,
    UnlistedRecord,
    UnregisterBrokerRecord,
    decode_record,
    record_key,
)
from tidemark.core.errors import WireError

RECORDS = [
    topic(7, "orders"),
    partition(3, eligible_leader_replicas=[2], last_known_elr=[1]),
    partition(3, leader=-1, leader_recovery_state=1, removing_replicas=[1], adding_replicas=[4]),
    change(3, isr=[2], leader=-1, eligible_leader_replicas=[], last_known_elr=[2]),
    change(3, replicas=[1, 4], removing_replicas=[1], adding_replicas=[4]),
    change(3, leader_recovery_state=0),
    RemoveTopicRecord(topic_id(7)),
    ClearElrRecord("orders"),
    registration(1, 9, in_controlled_shutdown=True),
    UnregisterBrokerRecord(1),
    BrokerRegistrationChangeRecord(1, 1, 0),
    BrokerRegistrationChangeRecord(1, -1, 1),
    FenceBrokerRecord(1),
    UnfenceBrokerRecord(1),
    BeginTransactionRecord(),
    EndTransactionRecord(),
    AbortTransactionRecord(),
]


@pytest.mark.parametrize("record", RECORDS, ids=range(len(RECORDS)))
def test_a_record_is_read_as_it_was_written(record: Any) -> None:
    assert decode_record(encode_record(record)) == record
    assert record_key(encode_record(record)) == BY_TYPE[type(record)].key


@pytest.mark.parametrize("record", RECORDS, ids=range(len(RECORDS)))
def test_older_versions_leave_their_new_fields_at_the_default(record: Any) -> None:
    fields = BY_TYPE[type(record)].fields
    for version in range(BY_TYPE[type(record)].newest_version + 1):
        newer = {
            field.name: field.default
            for field in fields
            if field.since > version and field.name in record._fields
        }
        assert decode_record(encode_record(record, version)) == record._replace(**newer)


def test_unknown_tagged_fields_are_skipped() -> None:
    record = change(3, isr=[1])
    assert decode_record(encode_record(record, tags={40: b"new", 41: b""})) == record


def test_records_of_other_types_are_not_decoded() -> None:
    # A UserScramCredentialRecord (11): nothing of it is kept.
    assert decode_record(b"\x01\x0b\x00secret") == OtherRecord(11)


# As Kafka 4.3.1 and 4.4.0 write them (MetadataRecordSerde). The last tag of the first two types is
# CordonedLogDirs (KIP-1066): null, which is not written, empty, and one.
WRITTEN = [
    (
        (
            "010004000000070000000000000000050000000000000006000000000000002a020a504c41494e54"
            "4558540268238400000002116d657461646174612e76657273696f6e000100210002610101010021"
            "030000000000000001000000000000000200000000000000030000000000000004"
        ),
        registration(7, 42, in_controlled_shutdown=True),
    ),
    (
        (
            "010004000000070000000000000000050000000000000006000000000000002a020a504c41494e54"
            "4558540268238400000002116d657461646174612e76657273696f6e000100210002610101020021"
            "03000000000000000100000000000000020000000000000003000000000000000401110200000000"
            "000000030000000000000004"
        ),
        registration(7, 42, in_controlled_shutdown=True),
    ),
    (
        "01110300000007000000000000002a0300010101010102110200000000000000010000000000000002",
        BrokerRegistrationChangeRecord(7, 1, 1),
    ),
    (
        "01110300000007000000000000002a0400010101010102110200000000000000010000000000000002030101",
        BrokerRegistrationChangeRecord(7, 1, 1),
    ),
    (
        (
            "01110300000007000000000000002a04000101010101021102000000000000000100000000000000"
            "0203110200000000000000030000000000000004"
        ),
        BrokerRegistrationChangeRecord(7, 1, 1),
    ),
    # NoOpRecord, and UnregisterControllerRecord (KIP-1312), metadata version 33.
    ("01140000", OtherRecord(20)),
    ("011d000000006500", OtherRecord(29)),
]


@pytest.mark.parametrize(("value", "record"), WRITTEN, ids=range(len(WRITTEN)))
def test_the_records_of_kafka_4_3_and_4_4_are_read_to_their_last_byte(
    value: str, record: Any
) -> None:
    assert decode_record(bytes.fromhex(value)) == record
    if not isinstance(record, OtherRecord):
        with pytest.raises(WireError, match="left over"):
            decode_record(bytes.fromhex(value) + b"\x00")


def test_a_version_that_is_not_listed_is_named_and_says_what_rests_on_it() -> None:
    newer = {
        name: decode_record(encode_uvarint(1) + encode_uvarint(key) + b"\x09secret")
        for name, key in ((found.make.__name__, key) for key, found in SCHEMAS.items())
    }
    stops = {
        name: sorted(record.stops)
        for name, record in newer.items()
        if isinstance(record, UnlistedRecord)
    }
    brokers = [name for name, found in stops.items() if found == ["brokers"]]
    both = [name for name, found in stops.items() if found == ["brokers", "partitions"]]
    assert sorted(both) == [
        "AbortTransactionRecord",
        "BeginTransactionRecord",
        "EndTransactionRecord",
    ]
    assert all("Broker" in name for name in brokers)
    assert len(brokers) == 5
    assert newer.keys() == stops.keys()
    text = str(newer["RegisterBrokerRecord"])
    assert "what the log says of brokers is left out" in text
    assert "use a Tidemark that reads RegisterBrokerRecord version 9" in text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"", "truncated"),
        (b"\x02\x05\x00", "frame version 2"),
        (b"\x01\x09\x00" + bytes(15), "truncated"),
        (encode_record(RECORDS[0])[:-1], "truncated"),
        (encode_record(RECORDS[0]) + b"\x00", "left over"),
        (b"\x01\x02\x00\x00" + bytes(17), "null"),
        (b"\x01\x02\x00\x02\xff" + bytes(17), "UTF-8"),
        (b"\x01\x05\x00" + bytes(20) + b"\x01\x00\x06\x02" + bytes(5), "another size"),
        (b"\x01\x05\x00" + bytes(20) + b"\xff\xff\xff\xff\x0f", "tagged fields"),
        (b"\x01\x03\x00" + bytes(20) + b"\xff\xff\xff\xff\x0f", "array of"),
    ],
)
def test_damage_is_a_wire_error(value: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        decode_record(value)


@given(st.binary(max_size=80))
def test_random_bytes_are_a_record_or_a_wire_error(data: bytes) -> None:
    with contextlib.suppress(WireError):
        decode_record(b"\x01" + data)


@given(st.sampled_from(RECORDS), st.integers(0, 200), st.integers(0, 255), st.booleans())
def test_a_damaged_record_is_a_record_or_a_wire_error(
    record: Any, at: int, byte: int, cut: bool
) -> None:
    data = bytearray(encode_record(record))
    data[at % len(data)] = byte
    with contextlib.suppress(WireError):
        decode_record(bytes(data[: at % len(data)] if cut else data))

"""The records of `__cluster_metadata` that say what happened to partitions and brokers.

A value is a frame (MetadataRecordSerde): frame version, api key and version as unsigned varints,
then the fields. The tables mirror common/metadata/*.json of Kafka 3.3 to 4.4, and list each type
up to the version that was checked there: a newer one is not decoded. Other record types are not
decoded at all: configurations and SCRAM credentials hold secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import Final, Literal, NamedTuple

from tidemark.collect.sources.metadata_log.schema import (
    Field,
    RecordReader,
    RecordSchema,
    boolean,
    int8,
    int16,
    int32,
    int32s,
    int64,
    number,
    skipped,
    skipped_string,
    skipped_uuids,
    string,
    topic_uuid,
)

FRAME_VERSION: Final = 1
NO_LEADER: Final = -1
RECOVERING: Final = 1


class TopicRecord(NamedTuple):
    name: str
    topic_id: str


class PartitionRecord(NamedTuple):
    """A whole partition (PartitionRegistration, without directories)."""

    partition_id: int
    topic_id: str
    replicas: list[int]
    isr: list[int]
    removing_replicas: list[int]
    adding_replicas: list[int]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    eligible_leader_replicas: list[int]
    last_known_elr: list[int]

    def merge(self, change: PartitionChangeRecord) -> PartitionRecord:
        """The partition after a change (PartitionRegistration.merge)."""
        given = {name: value for name, value in change._asdict().items() if value is not None}
        return self._replace(
            **given,
            leader_epoch=self.leader_epoch + (change.leader is not None),
            partition_epoch=self.partition_epoch + 1,
        )


class PartitionChangeRecord(NamedTuple):
    """The fields of a partition that changed; the others are null."""

    partition_id: int
    topic_id: str
    isr: list[int] | None
    leader: int | None
    replicas: list[int] | None
    removing_replicas: list[int] | None
    adding_replicas: list[int] | None
    leader_recovery_state: int | None
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None


class RemoveTopicRecord(NamedTuple):
    topic_id: str


class ClearElrRecord(NamedTuple):
    """An empty name is every topic."""

    topic_name: str


class RegisterBrokerRecord(NamedTuple):
    """BrokerRegistration: the epoch is new with each start of the process."""

    broker_id: int
    broker_epoch: int
    fenced: bool
    in_controlled_shutdown: bool


class UnregisterBrokerRecord(NamedTuple):
    broker_id: int


class BrokerRegistrationChangeRecord(NamedTuple):
    """1 sets `fenced` or `in_controlled_shutdown`, −1 clears it (fenced only), 0 leaves it."""

    broker_id: int
    fenced: int
    in_controlled_shutdown: int


class FenceBrokerRecord(NamedTuple):
    """Written before metadata.version 3.3-IV2."""

    id: int


class UnfenceBrokerRecord(NamedTuple):
    id: int


class BeginTransactionRecord(NamedTuple):
    """The records up to the end of the transaction (KIP-868) take effect together, or never."""


class EndTransactionRecord(NamedTuple):
    pass


class AbortTransactionRecord(NamedTuple):
    pass


class OtherRecord(NamedTuple):
    """A record of a type that says nothing about partitions and brokers."""

    key: int


# What is said about: without a record of it, every later claim about it may be wrong.
Subject = Literal["partitions", "brokers"]


class UnlistedRecord(NamedTuple):
    """A known type in a version that the tables do not list; `stops`: what rests on it."""

    name: str
    version: int
    newest_version: int
    stops: frozenset[Subject]

    def __str__(self) -> str:
        """What stops by it, and the cure, which names the version."""
        what = " and ".join(sorted(self.stops))
        return (
            f"{self.name} version {self.version} (this Tidemark reads up to version "
            f"{self.newest_version}): from there on, what the log says of {what} is left out; use "
            f"a Tidemark that reads {self.name} version {self.version}"
        )


Record = (
    TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | ClearElrRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | OtherRecord
    | UnlistedRecord
)


_SCHEMAS: Final = (
    RecordSchema(2, TopicRecord, 0, (Field("name", string), Field("topic_id", topic_uuid))),
    RecordSchema(
        3,
        PartitionRecord,
        2,
        (
            Field("partition_id", int32),
            Field("topic_id", topic_uuid),
            Field("replicas", int32s),
            Field("isr", int32s),
            Field("removing_replicas", int32s),
            Field("adding_replicas", int32s),
            Field("leader", int32),
            Field("leader_recovery_state", int8, tag=0, default=0),
            Field("leader_epoch", int32),
            Field("partition_epoch", int32),
            Field("directories", skipped_uuids, since=1),
            Field("eligible_leader_replicas", int32s, since=2, tag=1, default=[]),
            Field("last_known_elr", int32s, since=2, tag=2, default=[]),
        ),
    ),
    # Kafka's defaults of the tagged fields are null, -1 and LeaderConstants.NO_LEADER_CHANGE. A
    # field that has its default is not written.
    RecordSchema(
        5,
        PartitionChangeRecord,
        2,
        (
            Field("partition_id", int32),
            Field("topic_id", topic_uuid),
            Field("isr", int32s, tag=0),
            Field("leader", int32, tag=1),
            Field("replicas", int32s, tag=2),
            Field("removing_replicas", int32s, tag=3),
            Field("adding_replicas", int32s, tag=4),
            Field("leader_recovery_state", int8, tag=5),
            Field("eligible_leader_replicas", int32s, since=2, tag=6),
            Field("last_known_elr", int32s, since=2, tag=7),
        ),
    ),
    RecordSchema(9, RemoveTopicRecord, 0, (Field("topic_id", topic_uuid),)),
    RecordSchema(28, ClearElrRecord, 0, (Field("topic_name", string),)),
    RecordSchema(
        0,
        RegisterBrokerRecord,
        # 3 adds LogDirs, 4 CordonedLogDirs (KIP-1066). Both are tagged, and read over.
        4,
        (
            Field("broker_id", int32),
            Field("is_migrating_zk_broker", boolean, since=2),
            Field("incarnation_id", topic_uuid),
            Field("broker_epoch", int64),
            Field("end_points", skipped((string, string, number(Struct(">H")), int16), 7)),
            Field("features", skipped((string, int16, int16), 6)),
            Field("rack", skipped_string),
            Field("fenced", boolean),
            Field("in_controlled_shutdown", boolean, since=1, default=False),
        ),
    ),
    RecordSchema(
        1, UnregisterBrokerRecord, 0, (Field("broker_id", int32), Field("broker_epoch", int64))
    ),
    RecordSchema(
        17,
        BrokerRegistrationChangeRecord,
        # 2 and 3 add the same two.
        3,
        (
            Field("broker_id", int32),
            Field("broker_epoch", int64),
            Field("fenced", int8, tag=0, default=0),
            Field("in_controlled_shutdown", int8, since=1, tag=1, default=0),
        ),
    ),
    RecordSchema(7, FenceBrokerRecord, 0, (Field("id", int32), Field("epoch", int64))),
    RecordSchema(8, UnfenceBrokerRecord, 0, (Field("id", int32), Field("epoch", int64))),
    RecordSchema(23, BeginTransactionRecord, 0, ()),
    RecordSchema(24, EndTransactionRecord, 0, ()),
    RecordSchema(25, AbortTransactionRecord, 0, ()),
)
SCHEMAS: Final = {schema.key: schema for schema in _SCHEMAS}
REMOVE_TOPIC: Final = 9
_ALL: Final[frozenset[Subject]] = frozenset({"partitions", "brokers"})
# By type. A transaction may hold anything.
_SUBJECTS: Final[Mapping[int, frozenset[Subject]]] = {
    **dict.fromkeys((2, 3, 5, REMOVE_TOPIC, 28), frozenset({"partitions"})),
    **dict.fromkeys((0, 1, 7, 8, 17), frozenset({"brokers"})),
    **dict.fromkeys((23, 24, 25), _ALL),
}


def decode_record(value: bytes) -> Record:
    """One record. Raises WireError for bytes that are none."""
    reader = RecordReader(value, "metadata record")
    key, version = _frame(reader)
    schema = SCHEMAS.get(key)
    if schema is None:
        return OtherRecord(key)
    if version > schema.newest_version:
        return UnlistedRecord(schema.make.__name__, version, schema.newest_version, _SUBJECTS[key])
    record: Record = schema.decode(reader, version)
    return record


def record_key(value: bytes) -> int:
    """The api key of a record, without decoding it. Raises WireError."""
    return _frame(RecordReader(value, "metadata record"))[0]


def _frame(reader: RecordReader) -> tuple[int, int]:
    frame_version = reader.uvarint()
    if frame_version != FRAME_VERSION:
        raise reader.fail(f"frame version {frame_version} instead of {FRAME_VERSION}")
    return reader.uvarint(), reader.uvarint()

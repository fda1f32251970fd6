"""ListOffsets for one partition: an offset of one replica's own log."""

from __future__ import annotations

from typing import Any, Final

from kafka.protocol.consumer import ListOffsetsRequest

from tidemark.collect.codecs.errors import error_name
from tidemark.collect.codecs.list_offsets import DEBUG_REPLICA
from tidemark.collect.codecs.metadata_image import TopicPartition
from tidemark.collect.connect.connection import BrokerConnection

LATEST: Final = -1
EARLIEST: Final = -2
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
# The first versions that offer them: KIP-405, KIP-1005 and KIP-1023. Others are older than all.
FIRST_VERSIONS: Final = {EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


async def read_offset(
    connection: BrokerConnection, place: TopicPartition, what: int, seconds: float
) -> tuple[int, int | None] | str:
    """The offset and its leader epoch, or Kafka's error. Raises NoAnswerError."""
    first = FIRST_VERSIONS.get(what, 1)
    version = connection.version(ListOffsetsRequest.API_KEY, max(first, FIRST_VERSIONS[-4]))
    if version is None or version < first:
        return "unsupported"
    topic = ListOffsetsRequest.ListOffsetsTopic
    asked = topic.ListOffsetsPartition(
        partition_index=place[1], current_leader_epoch=-1, timestamp=what
    )
    request = ListOffsetsRequest(
        replica_id=DEBUG_REPLICA,
        isolation_level=0,
        topics=[topic(name=place[0], partitions=[asked])],
    )
    request.API_VERSION = version
    found = only_partition((await connection.ask(request, seconds)).topics)
    if found is None:
        return "an answer without the partition"
    if found.error_code:
        return error_name(found.error_code)
    epoch = found.leader_epoch
    return found.offset, epoch if epoch is not None and epoch >= 0 else None


def only_partition(topics: Any) -> Any:
    """The only partition of an answer; None where it has none or several."""
    partitions = [partition for topic in topics for partition in topic.partitions]
    return partitions[0] if len(partitions) == 1 else None

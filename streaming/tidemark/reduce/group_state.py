"""The state of one group: a version byte and msgpack, partitions inside it opaque until they are touched."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from tidemark.core.cluster import ClusterState

GROUP_VERSION: Final = 1


class GroupState(Struct, array_like=True):
    """Every watched partition placed in one Kafka partition. Keys are `cluster/topic/partition`."""

    clusters: dict[str, ClusterState] = {}
    partitions: dict[str, bytes] = {}
    # When a partition is to be looked at next (seconds by the collector's clock; 0: at every pass). Absent: never.
    due: dict[str, float] = {}


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[GroupState] = msgspec.msgpack.Decoder(GroupState)


def encode_group(state: GroupState) -> bytes:
    """Version byte and msgpack."""
    return bytes((GROUP_VERSION,)) + _encoder.encode(state)


def decode_group(blob: bytes | None) -> GroupState:
    """The inverse of `encode_group`; None is an empty group. Older versions are upcast here."""
    if not blob:
        return GroupState()
    assert blob[0] == GROUP_VERSION, f"group state version {blob[0]}"
    return _decoder.decode(memoryview(blob)[1:])


def partition_key(cluster: str, topic: str, partition: int) -> str:
    """The key of a partition in the group, and of its view."""
    return f"{cluster}/{topic}/{partition}"


def split_key(key: str) -> tuple[str, str, int]:
    """The inverse of `partition_key`: cluster names and topics hold no slash."""
    cluster, topic, partition = key.split("/")
    return cluster, topic, int(partition)

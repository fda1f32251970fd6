"""The state of one group: a version byte and msgpack.

Partitions remain opaque until they are used.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from tidemark.core.cluster import ClusterState
from tidemark.core.errors import StateError, TidemarkError
from tidemark.reduce.failures import Failures

GROUP_VERSION: Final = 1
MAX_CLUSTERS: Final = 256
# Over all groups: an equal part of it in each.
MAX_PARTITIONS: Final = 1_000_000


class GroupState(Struct, array_like=True):
    """Every watched partition placed in one Kafka partition. Keys are `cluster/topic/partition`."""

    clusters: dict[str, ClusterState] = {}
    partitions: dict[str, bytes] = {}
    # When to judge a partition next, in seconds by the collector's clock; absent: never. See
    # `reduce.schedule` for the values that are no time.
    due: dict[str, float] = {}


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[GroupState] = msgspec.msgpack.Decoder(GroupState)


def encode_group(state: GroupState) -> bytes:
    """Version byte and msgpack."""
    return bytes((GROUP_VERSION,)) + _encoder.encode(state)


def decode_group(blob: bytes | None) -> GroupState:
    """The inverse of `encode_group`; None is an empty group.

    Raises TidemarkError for the state of another release, StateError for what is no state.
    """
    if blob is None:
        return GroupState()
    if not blob:
        raise StateError("a group's state of 0 bytes")
    if blob[0] != GROUP_VERSION:
        raise TidemarkError(
            f"the checkpoint has states of version {blob[0]}; this Tidemark reads "
            f"{GROUP_VERSION}. Run the release that wrote it, or start with a new checkpoint."
        )
    try:
        return _decoder.decode(memoryview(blob)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StateError(error) from None


def restore_clusters(state: GroupState, before: GroupState, failures: Failures) -> None:
    """Replaces each cluster that cannot be encoded by what it was `before`; a new one goes."""
    for name, cluster in list(state.clusters.items()):
        try:
            _encoder.encode(cluster)
        except Exception as error:
            failures.add(name, error)
            if name in before.clusters:
                state.clusters[name] = before.clusters[name]
            else:
                del state.clusters[name]

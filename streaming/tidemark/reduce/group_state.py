"""The state of one group: a version byte and msgpack; its decoded partitions, and its rows.

Partitions remain opaque until their first use.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from tidemark.core.cluster import ClusterState
from tidemark.core.errors import StateError, TidemarkError
from tidemark.core.partition import PartitionState, decode_state, encode_state
from tidemark.core.records import Alert, View
from tidemark.detect.default_thresholds import Detection
from tidemark.evolve.activity import activity_of
from tidemark.reduce.failures import Failures
from tidemark.reduce.judge import DecodedPartition, Judge
from tidemark.reduce.rows import Row, alert_row
from tidemark.reduce.views import cluster_views, partition_view

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


class DecodedGroup:
    """A partition is decoded at its first use and encoded at `close`."""

    def __init__(self, state: GroupState, detection: Detection, group: int, groups: int) -> None:
        self.state = state
        self.rows: list[Row] = []
        self._detection = detection
        self._judge = Judge(detection)
        self._group, self._groups = group, groups
        self._decoded: dict[str, DecodedPartition] = {}
        # Those of them that have no stored state yet.
        self._new: set[str] = set()

    def close(self, failures: Failures | None = None) -> GroupState:
        """Encodes what was decoded.

        With `failures`, a state that cannot be encoded is left as it was stored; a partition
        without a stored state begins again. Else raises.
        """
        for key, partition in self._decoded.items():
            try:
                self.state.partitions[key] = encode_state(partition.state)
            except Exception as error:
                if failures is None:
                    raise
                failures.add(key, error)
                if key not in self.state.partitions:
                    self.state.due.pop(key, None)
        self._decoded.clear()
        self._new.clear()
        return self.state

    def partition(self, key: str) -> PartitionState | None:
        """The state of a partition, decoded."""
        partition = self._decode(key)
        return None if partition is None else partition.state

    def keys(self, prefix: str) -> list[str]:
        """The known partitions whose key begins with `prefix`, sorted."""
        return sorted(k for k in {*self.state.partitions, *self._decoded} if k.startswith(prefix))

    def view(self, key: str, now: float) -> View:
        """The view of a known partition at `now`."""
        partition = self._decode(key)
        assert partition is not None, key
        scope, judge = partition.scope, self._judge
        cluster = self.state.clusters.get(scope.kafka_cluster, ClusterState())
        rules, lag_ms = judge.rules(scope.topic), judge.lag_threshold_ms(scope.topic)
        return partition_view(partition.state, cluster, scope, rules, lag_ms, now)

    def cluster_views(self, name: str) -> list[View]:
        """The views of a cluster and its brokers at its newest pass; none before the first."""
        cluster = self.state.clusters.get(name)
        if cluster is None or not cluster.passed_by:
            return []
        clock = cluster.collectors[cluster.passed_by]
        return cluster_views(
            cluster,
            name,
            self._judge.rules(None),
            collector=cluster.passed_by,
            pass_number=clock.pass_number,
            period_ms=clock.period_ms,
            now=clock.ended_at,
        )

    def _decode(self, key: str) -> DecodedPartition | None:
        partition = self._decoded.get(key)
        if partition is None:
            blob = self.state.partitions.get(key)
            if blob is None:
                return None
            state = decode_state(blob)
            partition = DecodedPartition(key, state, activity_of(state))
            self._decoded[key] = partition
        return partition

    def _publish_alerts(self, alerts: list[Alert]) -> None:
        self.rows += [alert_row(alert) for alert in alerts]

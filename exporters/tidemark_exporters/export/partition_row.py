"""A partition's newest view, with what every refresh needs of it."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.core.records import View, decode_record
from tidemark_exporters.export.partition_status import (
    judge_status,
    measure_progress,
    measure_reassignment,
    status_key,
)
from tidemark_exporters.export.text_format import format_labels


class LabelSets(NamedTuple):
    """The label sets of a partition's series, and of its replicas' series by broker."""

    partition: str
    replicas: list[str]
    brokers: list[int]


class PartitionRow:
    """The view is held as bytes, and decoded when it is asked for.

    A retained row holds the decoded view and its label sets, because it has series.
    """

    __slots__ = (
        "_raw",
        "_view",
        "changed_at",
        "cluster",
        "last_leader",
        "named",
        "progress",
        "reassignment",
        "retained",
        "status",
        "status_key",
        "topic",
    )

    def __init__(
        self,
        view: View,
        lag_threshold_ms: float,
        previous: PartitionRow | None,
        raw: bytes | None = None,
    ) -> None:
        """`raw` is the encoded view; without it the decoded one is held."""
        assert view.topic is not None, "a partition's view"
        self.progress = measure_progress(view)
        self.reassignment = measure_reassignment(view)
        self.status_key = key = status_key(view, lag_threshold_ms, self.progress)
        # For elections and expansions: the last leader, and the last change of the in-sync set.
        self.last_leader = view.leader
        self.changed_at = 0.0
        if view.isr_history:
            self.changed_at, _ = view.isr_history[-1]
        self._raw = raw
        # Once they are needed.
        self.named: LabelSets | None = None
        if previous is None:
            self.cluster, self.topic = view.kafka_cluster, view.topic
            self.status = judge_status(view, lag_threshold_ms)
            self.retained = False
        else:
            # Equal objects are shared.
            self.cluster, self.topic = previous.cluster, previous.topic
            if key is not None and key == previous.status_key:
                self.status, self.status_key = previous.status, previous.status_key
            else:
                self.status = judge_status(view, lag_threshold_ms)
            self.retained = previous.retained
            if view.leader is None:
                self.last_leader = previous.last_leader
            named = previous.named
            if named is not None and named.brokers == [r.broker for r in view.replicas]:
                self.named = named
        self._view = view if self.retained or raw is None else None

    @property
    def view(self) -> View:
        """The view; decoded each time unless the row is retained."""
        # Another thread may release the row meanwhile.
        view = self._view
        if view is not None:
            return view
        assert self._raw is not None
        decoded = decode_record(self._raw)
        assert isinstance(decoded, View)
        return decoded

    def retain(self) -> None:
        self._view, self.retained = self.view, True

    def release(self) -> None:
        self.retained = False
        if self._raw is not None:
            self._view = self.named = None

    @property
    def label_sets(self) -> LabelSets:
        if self.named is None:
            view = self.view
            labels = format_labels(
                kafka_cluster=self.cluster, topic=self.topic, partition=view.partition
            )
            brokers = [replica.broker for replica in view.replicas]
            self.named = LabelSets(
                labels, [f'{labels},broker="{broker}"' for broker in brokers], brokers
            )
        return self.named

"""Completes the passes of collectors that counted no links, from the observations of a recording.

So an old recording gets the verdict of a new one. Such collectors also stop to name a broker that
no broker lists any more, as a dead one after the collector's restart.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec.structs import replace

from tidemark.core.cluster import ClusterState
from tidemark.core.events import UNLISTED, Batch, BrokerAnswer, Observation, Pass
from tidemark.core.fetch_links import LinkCounter
from tidemark.core.identity import partition_key
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState


class CompletingFold(Fold):
    """Folds all groups of a recording in one. One counter for each collector of the recording."""

    def __init__(self, detection: Detection) -> None:
        super().__init__(GroupState(), detection, 0, 1)
        self._counters: defaultdict[tuple[str, str], LinkCounter] = defaultdict(LinkCounter)

    def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
        known = self.partition(partition_key(batch.cluster, event.topic, event.partition))
        if known is not None and known.leader == event.leader:
            end = known.leader_log_end_offset
            if end is not None:
                self._counters[batch.cluster, batch.collector].note(event, end)
        super()._observe(batch, cluster, event)

    def _pass(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        links = self._counters[batch.cluster, batch.collector].take(event.ended_at)
        if event.links is None:
            brokers = [*event.brokers, *self._unnamed(batch.cluster, cluster, event)]
            event = replace(event, links=links, brokers=brokers)
        super()._pass(batch, cluster, event)

    def _unnamed(self, name: str, cluster: ClusterState, event: Pass) -> list[BrokerAnswer]:
        """Brokers that the pass before named and this one does not, although they have replicas."""
        unnamed = cluster.brokers.keys() - {answer.broker for answer in event.brokers}
        if not unnamed:
            return []
        states = (self.partition(key) for key in self.keys(f"{name}/"))
        assigned = {broker for state in states if state is not None for broker in state.assigned}
        return [
            BrokerAnswer(
                broker=b, outcome=UNLISTED if seen.answers else seen.outcome, rack=seen.rack
            )
            for b, seen in cluster.brokers.items()
            if b in unnamed & assigned
        ]

"""A scenario as a collector sees it whose user may only Describe topics.

The brokers refuse it Fetch, the configuration of topics and brokers, and what needs rights on the
cluster. tests/cluster/test_rights.py compares the fields with those of real brokers.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.scenarios.scenario import Scenario
from tidemark.core.events import BrokerState, Event, Observation, Pass

# Commands of sources that need no right on the cluster's topics, or one of brokers.
OTHER_SOURCES = ("record ",)


class DescribeAlone(Scenario):
    """The same commands, without what the user may not see."""

    def run(self, line: str) -> list[str]:
        if line.startswith(("evidence ", "ack ")):
            # The alert may be absent.
            try:
                return super().run(line)
            except IndexError:
                return []
        return super().run(line)

    def _send(self, events: list[Event], sender: tuple[str, int] | None = None) -> list[str]:
        for event in events:
            hide(event)
        return super()._send(events, sender)


def hide(event: Event) -> None:
    """Sets what the brokers refuse to None."""
    if isinstance(event, Observation):
        _hide_in_observation(event)
    elif isinstance(event, Pass):
        event.quorum_leader = event.quorum_epoch = event.reassigning = None
    elif isinstance(event, BrokerState):
        event.offline_log_dirs = event.log_directories = event.configuration = None
        event.is_voter = event.metadata_log_end_offset = event.metadata_lag_ms = None


def _hide_in_observation(event: Observation) -> None:
    # The configuration of the topic.
    event.effective_min_in_sync_replicas = event.unclean_leader_election = None
    event.throttled_replicas = event.compacted = None
    # ListPartitionReassignments.
    event.adding, event.removing = [], []
    # Fetch.
    event.lineage = event.lineage_complete_from = None
    event.leader_log_end_offset_after = event.leader_after_at = None
    for sample in event.samples:
        sample.high_watermark = sample.log_start_offset = sample.last_stable_offset = None
        # Of the leader with its own request, of log directories.
        sample.lineage = sample.size_bytes = None


def fired(answers: str) -> Iterator[tuple[str, str]]:
    """(name, severity) of each alert that fires or is updated in played answers."""
    for line in answers.splitlines():
        words = line.partition(" s  ")[2].split()
        if words[:1] in (["firing"], ["update"]):
            yield words[2].rstrip(":"), words[1]

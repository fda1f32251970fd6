"""What a run shows of a version: a row of the table in docs/versions.md."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from tidemark.core.events import BrokerState, Event, Observation, Pass
from tidemark.core.records import Alert
from tidemark_lab.drills.schedules.every_version import SHORT
from tidemark_lab.drills.stage import TOPIC

LIST_PARTITION_REASSIGNMENTS: Final = 45
PARTITIONS: Final = set(range(SHORT.topic.partitions))
NO: Final = "no"
YES: Final = "yes"
SUSPECTED: Final = "suspected"
PROVEN: Final = "proven"

# Key -> heading of the row.
FEATURES: Final = {
    "follower_log_end_offset": "Log end offset of followers",
    "follower_high_watermark": "High watermark of followers",
    "log_start_offset": "Log start offset of every replica",
    "committed": "Committed offset",
    "leader_epoch": "Leader epoch in metadata",
    "lineage": "Leader epochs of logs (lineage)",
    "topic_id": "Topic ids",
    "min_in_sync_replicas": "`min.insync.replicas`",
    "eligible_leader_replicas": "Eligible leader replicas",
    "reassignments": "Reassignments",
    "quorum": "Metadata quorum",
    "fenced": "Fenced brokers",
    "offline": "Offline partition",
    "unclean_election": "Unclean election",
    "loss": "Loss of committed records",
}


def row_of(
    events: Sequence[Event], alerts: Sequence[Alert], apis: Collection[int]
) -> dict[str, str]:
    """Key of a feature -> what the version shows. `apis`: the keys that its brokers know."""
    newest = {(e.topic, e.partition): e for e in events if isinstance(e, Observation)}
    seen = list(newest.values())
    followers = [s for o in seen for s in o.samples if s.broker != o.leader]
    every = [event for event in events if isinstance(event, Observation)]
    lineages = any(s.lineage for o in every for s in o.samples if s.broker != o.leader)
    epochs = all(o.leader_epoch is not None for o in seen)
    committed = all(o.committed is not None for o in seen)
    return {
        "follower_log_end_offset": _yes(all(s.log_end_offset is not None for s in followers)),
        "follower_high_watermark": _yes(all(s.high_watermark is not None for s in followers)),
        "log_start_offset": _yes(
            all(s.log_start_offset is not None for o in seen for s in o.samples)
        ),
        "committed": NO if not committed else "fenced" if epochs else "confirmed by metadata",
        "leader_epoch": _yes(epochs),
        "lineage": "every replica"
        if lineages
        else "leader"
        if any(o.lineage for o in every)
        else NO,
        "topic_id": _yes(all(o.topic_id for o in seen)),
        "min_in_sync_replicas": _yes(
            all(o.effective_min_in_sync_replicas is not None for o in seen)
        ),
        # Brokers without the feature report an empty list.
        "eligible_leader_replicas": _yes(any(o.eligible_leader_replicas for o in every)),
        "reassignments": _yes(LIST_PARTITION_REASSIGNMENTS in apis),
        "quorum": _yes(any(isinstance(e, Pass) and e.quorum_leader is not None for e in events)),
        "fenced": _yes(any(isinstance(e, BrokerState) and e.fenced is not None for e in events)),
        "offline": _yes(_partitions(alerts, "KafkaOffline") == PARTITIONS),
        "unclean_election": _certainty(alerts, "KafkaUncleanElection"),
        "loss": _certainty(alerts, "KafkaCommittedDataLoss"),
    }


def _yes(holds: bool) -> str:
    return YES if holds else NO


def _partitions(alerts: Sequence[Alert], name: str, severity: str | None = None) -> set[int]:
    """The partitions of the watched topic for which the alert fired."""
    return {
        int(alert.labels["partition"])
        for alert in firing(alerts, name)
        if alert.labels.get("topic") == TOPIC and severity in (None, alert.labels["severity"])
    }


def firing(alerts: Sequence[Alert], name: str) -> Iterator[Alert]:
    return (a for a in alerts if a.labels["alertname"] == name and a.state == "firing")


def _certainty(alerts: Sequence[Alert], name: str) -> str:
    """Critical where it is proven; KafkaLossRisk is the suspicion of a loss."""
    every = PARTITIONS
    if _partitions(alerts, name, "critical") == every:
        return PROVEN
    suspicion = "KafkaLossRisk" if name == "KafkaCommittedDataLoss" else name
    return SUSPECTED if _partitions(alerts, suspicion) == every else NO

"""Each story, seen by a collector at every step, through the reducer and the detectors."""

from __future__ import annotations

import pytest

from tidemark.core.codec import encode_batch
from tidemark.core.records import Alert, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.model.observe import observed_batch
from tidemark.model.replica_manager.abstract import as_cluster_state, down
from tidemark.model.scenarios import SCENARIOS
from tidemark.model.state import MAX_EPOCH, MAX_LOG_SIZE, MAX_RECORDS, Constants
from tidemark.model.truth import lost_offsets
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord

TOLD = [(name, protocol) for name, scenario in SCENARIOS.items() for protocol in scenario.protocols]
# A loss is certain at the second of two passes that show it.
PASSES_AFTERWARDS = 2


def alerts_of(name: str, protocol: str) -> tuple[set[str], list[Alert], tuple[int, ...]]:
    """(names of the alerts that fired, the loss alerts, offsets truly lost at the end)."""
    scenario = SCENARIOS[name]
    play = scenario.play(protocol)
    constants = Constants(
        scenario.brokers, MAX_LOG_SIZE, MAX_RECORDS, MAX_EPOCH, scenario.min_in_sync_replicas
    )
    fold = Fold(GroupState(), Detection(), 0, 1)
    for number, row in enumerate([*play.rows, *[play.rows[-1]] * PASSES_AFTERWARDS]):
        state = as_cluster_state(row.cluster)
        batch = observed_batch(
            play.cluster.protocol,
            constants,
            state,
            number,
            1.7e9 + number,
            silent=down(row.cluster),
        )
        fold.record(RawRecord(0, number, 0.0, encode_batch(batch)))
    records = [decode_record(row.value) for row in fold.rows if row.value is not None]
    alerts = [
        record for record in records if isinstance(record, Alert) and record.state == "firing"
    ]
    losses = [alert for alert in alerts if alert.labels["alertname"] == "KafkaCommittedDataLoss"]
    return (
        {alert.labels["alertname"] for alert in alerts},
        losses,
        lost_offsets(as_cluster_state(play.cluster)),
    )


@pytest.mark.parametrize(("name", "protocol"), TOLD)
def test_a_loss_is_claimed_where_there_is_one_and_exactly(name: str, protocol: str) -> None:
    fired, losses, lost = alerts_of(name, protocol)
    claimed = {offset for alert in losses for offset in range(*alert.evidence["proven"])}
    if protocol == "truncate-to-hw" and not losses:
        # Without epochs an old leader that was overwritten before two passes saw it proves nothing.
        assert not lost or fired & {"KafkaLogTruncation", "KafkaHwRegression"}
    else:
        assert claimed == set(lost)


def test_the_stories_cover_both_outcomes() -> None:
    lost = [story for story in TOLD if alerts_of(*story)[1]]
    assert len(lost) >= 7 and len(TOLD) - len(lost) >= 15


@pytest.mark.parametrize(
    ("name", "protocol", "expected"),
    [
        ("unclean-election", "kip-966", "KafkaUncleanElection"),
        ("last-replica-standing", "kip-966", "KafkaElrElection"),
        ("zombie-leader", "kip-966", "KafkaZombieLeader"),
        ("min-isr-gate", "kip-966", "KafkaUnderMinIsr"),
        ("follower-lag-shrinks-isr", "kip-966", "KafkaHwStalled"),
        ("hw-truncation-divergence", "kip-966", "KafkaOffline"),
    ],
)
def test_what_a_story_is_about_is_alerted(name: str, protocol: str, expected: str) -> None:
    assert expected in alerts_of(name, protocol)[0]

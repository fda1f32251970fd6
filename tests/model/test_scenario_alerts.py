"""Each scenario, observed at every step, through the reducer and the detectors."""

from __future__ import annotations

import pytest

from tests.model.test_scenarios import MAIN_RUNS
from tidemark.core.records import Alert
from tidemark_lab.model.alerts import story_alerts
from tidemark_lab.model.oracle import lost_offsets
from tidemark_lab.model.replica_manager.model_state import to_model_state
from tidemark_lab.model.scenarios import SCENARIOS


def alerts_of(name: str, protocol: str) -> tuple[set[str], list[Alert], tuple[int, ...]]:
    """(names of the alerts that fired, the loss alerts, the offsets that are lost at the end)."""
    scenario = SCENARIOS[name]
    run = scenario.run(protocol)
    alerts = [each.alert for each in story_alerts(scenario, run) if each.alert.state == "firing"]
    losses = [alert for alert in alerts if alert.labels["alertname"] == "KafkaCommittedDataLoss"]
    return (
        {alert.labels["alertname"] for alert in alerts},
        losses,
        lost_offsets(to_model_state(run.cluster)),
    )


@pytest.mark.parametrize(("name", "protocol"), MAIN_RUNS)
def test_the_claimed_loss_is_the_actual_loss(name: str, protocol: str) -> None:
    fired, losses, lost = alerts_of(name, protocol)
    claimed = {offset for alert in losses for offset in range(*alert.evidence["proven"])}
    if protocol == "truncate-to-hw" and not losses:
        # Without epochs there is no proof if the old leader is overwritten within two passes.
        assert not lost or fired & {"KafkaLogTruncation", "KafkaHwRegression"}
    else:
        assert claimed == set(lost)


def test_the_scenarios_cover_both_outcomes() -> None:
    lost = [run for run in MAIN_RUNS if alerts_of(*run)[1]]
    assert len(lost) >= 7 and len(MAIN_RUNS) - len(lost) >= 15


@pytest.mark.parametrize(
    ("name", "protocol", "expected"),
    [
        ("unclean-election", "kip-966", "KafkaUncleanElection"),
        ("last-replica-standing", "kip-966", "KafkaElrElection"),
        ("zombie-leader", "kip-966", "KafkaZombieLeader"),
        ("min-isr-gate", "kip-966", "KafkaUnderMinIsr"),
        ("follower-lag-shrinks-isr", "kip-966", "KafkaHwStalled"),
        ("hw-truncation-divergence", "kip-966", "KafkaCommittedDataLoss"),
        # Without leader epochs a shorter log is all that a client can read.
        ("hw-truncation-divergence", "truncate-to-hw", "KafkaLogTruncation"),
        ("epoch-reply-never-comes", "kip-966", "KafkaOffline"),
    ],
)
def test_each_scenario_fires_its_alert(name: str, protocol: str, expected: str) -> None:
    assert expected in alerts_of(name, protocol)[0]


@pytest.mark.parametrize("name", ["hw-truncation-divergence", "epoch-reply-never-comes"])
def test_a_divergence_without_leader_epochs_fires_no_alert_of_a_divergence(name: str) -> None:
    """docs/replication/truncation-to-high-watermark.md says so: both logs have the same end."""
    assert "KafkaDivergence" not in alerts_of(name, "truncate-to-hw")[0]

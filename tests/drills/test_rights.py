"""The drills that users with fewer rights watch, and what remains of their expectations."""

from __future__ import annotations

import pytest

from tests.documented_rights import alerts_with_describe_alone
from tests.drills.rights import CHOSEN, ON_NEWEST, names, with_describe_alone
from tidemark.core.identity import alert_name
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.drills.schedules.table import DRILLS


def detectors(chosen: tuple[str, ...]) -> set[str]:
    return {each.detector for name in chosen for each in DRILLS[name].expected_on(KAFKA_VERSION)}


def test_the_chosen_drills_raise_each_detector_that_any_drill_raises() -> None:
    assert detectors(CHOSEN) == detectors(ON_NEWEST)
    assert any(DRILLS[name].quiet for name in CHOSEN)


def test_a_variable_chooses_every_drill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRILLS", raising=False)
    assert names() == CHOSEN
    monkeypatch.setenv("DRILLS", "all")
    assert names() == ON_NEWEST
    left_out = [name for name in DRILLS if name not in ON_NEWEST]
    assert left_out == [
        "blocked-reassignment",
        "min-isr-above-replicas",
        "hw-truncation-loss",
        "hw-truncation-divergence",
    ]


@pytest.mark.parametrize("name", ON_NEWEST)
def test_describe_alone_drops_only_what_the_page_lists(name: str) -> None:
    drill, alone = DRILLS[name], with_describe_alone(DRILLS[name])
    listed = alerts_with_describe_alone()
    dropped = [each for each in drill.expected if each not in alone.expected]
    assert all(listed[each.alert] & {"never", "less"} for each in dropped)
    for detector in drill.forbidden:
        assert (detector in alone.forbidden) == ("more" not in listed.get(alert_name(detector), ()))
    texts = [step.text for step in alone.steps]
    for each in alone.expected:
        text = f"wait: {each.alert} fires"
        assert (text in texts) == (text in [step.text for step in drill.steps])


def test_most_expectations_remain() -> None:
    """Each class of alerts that Describe shows is still required of a drill."""
    kept = {each.alert for name in CHOSEN for each in with_describe_alone(DRILLS[name]).expected}
    assert kept == {
        *("KafkaBrokerDown", "KafkaOffline", "KafkaZombieLeader"),
        *("KafkaEpochBumpStorm", "KafkaHwStalled", "KafkaUnderReplicated", "KafkaIsrChange"),
        *("KafkaIsrChurn", "KafkaCollectorConflict"),
    }

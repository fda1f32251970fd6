"""The scenarios, in reading order."""

from __future__ import annotations

from typing import Final

from tidemark.model.scenarios import data_loss, normal_operation
from tidemark.model.scenarios.scenario import Scenario

_ORDER: Final = (
    "two-replica-write",
    "three-replica-write",
    "acks-0-1-all",
    "hw-truncation-loss",
    "hw-truncation-divergence",
    "epoch-reply-never-comes",
    "follower-lag-shrinks-isr",
    "min-isr-gate",
    "preferred-leader",
    "last-replica-standing",
    "unclean-election",
    "zombie-leader",
)
_ALL: Final = {
    scenario.name: scenario for scenario in (*normal_operation.SCENARIOS, *data_loss.SCENARIOS)
}
SCENARIOS: Final[dict[str, Scenario]] = {name: _ALL[name] for name in _ORDER}

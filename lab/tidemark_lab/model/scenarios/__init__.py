"""The scenarios, in reading order."""

from __future__ import annotations

from typing import Final

from tidemark_lab.model.scenarios import data_loss, disks, normal_operation, readers
from tidemark_lab.model.scenarios.scenario import Scenario

_ORDER: Final = (
    "two-replica-write",
    "three-replica-write",
    "uneven-followers",
    "consumer-visibility",
    "request-of-two-partitions",
    "purgatory-race",
    "last-stable-offset",
    "replica-read",
    "acks-0-1-all",
    "hw-truncation-loss",
    "hw-truncation-loss-acks-1",
    "hw-truncation-divergence",
    "epoch-reply-never-comes",
    "epoch-without-records",
    "follower-lag-shrinks-isr",
    "lag-max-messages",
    "rejoin-isr",
    "min-isr-gate",
    "preferred-leader",
    "last-replica-standing",
    "unclean-election",
    "fetch-without-leader-epoch",
    "zombie-leader",
    "delete-records",
    "power-failure",
)
_ALL: Final = {
    scenario.name: scenario
    for module in (normal_operation, readers, data_loss, disks)
    for scenario in module.SCENARIOS
}
SCENARIOS: Final[dict[str, Scenario]] = {name: _ALL[name] for name in _ORDER}

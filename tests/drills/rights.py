"""Drills watched by users with fewer rights: which are run, and what is expected of them then."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

from tests.documented_rights import alerts_with_describe_alone
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.schedules.table import DRILLS
from tidemark_lab.drills.steps import alert

# Each detector that a drill on the newest Kafka expects, and planned work.
CHOSEN: Final = (
    "unclean-election",
    "last-replica-standing",
    "zombie-leader",
    "hw-regression",
    "epoch-storm",
    "hanging-transaction",
    "follower-lag-shrinks-isr",
    "rejoin-isr",
    "isr-churn",
    "slow-leader",
    "quorum-elections",
    "disk-full",
    "two-collectors",
    "rolling-restart",
    "reassignment",
)
# Others are about older brokers, most of them without a KRaft authorizer.
ON_NEWEST: Final = tuple(name for name, each in DRILLS.items() if KAFKA_VERSION in each.versions)


def names() -> tuple[str, ...]:
    """CHOSEN; with DRILLS=all every drill that runs on the newest Kafka."""
    return ON_NEWEST if os.environ.get("DRILLS") == "all" else CHOSEN


def with_describe_alone(drill: Drill) -> Drill:
    """Expects, forbids and allows what docs/permissions.md says of a user with Describe alone."""
    differs = {
        detector: words
        for detector in DETECTORS
        if (words := alerts_with_describe_alone().get(alert_name(detector)))
    }
    may_fail = {d for d, words in differs.items() if words & {"never", "less"}}
    may_fire = {d for d, words in differs.items() if words & {"less", "more"}}
    steps = {alert(detector).text for detector in may_fail}
    return replace(
        drill,
        steps=tuple(step for step in drill.steps if step.text not in steps),
        expected=tuple(each for each in drill.expected if each.detector not in may_fail),
        forbidden=tuple(each for each in drill.forbidden if "more" not in differs.get(each, ())),
        allowed=(*drill.allowed, *sorted(may_fire)),
        # What is lost need not be claimed, so no cause is named for it.
        causes=None,
    )

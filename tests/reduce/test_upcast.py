"""This release reads the state of earlier ones: nothing is lost, and alerts continue.

`testdata/state/group-1.bin` and `group-2.bin` were written by the releases with versions 1 and 2
of the partition state, after the histories below.
"""

from __future__ import annotations

import copy

from msgspec.structs import replace

from tests.conftest import ROOT
from tests.scenarios.scenario import Scenario
from tests.scenarios.values import ORIGIN
from tidemark.core.identity import alert_name
from tidemark.core.partition import PartitionState, Shrink
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import decode_group

HISTORY_1 = (
    "partition orders-0 replicas=1,2,3 min_isr=2",
    "pass 5 add=10 lineage=0:10",
    "pass 40 add=10",
    "pass 1 isr=1,2",
    "pass 3 add=10 down=3:timed_out",
    "pass 2 down=none isr=1,2,3 leo=700",
    "pass 1 leader=none isr=none elr=1 leaderless epoch=1",
    "pass 1 leader=2 isr=2 epoch=2 leo=1:400,2:300,3:400 hw=300 lineage=0:300,2:300",
    "pass 1 hw=300",
)
CONTINUED_1 = ("pass 3 isr=2,3 add=10", "pass 2 isr=1,2,3 add=10", "ack KafkaCommittedDataLoss")
# Then a storm of elections, a suspected unclean one, a zombie leader, and a recorded shrink.
HISTORY_2 = (
    *HISTORY_1,
    "pass leader=3 isr=2,3 epoch=3 elr=none",
    "pass leader=2 epoch=4",
    "pass leader=3 epoch=5",
    "pass leader=1 isr=1 epoch=7",
    "pass 7 leads=3 knows=3:5 add=10",
    "pass isr=1,2 leads=3 knows=3:5",
    "record isr=1 cause=fenced",
    "pass 3 isr=1 add=10",
)
# Detectors read the evidence of their alerts again: the zombie's log grows, the metadata log
# confirms the suspected election, and the storm goes on.
CONTINUED_2 = (
    "pass 2 leo=3:800",
    "pass 2 leads=none knows=none",
    "record isr=1 recovering",
    "pass 2 add=10",
    "pass leader=2 epoch=11 isr=1,2",
    "ack KafkaCommittedDataLoss",
    "pass 9 isr=1,2,3 add=10",
)


LATER_OF_STATE = ("previous_offset_history_epoch", "high_watermark_read_at", "compacted")
LATER_OF_COMMITTED = (
    "log_start_offset",
    "lineage",
    "lineage_complete_from",
    "covers_earlier",
    "read_at",
    "over_at",
)


def upgraded(version: int, *history: str) -> tuple[Scenario, Scenario]:
    """A scenario that goes on from the fixture, and one that was played by this release."""
    new = Scenario()
    new.play(*history)
    old = copy.deepcopy(new)
    path = ROOT / "tests" / "testdata" / "state" / f"group-{version}.bin"
    old.fold = Fold(decode_group(path.read_bytes()), Detection(), 0, 1)
    return old, new


def identities(state: PartitionState) -> list[tuple[object, ...]]:
    """The alerts without their texts and evidence."""
    return [
        (a.detector, a.subject, a.severity, a.since, a.firing, a.held, a.incident, a.broker)
        for a in state.alerts
    ]


def test_state_of_version_1_is_still_read() -> None:
    old, new = upgraded(1, *HISTORY_1)
    assert known_in_version_1(old.state, new.state) == new.state
    shrinks = [[(s.at, s.broker, s.leader) for s in one.state.shrinks] for one in (old, new)]
    assert shrinks[0] == shrinks[1]
    detectors = {alert.detector for alert in old.state.alerts}
    expected = [identity for identity in identities(new.state) if identity[0] in detectors]
    assert identities(old.state) == expected
    lines, acknowledged = old.play(*CONTINUED_1), new.play(*CONTINUED_1)[-1]
    assert lines[-1] == acknowledged
    assert "resolved/acked critical KafkaCommittedDataLoss" in acknowledged
    assert known_in_version_1(old.state, new.state) == new.state


def known_in_version_1(old: PartitionState, new: PartitionState) -> PartitionState:
    """The old state with the parts that version 1 did not have, and that have other texts."""
    old = with_later_fields(old, new)
    dated = [replace(entry, dated=True) for entry in old.committed]
    parts = {"sparse": new.sparse, "alerts": new.alerts, "shrinks": new.shrinks}
    return replace(old, committed=dated, published_digest=new.published_digest, **parts)


def known_in_version_2(old: PartitionState, new: PartitionState) -> PartitionState:
    """The old state with the alerts of this release."""
    old = with_later_fields(old, new)
    published = {"published_at": new.published_at, "published_digest": new.published_digest}
    return replace(old, alerts=new.alerts, **published)


def with_later_fields(old: PartitionState, new: PartitionState) -> PartitionState:
    """The old state with the fields that were added without a new version of the document."""
    table = [
        replace(entry, **{name: getattr(later, name) for name in LATER_OF_COMMITTED})
        for entry, later in zip(old.committed, new.committed, strict=True)
    ]
    later = {name: getattr(new, name) for name in LATER_OF_STATE}
    if old.sparse is not None and old.sparse.metadata is not None:
        assert new.sparse is not None
        assert new.sparse.metadata is not None
        members = new.sparse.metadata.in_sync_replicas
        record = replace(old.sparse.metadata, in_sync_replicas=members)
        election = new.sparse.open_election
        later["sparse"] = replace(old.sparse, metadata=record, open_election=election)
    return replace(old, committed=table, **later)


def test_state_of_version_2_is_still_read() -> None:
    old, new = upgraded(2, *HISTORY_2)
    assert old.state.shrinks[-1] == Shrink(ORIGIN + 66.0, 2, 1, ShrinkCause.FENCING, recorded=True)
    assert not old.state.shrinks[0].recorded
    # This release waits for the lineage of a new leader before it suspects the election.
    known = [identity[:3] for identity in identities(old.state)]
    assert sorted(known, key=str) == sorted((i[:3] for i in identities(new.state)), key=str)
    assert known_in_version_2(old.state, new.state) == new.state
    lines = new.play(*CONTINUED_2)
    assert old.play(*CONTINUED_2) == lines
    assert known_in_version_2(old.state, new.state) == new.state
    fired = "\n".join(lines)
    for text in (
        "update warning KafkaZombieLeader",
        "critical KafkaUncleanElection broker=1: Unclean election",
        "update info KafkaEpochBumpStorm",
        "resolved/acked critical KafkaCommittedDataLoss",
    ):
        assert text in fired


def test_a_view_of_old_state_has_its_alerts() -> None:
    for version, history in ((1, HISTORY_1), (2, HISTORY_2)):
        old, _ = upgraded(version, *history)
        view = old.fold.view(old.key, old.clock)
        names = {alert_name(alert.detector) for alert in old.state.alerts if alert.firing}
        assert {alert.labels["alertname"] for alert in view.alerts} == names
        assert "KafkaCommittedDataLoss" in names

"""State of 0.1.0 and later is read: nothing is lost, and alerts continue. Older state is refused.

`testdata/state/group-3.bin` has the state after HISTORY in version 3, that of 0.1.0.
"""

from __future__ import annotations

import copy

import pytest

from tests.conftest import ROOT
from tests.scenarios.scenario import Scenario
from tests.scenarios.values import ORIGIN
from tidemark.core.errors import StateError
from tidemark.core.partition import STATE_VERSION, Shrink, decode_state, encode_state
from tidemark.core.shrink_causes import ShrinkCause
from tidemark.detect.default_thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import decode_group

STORED = ROOT / "tests" / "testdata" / "state" / f"group-{STATE_VERSION}.bin"
HISTORY = (
    "partition orders-0 replicas=1,2,3 min_isr=2",
    "pass 5 add=10 lineage=0:10",
    "pass 40 add=10",
    "pass 1 isr=1,2",
    "pass 3 add=10 down=3:timed_out",
    "pass 2 down=none isr=1,2,3 leo=700",
    "pass 1 leader=none isr=none elr=1 leaderless epoch=1",
    "pass 1 leader=2 isr=2 epoch=2 leo=1:400,2:300,3:400 hw=300 lineage=0:300,2:300",
    "pass 1 hw=300",
    # A storm of elections, a suspected unclean one, a zombie leader, and a recorded shrink.
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
CONTINUED = (
    "pass 2 leo=3:800",
    "pass 2 leads=none knows=none",
    "record isr=1 recovering",
    "pass 2 add=10",
    "pass leader=2 epoch=11 isr=1,2",
    "ack KafkaCommittedDataLoss",
    "pass 9 isr=1,2,3 add=10",
)


def test_stored_state_continues() -> None:
    new = Scenario()
    new.play(*HISTORY)
    old = copy.deepcopy(new)
    old.fold = Fold(decode_group(STORED.read_bytes()), Detection(), 0, 1)
    assert encode_state(old.state) == encode_state(new.state)
    assert old.state.shrinks[-1] == Shrink(ORIGIN + 66.0, 2, 1, ShrinkCause.FENCING, recorded=True)
    lines = new.play(*CONTINUED)
    assert old.play(*CONTINUED) == lines
    assert encode_state(old.state) == encode_state(new.state)
    fired = "\n".join(lines)
    for text in (
        "update warning KafkaZombieLeader",
        "critical KafkaUncleanElection: Keep the disk of broker",
        "update info KafkaEpochBumpStorm",
        "resolved/acked critical KafkaCommittedDataLoss",
    ):
        assert text in fired


@pytest.mark.parametrize("version", [0, 1, 2, STATE_VERSION + 1])
def test_another_version_is_refused_with_the_cure(version: int) -> None:
    (partition,) = decode_group(STORED.read_bytes()).partitions.values()
    message = rf"version is {version:02x}, not 03.*new stream\.checkpoint"
    with pytest.raises(StateError, match=message):
        decode_state(bytes((version,)) + partition[1:])

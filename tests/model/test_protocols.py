"""The protocols follow the specification; each truncation rule has a flaw that the next fixes."""

from __future__ import annotations

import difflib
import inspect
from types import ModuleType

import pytest

from tidemark_lab.model import kraft, kraft_controller
from tidemark_lab.model.epoch_cache import assign
from tidemark_lab.model.log import (
    Log,
    Record,
    end_offset_for,
    epoch_starts,
    first_difference,
    last_matching_end,
)
from tidemark_lab.model.protocols import (
    PROTOCOLS,
    kip_101,
    kip_279,
    kip_320,
    truncate_to_hw,
)
from tidemark_lab.model.state import Constants, Replicas
from tidemark_lab.model.traces import shortest_traces
from tidemark_lab.model.truncation import LogEpochs

COMMON = ["ControllerElectLeader", "ControllerShrinkIsr", "BecomeLeader"]
UNFENCED = [
    "LeaderExpandIsr",
    "LeaderShrinkIsr",
    "LeaderWrite",
    "LeaderIncHighWatermark",
    "FollowerReplicate",
]
# The disjunctions Next of KafkaReplication.tla's protocols.
SPECIFIED = {
    "truncate-to-hw": [*COMMON, *UNFENCED, "BecomeFollowerTruncateToHighWatermark"],
    "kip-101": [*COMMON, *UNFENCED, "BecomeFollowerTruncateKip101"],
    "kip-279": [*COMMON, *UNFENCED, "BecomeFollowerTruncateKip279"],
    "kip-320": [
        *COMMON,
        "FencedLeaderExpandIsr",
        "FencedLeaderShrinkIsr",
        "LeaderWrite",
        "FencedLeaderIncHighWatermark",
        "FencedBecomeFollowerAndTruncate",
        "FencedFollowerFetch",
    ],
}
FAULTS = {"ControllerElectUncleanLeader", "LoseUnflushed"}


def log(*records: tuple[int, int]) -> Log:
    return tuple(Record(*record) for record in records)


@pytest.mark.parametrize("name", SPECIFIED)
def test_the_actions_are_those_of_the_specification_and_two_faults(name: str) -> None:
    names = [action.name for action in PROTOCOLS[name].actions]
    assert set(names) - FAULTS == set(SPECIFIED[name]) and set(names) >= FAULTS
    assert len(names) == len(set(names))


def actions_taken(protocol: str, constants: Constants) -> set[str]:
    """The actions that the last steps of the shortest traces take."""
    traces = shortest_traces(PROTOCOLS[protocol], constants, 20_000)
    return {step.action.name for trace in traces for step in trace.steps[-1:]}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_faults_happen_only_if_they_are_enabled(name: str) -> None:
    constants = Constants(records=1, log_size=1, max_epoch=1)
    assert not actions_taken(name, constants) & FAULTS
    assert actions_taken(name, constants._replace(lossy_disk=True, unclean_election=True)) >= FAULTS


@pytest.mark.parametrize(
    ("older", "newer"), [(truncate_to_hw, kip_101), (kip_101, kip_279), (kip_279, kip_320)]
)
def test_neighbouring_protocols_differ_only_by_one_kip(
    older: ModuleType, newer: ModuleType
) -> None:
    """They differ in the rule and its name; KIP-320 also in which replicas answer and count."""
    one, other = (
        inspect.getsource(module).split("from __future__")[1].splitlines()
        for module in (older, newer)
    )
    changed = [line for line in difflib.ndiff(one, other) if line[:2] == "+ "]
    assert len(changed) <= 16


SAME = log((0, 0), (0, 1))
# The leader never had epoch 1. It answers with the start of epoch 2, which is above the follower's
# record of epoch 1.
WITHOUT_EPOCH_1, WITH_EPOCH_1 = log((0, 0), (0, 1), (2, 3)), log((0, 0), (1, 2))


@pytest.mark.parametrize(
    ("protocol", "leader", "follower", "high_watermark", "offset"),
    [
        # KIP-101 keeps a record of another epoch below the answer.
        ("kip-101", WITHOUT_EPOCH_1, WITH_EPOCH_1, 0, 2),
        ("kip-279", WITHOUT_EPOCH_1, WITH_EPOCH_1, 0, 1),
        # Only the first protocol uses nothing but the high watermark.
        ("truncate-to-hw", SAME, SAME, 1, 1),
        ("kip-101", SAME, SAME, 1, 2),
        ("kip-279", SAME, SAME, 1, 2),
        # A leader that does not know the epoch: the follower's high watermark decides.
        ("kip-101", (), SAME, 1, 1),
        ("kip-279", log((0, 0)), log((0, 0), (1, 1)), 1, 1),
        ("kip-101", log((0, 0)), (), 0, 0),
    ],
)
def test_where_a_follower_truncates(
    protocol: str, leader: Log, follower: Log, high_watermark: int, offset: int
) -> None:
    knows, asks = (LogEpochs(epoch_starts(each), len(each)) for each in (leader, follower))
    assert PROTOCOLS[protocol].truncation.decide(knows, asks, high_watermark)[0] == offset


def test_fetches_truncate_where_kip_279_truncates() -> None:
    """For every pair of logs that a protocol with fencing can reach."""
    pairs = {
        pair
        for trace in shortest_traces(PROTOCOLS["kip-320"], Constants(), 4_000)
        for pair in (trace.last.logs, trace.last.logs[::-1])
    }
    diverging = [pair for pair in pairs if first_difference(*pair) is not None]
    assert len(diverging) > 10
    for leader, follower in pairs:
        wanted = last_matching_end(leader, follower)
        knows = LogEpochs(assign(epoch_starts(leader), 9, len(leader)), len(leader))
        asking = LogEpochs(epoch_starts(follower), len(follower))
        assert PROTOCOLS["kip-279"].truncation.decide(knows, asking, 0)[0] == wanted
        while (answer := kraft.diverging_end(leader, follower)) is not None:
            follower = follower[: kraft.truncation_offset(answer, follower)]  # noqa: PLW2901
        assert len(follower) == wanted


def test_epoch_starts_and_ends_of_a_log() -> None:
    mixed = log((0, 0), (0, 1), (2, 2), (5, 3))
    assert epoch_starts(mixed) == ((0, 0), (2, 2), (5, 3))
    assert [end_offset_for(mixed, epoch) for epoch in range(7)] == [
        (0, 2),
        (0, 2),
        (2, 3),
        (2, 3),
        (2, 3),
        (5, 4),
        (5, 4),
    ]
    assert end_offset_for(log((3, 0)), 1) == (1, 0)
    assert last_matching_end(mixed, log((0, 0), (1, 9))) == 1
    assert (
        first_difference(mixed, mixed[:2]) is None
        and first_difference(mixed, log((0, 0), (1, 9))) == 1
    )


@pytest.mark.parametrize(
    ("before", "isr", "unclean", "expected"),
    [
        # Replicas that leave an ISR which falls below min ISR stay eligible. Several can leave at
        # once only by a request of the leader.
        ((0, 1, 2), (0,), (), (1, 2)),
        # At or above min ISR the ELR is empty.
        ((0, 1, 2), (0, 1), (), ()),
        # An unclean shutdown ends eligibility.
        ((0, 1, 2), (0,), (1,), (2,)),
        # The last member can leave too.
        ((0, 2), (), (), (0, 2)),
    ],
)
def test_eligible_leader_replicas(
    before: Replicas, isr: Replicas, unclean: Replicas, expected: Replicas
) -> None:
    assert kraft_controller.eligible_leader_replicas(2, before, isr, unclean) == expected


def test_in_sync_and_eligible_replicas_exclude_each_other() -> None:
    constants = Constants(min_isr=2, max_epoch=1, records=1, log_size=1, lossy_disk=True)
    for trace in shortest_traces(PROTOCOLS["kip-966"], constants, 20_000):
        quorum = trace.last.quorum
        assert not set(quorum.isr) & set(quorum.elr)
        assert len(quorum.isr) < 2 or not quorum.elr
        assert quorum.leader is None or quorum.leader in quorum.isr

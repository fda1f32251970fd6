from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from kafka import TopicPartition

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import LocalCluster, Place
from tidemark_lab.drills.collector_faults import CollectorKilled
from tidemark_lab.faults.fault import Fault, run_fault
from tidemark_lab.faults.node_faults import (
    ControlledRestart,
    ControllerRestart,
    Crash,
    KillAll,
    Pause,
    RollingRestart,
    SlowFollower,
)
from tidemark_lab.faults.topic_faults import (
    Compaction,
    DeleteRecords,
    IdleTopics,
    LeaderMoves,
    PreferredElection,
    RaisedMinIsr,
    Reassignment,
    Recreation,
    RetentionShrink,
)

PLACES = [("t", 0), ("t", 1)]


class Recorder:
    """Records each call as text; answers True, or what `answers` holds for the name."""

    def __init__(self, **answers: Any) -> None:
        self.calls: list[str] = []
        self._answers = answers

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **_: Any) -> Any:
            self.calls.append(" ".join(map(str, (name, *arguments))))
            return self._answers.get(name, True)

        return call


class Cluster(Recorder):
    """A cluster with an admin client that records, too."""

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.admin = Recorder(list_partition_reassignments={}, alter_configs={}, **answers)

    def keep_changes(self) -> list[Any]:
        """From now on each change of a configuration: the resource."""
        changes: list[Any] = []

        def keep(resources: list[Any], **_: Any) -> dict[str, Any]:
            changes.extend(resources)
            return {}

        vars(self.admin)["alter_configs"] = keep
        return changes

    def administer(self, act: Callable[[Any], Any], what: str) -> Any:
        return act(self.admin)

    @property
    def local(self) -> LocalCluster:
        return cast("LocalCluster", self)


def calls_of(cluster: Cluster, fault: Fault) -> list[str]:
    """What a whole fault calls, without the questions whether it has taken effect."""
    run_fault(fault, lambda: True)
    questions = ("is_ready", "has_controller", "list_partition_reassignments")
    calls = cluster.calls + cluster.admin.calls
    return [call for call in calls if not call.startswith(questions)]


FAULTS: list[
    tuple[Callable[[LocalCluster], Fault], tuple[int, ...], tuple[Place, ...], Sequence[str]]
] = [
    (lambda c: ControlledRestart(c, 2), (2,), (), ["stop_broker 2", "start_broker 2"]),
    (lambda c: Crash(c, 3), (3,), (), ["kill_broker 3", "start_broker 3"]),
    (lambda c: Pause(c, 1), (1,), (), ["pause_broker 1", "resume_broker 1"]),
    (
        lambda c: RollingRestart(c, lambda: True),
        (1, 2, 3),
        (),
        [f"{verb}_broker {broker}" for broker in (1, 2, 3) for verb in ("stop", "start")],
    ),
    (ControllerRestart, (100,), (), ["stop_broker 100", "start_broker 100"]),
    (
        lambda c: KillAll(c, (3, 1)),
        (3, 1),
        (),
        [f"{verb}_broker {broker}" for verb in ("kill", "start") for broker in (3, 1)],
    ),
    # The cluster stands for the collector and for the load, too.
    (
        lambda c: CollectorKilled(cast("Any", c), "c"),
        (),
        (),
        ["stop_collector c", "start_collector c"],
    ),
    (
        lambda c: IdleTopics(c, PLACES, cast("Any", c), 0.0),
        (),
        (*PLACES,),
        ["pause t", "resume t"],
    ),
    (
        lambda c: DeleteRecords(c, {("t", 1): 7}),
        (),
        (("t", 1),),
        ["delete_records {TopicPartition(topic='t', partition=1): 7}"],
    ),
    (
        lambda c: PreferredElection(c, [*PLACES, ("u", 5)]),
        (),
        (*PLACES, ("u", 5)),
        ["elect_preferred_leaders {'t': [0, 1], 'u': [5]}"],
    ),
    (
        lambda c: Recreation(c, "t", {0: (1, 2)}, {"a": "b"}),
        (),
        (("t", 0),),
        ["create_topic t {0: (1, 2)} {'a': 'b'}", "delete_topics ['t']"],
    ),
]


@pytest.mark.parametrize(("make", "brokers", "partitions", "calls"), FAULTS)
def test_a_fault_takes_what_it_names_and_returns_it(
    make: Callable[[LocalCluster], Fault],
    brokers: tuple[int, ...],
    partitions: tuple[Place, ...],
    calls: Sequence[str],
) -> None:
    cluster = Cluster()
    fault = make(cluster.local)
    assert calls_of(cluster, fault) == calls
    assert (fault.brokers, fault.partitions) == (brokers, partitions)


def test_the_record_has_what_was_touched_and_when() -> None:
    record = run_fault(Pause(Cluster().local, 2, hold_seconds=0.05), lambda: True)
    assert (record.name, record.detail, record.brokers) == (
        "pause",
        "broker 2 for 0.1 s",
        (2,),
    )
    assert record.begin + 0.05 <= record.healed_at <= record.end


def test_a_fault_waits_until_the_cluster_is_whole() -> None:
    answers = iter([False, False, True])
    run_fault(Pause(Cluster().local, 2), lambda: next(answers))
    assert next(answers, None) is None


def test_a_cluster_that_does_not_recover_is_an_error() -> None:
    fault = Pause(Cluster().local, 2)
    fault.deadline_seconds = 0.0
    with pytest.raises(ClusterError, match=r"whole after pause \(broker 2\): not within 0 s"):
        run_fault(fault, lambda: False)


def test_a_fault_whose_injection_fails_is_healed() -> None:
    cluster = Cluster(alter_partition_reassignments={TopicPartition("t", 0): "refused"})
    fault = Reassignment(cluster.local, {("t", 0): (1, 2)}, {("t", 0): (1, 3)}, 1000)
    with pytest.raises(ClusterError, match=r"did not reassign: .*refused"):
        run_fault(fault, lambda: True)
    assert [call for call in cluster.admin.calls if "reassignments" in call] == [
        f"alter_partition_reassignments {{TopicPartition(topic='t', partition=0): {brokers}}}"
        for brokers in ([1, 3], [1, 2])
    ]


def test_replicas_move_and_return_under_a_throttle_that_is_removed() -> None:
    cluster = Cluster(alter_partition_reassignments={})
    changes = cluster.keep_changes()
    before = {("t", 0): (1, 2), ("t", 1): (2, 3)}
    fault = Reassignment(cluster.local, before, {("t", 0): (1, 3)}, 1000)
    calls = calls_of(cluster, fault)
    assert [call[-7:] for call in calls] == ["[1, 3]}", "[1, 2]}"]
    assert (fault.brokers, fault.partitions) == ((2, 3), (("t", 0),))
    limited = [(str(broker), ["1000", "1000"]) for broker in (1, 2, 3)]
    free = [(str(broker), [None, None]) for broker in (1, 2, 3)]
    # Only the replica that is new on its broker fetches slowly.
    assert [(each.name, [value for _, value in each.configs.values()]) for each in changes] == [
        *(*limited, ("t", ["0:1,0:2", "0:3"]), *free, ("t", [None, None])),
        *(*limited, ("t", ["0:1,0:3", "0:2"]), *free, ("t", [None, None])),
    ]


@pytest.mark.parametrize("kind", [RetentionShrink, Compaction])
def test_configurations_return_to_their_defaults(kind: type[Compaction]) -> None:
    cluster = Cluster()
    changes = cluster.keep_changes()
    run_fault(kind(cluster.local, PLACES, 0.0), lambda: True)
    injected, healed = (each.configs for each in changes)
    assert {key: value for key, (_, value) in injected.items()} == kind.configs
    assert healed == dict.fromkeys(kind.configs, ("DELETE", None))


def test_a_slow_follower_stops_and_runs_until_it_is_healed() -> None:
    cluster = Cluster()
    fault = SlowFollower(cluster.local, 3, 0.01, 0.01)
    fault.hold_seconds = 0.05
    run_fault(fault, lambda: True)
    assert set(cluster.calls) == {"pause_broker 3", "resume_broker 3"}
    assert cluster.calls[-1] == "resume_broker 3"


def test_a_leader_moves_by_the_order_of_its_replicas_and_returns() -> None:
    cluster = Cluster()
    run_fault(LeaderMoves(cluster.local, ("t", 0), (1, 2, 3), 2), lambda: True)
    moves = [call for call in cluster.admin.calls if call.startswith("alter")]
    assert moves == [
        f"alter_partition_reassignments {{TopicPartition(topic='t', partition=0): {order}}}"
        for order in ([3, 1, 2], [2, 3, 1], [1, 2, 3])
    ]


def test_the_minimum_rises_and_falls() -> None:
    cluster = Cluster()
    changes = cluster.keep_changes()
    run_fault(RaisedMinIsr(cluster.local, PLACES, 3, 1), lambda: True)
    assert [value for each in changes for _, value in each.configs.values()] == ["3", "1"]

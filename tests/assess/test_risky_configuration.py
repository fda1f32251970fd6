"""Each kind of risky configuration, what is not known, and what is no risk."""

from __future__ import annotations

from typing import Any

import pytest

from tests.export.make import broker_view, cluster_view, view
from tidemark.assess.risky_configuration import KINDS, list_risks, partition_risks
from tidemark.core.broker_report import BrokerConfiguration
from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import ClusterState

SAFE: dict[str, Any] = {
    "unclean_leader_election": False,
    "throttled_replicas": [],
    "in_sync_on_one_rack": False,
}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, ()),
        ({"assigned": [1], "effective_min_in_sync_replicas": 1}, ("single_replica",)),
        # The replicas that a reassignment removes do not count.
        ({"removing": [2, 3], "effective_min_in_sync_replicas": 1}, ("single_replica",)),
        ({"effective_min_in_sync_replicas": 3}, ("min_isr_equals_replicas",)),
        ({"effective_min_in_sync_replicas": 1}, ("min_isr_1",)),
        (
            {"unclean_leader_election": True, "in_sync_on_one_rack": True},
            ("unclean_leader_election", "one_rack"),
        ),
        ({"throttled_replicas": [1]}, ("leftover_throttle",)),
    ],
)
def test_the_risks_of_a_partition(changes: dict[str, Any], found: tuple[str, ...]) -> None:
    assert partition_risks(view(**{**SAFE, **changes})) == (found, ())


def test_what_was_not_read_is_unknown() -> None:
    risks = partition_risks(view(effective_min_in_sync_replicas=None))
    assert risks == ((), tuple(k for k in KINDS if k not in ("single_replica", "elr_off")))
    assert partition_risks(view(assigned=[])).unknown[0] == "single_replica"


def test_a_single_replica_is_one_risk_whatever_else_is_set() -> None:
    alone = view(assigned=[1], effective_min_in_sync_replicas=None)
    assert partition_risks(alone) == (("single_replica",), ("leftover_throttle",))


@pytest.mark.parametrize(
    ("reassigning", "count"), [(0, (1, [4], 1)), (3, (0, [], 1)), (None, (0, [], 3))]
)
def test_a_throttle_is_left_behind_once_nothing_is_reassigned(
    reassigning: int | None, count: tuple[int, list[int], int]
) -> None:
    """It is unknown where reassignments cannot be listed."""
    throttled = BrokerConfiguration(replication_throttles={"leader": 5})
    views = [
        cluster_view(reassigning=reassigning),
        broker_view(4, configuration=throttled),
        broker_view(5, configuration=BrokerConfiguration(replication_throttles={})),
        broker_view(6),
        view(**SAFE),
        view(partition=1, **SAFE | {"throttled_replicas": [1, 2]}),
    ]
    found = list_risks(views)[KINDS.index("leftover_throttle")]
    assert found[1:] == count


def test_brokers_whose_cluster_has_eligible_leader_replicas_off_are_named() -> None:
    """Not those that do not support them; one that was not asked is unknown."""
    states = {1: True, 2: False, 3: None, 4: False}
    views = [
        broker_view(number, configuration=BrokerConfiguration(eligible_leader_replicas=state))
        for number, state in states.items()
    ]
    found = list_risks([*views, broker_view(5)])[KINDS.index("elr_off")]
    assert found[1:] == (0, [2, 4], 1)


def test_a_broker_with_unclean_elections_by_default_is_named() -> None:
    views = [broker_view(1, configuration=BrokerConfiguration(unclean_leader_election=True))]
    assert list_risks(views)[KINDS.index("unclean_leader_election")][1:] == (0, [1], 0)


@pytest.mark.parametrize(
    ("racks", "brokers", "shared"),
    [
        ({1: "a", 2: "a", 3: "b"}, [1, 2], True),
        ({1: "a", 2: "a", 3: "b"}, [1, 3], False),
        # One copy is another risk, and a cluster with one rack has no better place.
        ({1: "a", 2: "a", 3: "b"}, [1], False),
        ({1: "a", 2: "a", 3: "a"}, [1, 2], False),
        ({1: None, 2: None, 3: None}, [1, 2], False),
        ({1: "a", 2: None, 3: "b"}, [1, 2], None),
        ({1: "a", 3: "b"}, [1, 2], None),
    ],
)
def test_racks(racks: dict[int, str | None], brokers: list[int], shared: bool | None) -> None:
    cluster = ClusterState()
    cluster.brokers = {b: BrokerSeen("ok", 0.0, rack=rack) for b, rack in racks.items()}
    assert cluster.on_one_rack(brokers) is shared

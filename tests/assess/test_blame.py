"""Who makes a follower late, by the links of the cluster."""

from __future__ import annotations

import pytest

from tidemark.assess.blame import blame, blamed_of

# Links: (leader, follower) -> (partitions that moved, those that are late).
SLOW_LEADER = {(1, 2): (4, 4), (1, 3): (4, 4), (2, 3): (4, 0), (3, 2): (4, 0)}
SLOW_FOLLOWER = {(1, 3): (4, 4), (2, 3): (4, 3), (1, 2): (4, 0), (2, 1): (4, 0)}
ONE_LINK = {(1, 3): (4, 4), (2, 3): (4, 0), (1, 2): (4, 0)}
TWO_BROKERS = {(1, 2): (4, 4)}


@pytest.mark.parametrize(
    ("links", "beside", "expected"),
    [
        (SLOW_LEADER, {}, ("leader", 1)),
        # As the only follower, it keeps up with another leader.
        ({(1, 3): (4, 4), (2, 3): (4, 0)}, {}, ("leader", 1)),
        # Two followers, and no other leader to compare with.
        ({(1, 2): (1, 1), (1, 3): (1, 1)}, {}, ("leader", 1)),
        (SLOW_FOLLOWER, {}, ("follower", 3)),
        ({(1, 3): (4, 4), (2, 3): (4, 4)}, {}, ("follower", 3)),
        (ONE_LINK, {}, ("link", None)),
        ({(1, 3): (4, 4)}, {}, None),
        # All are late everywhere.
        ({(a, b): (4, 4) for a in (1, 2, 3) for b in (1, 2, 3) if a != b}, {}, None),
        # One partition of several: what the others of the partition do counts.
        ({(1, 3): (4, 1), (1, 2): (4, 0)}, {2: False}, ("follower", 3)),
        ({(1, 3): (4, 1), (1, 2): (4, 1)}, {2: True}, ("leader", 1)),
        ({}, {2: False}, ("follower", 3)),
        ({}, {}, None),
        # Where only this follower had to fetch lately, another one has all.
        ({(1, 3): (1, 1)}, {2: False}, ("follower", 3)),
    ],
)
def test_the_cause_of_a_late_follower(
    links: dict[tuple[int, int], tuple[int, int]],
    beside: dict[int, bool],
    expected: tuple[str, int | None] | None,
) -> None:
    found = blame(links, 1, 3, beside)
    assert (None if found is None else (found.cause, found.broker)) == expected
    assert blame(links, None, 3, beside) is None


def test_the_broker_that_drives_a_follower_out_of_several_sets() -> None:
    assert blamed_of(SLOW_LEADER, 3) == 1
    assert blamed_of(SLOW_FOLLOWER, 3) == 3
    assert blamed_of(SLOW_FOLLOWER, 1) is None
    assert blamed_of(ONE_LINK, 3) is None
    assert blamed_of(TWO_BROKERS, 2) is None


def test_the_evidence_names_who_is_late_and_who_is_not() -> None:
    found = [blame(links, 1, 3) for links in (SLOW_LEADER, SLOW_FOLLOWER, ONE_LINK)]
    assert [each.evidence for each in found if each is not None] == [
        (
            "All followers of leader 1 are late (2 and 3) and keep up with other leaders: check "
            "broker 1"
        ),
        "Leader 1 serves broker 2 in time: check broker 3",
        (
            "Leader 1 serves broker 2 in time, and broker 3 keeps up with 2: check the network "
            "between 1 and 3"
        ),
    ]

"""The pauses of a broker's process, as passes show them."""

from __future__ import annotations

import pytest

from tidemark.core.broker_seen import MAX_PAUSES, PAUSES_SECONDS, Pause
from tidemark.core.cluster import ClusterState
from tidemark.core.events import OK, REFUSED, TIMED_OUT, BrokerAnswer
from tidemark.evolve.broker_answers import HOLE_SECONDS, apply_answers, grant_grace

OUTCOMES = {"a": OK, "t": TIMED_OUT, "r": REFUSED}


def watch(
    cluster: ClusterState, letters: str, *, first: float = 1.0, every: float = 1.0
) -> list[Pause]:
    """Of broker 2, after passes: a(nswers), t(imes out), r(efuses), n(o broker answers)."""
    for count, letter in enumerate(letters):
        both = [TIMED_OUT, TIMED_OUT] if letter == "n" else [OK, OUTCOMES[letter]]
        answers = [BrokerAnswer(broker=b, outcome=o) for b, o in enumerate(both, start=1)]
        apply_answers(cluster, answers, first + count * every)
    return cluster.brokers[2].pauses


@pytest.mark.parametrize(
    ("letters", "pauses"),
    [
        ("aatttta", [Pause(3.0, 6.0)]),
        ("attattta", [Pause(2.0, 3.0), Pause(5.0, 7.0)]),
        # Longer than no time at all, but nobody knows how long.
        ("ata", []),
        # It has not ended.
        ("atttt", []),
        # The process ended.
        ("attrrtta", []),
        ("arrrra", []),
        # The collector was cut off before.
        ("annntta", [Pause(5.0, 6.0)]),
        # Nobody knows how the broker answered while the collector was cut off.
        ("attnntta", [Pause(6.0, 7.0)]),
        ("annnna", []),
        # It was never seen to answer before.
        ("ttta", [Pause(1.0, 3.0)]),
    ],
)
def test_a_pause_lasts_from_the_first_pass_without_an_answer_to_the_last(
    letters: str, pauses: list[Pause]
) -> None:
    assert watch(ClusterState(), letters) == pauses


def test_a_hole_between_passes_is_no_pause() -> None:
    assert watch(ClusterState(), "atta", every=HOLE_SECONDS) == [
        Pause(1.0 + HOLE_SECONDS, 1.0 + 2 * HOLE_SECONDS)
    ]
    assert watch(ClusterState(), "atta", every=HOLE_SECONDS + 0.1) == []


def test_restart_grace_explains_a_pause(cluster: ClusterState) -> None:
    watch(cluster, "a")
    grant_grace(cluster, [2], 1.0, 600_000.0)
    assert watch(cluster, "ttta", first=2.0) == []


def test_the_pauses_of_one_minute_are_kept(cluster: ClusterState) -> None:
    watch(cluster, "atta")
    old = cluster.brokers[2].pauses
    assert old == [Pause(2.0, 3.0)]
    assert cluster.brokers[2].pauses_before(3.0 + PAUSES_SECONDS) == old
    assert cluster.brokers[2].pauses_before(3.1 + PAUSES_SECONDS) == []
    assert watch(cluster, "atta", first=100.0) == [Pause(101.0, 102.0)]


def test_a_broker_that_pauses_all_the_time_takes_no_more_memory() -> None:
    assert len(watch(ClusterState(), "tta" * 40, every=0.3)) == MAX_PAUSES

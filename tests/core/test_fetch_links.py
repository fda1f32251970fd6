"""Which links are late, from pass to pass."""

from __future__ import annotations

from tidemark.core.events import Link, Observation, Replica
from tidemark.core.fetch_links import LinkCounter


def passes(
    *ends: tuple[int, ...], seconds: float = 1.0, adding: list[int] | None = None
) -> list[list[Link]]:
    """The links after each pass: log ends of leader 1 and its followers; -1: no answer."""
    counter, before, found = LinkCounter(), -1, []
    for number, (end, *others) in enumerate(ends):
        at = 100.0 + number * seconds
        samples = [
            Replica(broker=b, log_end_offset=e if e >= 0 else None)
            for b, e in enumerate((end, *others), start=1)
        ]
        observation = Observation(
            topic="t", partition=0, observed_at=at, leader=1, samples=samples, adding=adding or []
        )
        if before >= 0:
            counter.note(observation, before)
        before = end
        found.append(counter.take(at + 0.1))
    return found


def test_a_follower_is_late_that_lacks_a_record_of_two_seconds_before() -> None:
    moves = [(10, 10, 10), (20, 10, 20), (30, 10, 30), (40, 10, 40), (50, 10, 50)]
    assert passes(*moves) == [[], [], [], [], [(1, 2, 1, 1), (1, 3, 1, 0)]]
    # In a pass of five seconds the record of the pass before is old enough.
    assert passes(*moves, seconds=5.0)[2] == [(1, 2, 1, 1), (1, 3, 1, 0)]


def test_it_stays_late_until_it_has_what_the_leader_had_in_the_pass_before() -> None:
    moves = [(10, 10), (20, 10), (30, 10), (40, 10), (50, 10), (60, 30), (60, 60)]
    assert [bool(links) for links in passes(*moves)] == [False] * 4 + [True, True, False]


def test_a_follower_that_fetches_a_second_later_is_not_late() -> None:
    assert not any(passes(*((10 * n, max(0, 10 * n - 15)) for n in range(1, 9))))


def test_silence_and_a_copy_that_a_reassignment_makes_are_not_late() -> None:
    assert not any(passes(*((10 * n, -1) for n in range(1, 9))))
    assert not any(passes(*((10 * n, 0) for n in range(1, 9)), adding=[2]))

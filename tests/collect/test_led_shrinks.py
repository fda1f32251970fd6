"""ISR shrinks by leader: the leader's own, and those of brokers that gave no answer."""

from __future__ import annotations

import pytest

from tidemark.collect.metadata.left_replicas import SETTLE_SECONDS, LedShrinks
from tidemark.core.events import OK, REFUSED

SETTLED = 10.0 + SETTLE_SECONDS


@pytest.mark.parametrize(
    ("notes", "passes"),
    [
        # A shrink counts once its brokers are known to answer.
        (
            [(1, {2}), (1, {2})],
            [
                ({2: OK}, 10.0, {}),
                ({2: OK}, SETTLED, {1: (2, 0)}),
                ({2: REFUSED}, 20.0, {1: (2, 0)}),
            ],
        ),
        # A broker that stops soon after is absent.
        ([(1, {2})], [({2: OK}, 10.0, {}), ({2: REFUSED}, 11.0, {1: (1, 1)})]),
        # All removed brokers must be absent.
        (
            [(1, {2, 3})],
            [({2: REFUSED, 3: OK}, 10.0, {}), ({2: OK, 3: OK}, SETTLED, {1: (1, 0)})],
        ),
        # A broker that is not listed is absent too.
        ([(1, {2, 3}), (3, {2})], [({3: REFUSED}, 30.0, {1: (1, 1), 3: (1, 1)})]),
    ],
)
def test_shrinks_and_those_of_brokers_that_were_absent(
    notes: list[tuple[int, set[int]]],
    passes: list[tuple[dict[int, str], float, dict[int, tuple[int, int]]]],
) -> None:
    """By leader: how many shrinks it made, and how many of them of absent brokers."""
    shrinks = LedShrinks()
    for leader, removed in notes:
        shrinks.note(leader, frozenset(removed))
    for outcomes, at, totals in passes:
        shrinks.settle(outcomes, at)
        assert shrinks.totals == totals

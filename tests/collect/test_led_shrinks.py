"""ISR shrinks by leader: the leader's own, and those of brokers that gave no answer."""

from __future__ import annotations

from tidemark.collect.metadata.led_shrinks import SETTLE_SECONDS, LedShrinks
from tidemark.core.events import OK, REFUSED

BOTH = frozenset({2, 3})


def test_a_shrink_counts_once_its_brokers_are_known_to_answer() -> None:
    shrinks = LedShrinks()
    shrinks.note(1, frozenset({2}))
    shrinks.note(1, frozenset({2}))
    shrinks.settle({2: OK}, 10.0)
    assert shrinks.totals == {}
    shrinks.settle({2: OK}, 10.0 + SETTLE_SECONDS)
    assert shrinks.totals == {1: (2, 0)}
    shrinks.settle({2: REFUSED}, 20.0)
    assert shrinks.totals == {1: (2, 0)}


def test_a_broker_that_stops_soon_after_is_absent() -> None:
    shrinks = LedShrinks()
    shrinks.note(1, frozenset({2}))
    shrinks.settle({2: OK}, 10.0)
    shrinks.settle({2: REFUSED}, 11.0)
    assert shrinks.totals == {1: (1, 1)}


def test_all_removed_brokers_must_be_absent() -> None:
    shrinks = LedShrinks()
    shrinks.note(1, BOTH)
    shrinks.settle({2: REFUSED, 3: OK}, 10.0)
    shrinks.settle({2: OK, 3: OK}, 10.0 + SETTLE_SECONDS)
    assert shrinks.totals == {1: (1, 0)}
    shrinks.note(1, BOTH)
    shrinks.note(3, frozenset({2}))
    shrinks.settle({3: REFUSED}, 30.0)
    assert shrinks.totals == {1: (2, 1), 3: (1, 1)}, "a broker that is not listed is absent too"

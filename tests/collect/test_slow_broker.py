"""One slow broker does not stretch the pass. Times are virtual: they are exact on any machine."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.collect.sharded import Member
from tests.collect.virtual_time import VirtualTime
from tidemark.collect.collection_pass import PASSES_PER_FULL_WAIT
from tidemark.core.codec import decode_batch
from tidemark.core.events import OK, TIMED_OUT, Event, Observation, Pass

TIMEOUT, PERIOD = 0.5, 1.0


class Timed:
    """Passes over a topic of 100 partitions on three brokers."""

    def __init__(self, keeps_pace: bool) -> None:
        member = Member(0, 0, 1, keeps_pace=keeps_pace, broker_timeout_seconds=TIMEOUT)
        self.passes, self.brokers = member.passes, member.brokers
        self.seconds = 0.0
        self._end = 0

    def run(self) -> list[Event]:
        """One pass in which every offset moves."""
        self._end += 1
        for broker in self.brokers.values():
            broker.show(lambda _: self._end)
        begun = time.monotonic()
        records = self.passes.loop.run(self.passes.run, set())
        self.seconds = time.monotonic() - begun
        self.passes.loop.run(self.passes.loop.sleep, begun + PERIOD - time.monotonic())
        return [event for record in records for event in decode_batch(record.payload).events]


@pytest.fixture
def timed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Timed]:
    """The parameter is `keeps_pace`."""
    VirtualTime(monkeypatch)
    made = Timed(getattr(request, "param", True))
    # The barriers know by then how fast the brokers are.
    for _ in range(15):
        made.run()
    assert made.seconds < 0.1
    yield made
    made.passes.close()


@pytest.fixture
def slow(timed: Timed) -> Timed:
    """Four answers take broker 2 1.6 s."""
    timed.brokers[2].seconds = 0.4
    return timed


def outcome(events: list[Event], broker: int) -> str:
    closing = next(event for event in events if isinstance(event, Pass))
    return next(answer.outcome for answer in closing.brokers if answer.broker == broker)


def errors(events: list[Event], broker: int) -> set[str | None]:
    return {
        sample.error
        for event in events
        if isinstance(event, Observation)
        for sample in event.samples
        if sample.broker == broker
    }


def until_full_wait(timed: Timed) -> Iterator[list[Event]]:
    while (timed.passes.number + 1) % PASSES_PER_FULL_WAIT != 1:
        yield timed.run()


def test_a_slow_broker_does_not_stretch_the_pass(slow: Timed) -> None:
    passes = []
    for events in until_full_wait(slow):
        passes.append(slow.seconds)
        # The others are observed as ever, and the slow one is alive.
        assert errors(events, 1) == errors(events, 3) == {None}
        assert errors(events, 2) == {"no_answer"}
        assert outcome(events, 2) == OK
    assert len(passes) == 5
    assert max(passes) < 1.25 * TIMEOUT + 0.15


def test_what_it_answered_in_time_counts_and_its_leadership_is_not_denied(timed: Timed) -> None:
    timed.brokers[2].seconds = 0.25
    events = timed.run()
    led = [e for e in events if isinstance(e, Observation) and e.leader == 2]
    assert len(led) > 30
    # The high watermark under the fence came first.
    assert {(e.committed, e.leaderless, e.lineage is None) for e in led} == {(16, False, True)}


def test_it_is_sampled_in_full_now_and_then(slow: Timed) -> None:
    list(until_full_wait(slow))
    events = slow.run()
    assert errors(events, 2) == {None}
    assert slow.seconds > 1.6


@pytest.mark.parametrize("timed", [False], indirect=True)
def test_a_verb_waits_for_all_answers(slow: Timed) -> None:
    for _ in range(2):
        assert errors(slow.run(), 2) == {None}


def test_it_is_sampled_in_every_pass_again_once_it_is_fast(slow: Timed) -> None:
    slow.run()
    slow.brokers[2].seconds = 0.01
    # One answer of the pass before may still be under way.
    slow.run()
    assert errors(slow.run(), 2) == {None}
    assert slow.seconds < 0.1


def test_a_broker_that_hangs_times_out_as_before(timed: Timed) -> None:
    timed.brokers[2].seconds = 60.0
    events = timed.run()
    assert outcome(events, 2) == TIMED_OUT
    assert errors(events, 2) == {TIMED_OUT}
    assert timed.seconds < TIMEOUT + 0.1


def test_a_broker_that_hangs_while_it_is_slow_times_out(slow: Timed) -> None:
    assert outcome(slow.run(), 2) == OK
    slow.brokers[2].seconds = 60.0
    assert outcome(slow.run(), 2) == TIMED_OUT
    assert slow.seconds < 2 * TIMEOUT + 0.1


def test_brokers_that_are_all_slow_are_waited_for(timed: Timed) -> None:
    for broker in timed.brokers.values():
        broker.seconds = 0.4
    events = timed.run()
    assert errors(events, 1) == errors(events, 2) == errors(events, 3) == {None}


def test_a_late_answer_is_dropped(slow: Timed) -> None:
    """It belongs to another pass than the answers that the next one compares it with."""
    slow.run()
    answers, asked = slow.passes._plans[2].answers, slow.brokers[2].asked
    assert answers.is_late
    fetched = list(answers.fetched)
    slow.passes.loop.run(slow.passes.loop.sleep, 2.0)
    assert (answers.outcome, answers.fetched) == (OK, fetched)
    # Nothing more was asked.
    assert slow.brokers[2].asked == asked

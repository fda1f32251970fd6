"""One slow broker does not stretch the pass. Times are virtual: they are exact on any machine."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.bench.bench_collect import image
from tests.collect.virtual_time import TimedBroker, VirtualTime
from tidemark.collect.collection_pass import PASSES_PER_FULL_WAIT, PassRunner
from tidemark.core.codec import decode_batch
from tidemark.core.events import OK, TIMED_OUT, Event, Observation, Pass
from tidemark.settings import Cluster, Collect

TIMEOUT, PERIOD = 0.5, 1.0


class Timed:
    """Passes over a topic of 100 partitions on three brokers."""

    def __init__(self, keeps_pace: bool) -> None:
        settings = Collect(collector="k", metadata_seconds=1e9, broker_timeout_seconds=TIMEOUT)
        self.passes = passes = PassRunner(Cluster(name="c"), settings, 1, 1, keeps_pace=keeps_pace)
        passes._reader.start_images = lambda *_: []  # type: ignore[method-assign]
        passes._reader.start_queries = lambda *_, **__: None  # type: ignore[method-assign]
        passes.inventory.apply([image(1)])
        passes._plan_requests()
        self.brokers = {b: TimedBroker(passes.loop, b, p) for b, p in passes._plans.items()}
        passes._connections.by_broker = self.brokers  # type: ignore[assignment]
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
    for watched in made.passes.inventory.partitions.values():
        watched.lineage.reads_left = {}
    # The barriers know by then how fast the brokers are.
    for _ in range(15):
        made.run()
    assert made.seconds < 0.1
    yield made
    made.passes.close()


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


def test_a_slow_broker_does_not_stretch_the_pass(timed: Timed) -> None:
    timed.brokers[2].seconds = 0.4
    passes = []
    for events in until_full_wait(timed):
        passes.append(timed.seconds)
        # The others are observed as ever, and the slow one is alive.
        assert errors(events, 1) == errors(events, 3) == {None}
        assert errors(events, 2) == {"no_answer"}
        assert outcome(events, 2) == OK
    # Four answers take it 1.6 s.
    assert len(passes) == 5
    assert max(passes) < 1.25 * TIMEOUT + 0.15


def test_what_it_answered_in_time_counts_and_its_leadership_is_not_denied(timed: Timed) -> None:
    timed.brokers[2].seconds = 0.25
    events = timed.run()
    led = [e for e in events if isinstance(e, Observation) and e.leader == 2]
    assert len(led) > 30
    # The high watermark under the fence came first.
    assert {(e.committed, e.leaderless, e.lineage is None) for e in led} == {(16, False, True)}


def test_it_is_sampled_in_full_now_and_then(timed: Timed) -> None:
    timed.brokers[2].seconds = 0.4
    list(until_full_wait(timed))
    events = timed.run()
    assert errors(events, 2) == {None}
    assert timed.seconds > 1.6


@pytest.mark.parametrize("timed", [False], indirect=True)
def test_a_verb_waits_for_all_answers(timed: Timed) -> None:
    timed.brokers[2].seconds = 0.4
    for _ in range(2):
        assert errors(timed.run(), 2) == {None}


def test_it_is_sampled_in_every_pass_again_once_it_is_fast(timed: Timed) -> None:
    timed.brokers[2].seconds = 0.4
    timed.run()
    timed.brokers[2].seconds = 0.01
    # One answer of the pass before may still be under way.
    timed.run()
    assert errors(timed.run(), 2) == {None}
    assert timed.seconds < 0.1


def test_a_broker_that_hangs_times_out_as_before(timed: Timed) -> None:
    timed.brokers[2].seconds = 60.0
    events = timed.run()
    assert outcome(events, 2) == TIMED_OUT
    assert errors(events, 2) == {TIMED_OUT}
    assert timed.seconds < TIMEOUT + 0.1


def test_a_broker_that_hangs_while_it_is_slow_times_out(timed: Timed) -> None:
    timed.brokers[2].seconds = 0.4
    assert outcome(timed.run(), 2) == OK
    timed.brokers[2].seconds = 60.0
    assert outcome(timed.run(), 2) == TIMED_OUT
    assert timed.seconds < 2 * TIMEOUT + 0.1


def test_brokers_that_are_all_slow_are_waited_for(timed: Timed) -> None:
    for broker in timed.brokers.values():
        broker.seconds = 0.4
    events = timed.run()
    assert errors(events, 1) == errors(events, 2) == errors(events, 3) == {None}


def test_a_late_answer_is_dropped(timed: Timed) -> None:
    """It belongs to another pass than the answers that the next one compares it with."""
    timed.brokers[2].seconds = 0.4
    timed.run()
    answers, asked = timed.passes._plans[2].answers, timed.brokers[2].asked
    assert answers.is_late
    fetched = list(answers.fetched)
    timed.passes.loop.run(timed.passes.loop.sleep, 2.0)
    assert (answers.outcome, answers.fetched) == (OK, fetched)
    # Nothing more was asked.
    assert timed.brokers[2].asked == asked

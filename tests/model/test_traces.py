"""Traces are valid runs, distinct, and can be extended to a state with a leader."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from tests.model.test_search import ALL, SMALL, assert_is_a_run
from tidemark.model.protocols import PROTOCOLS
from tidemark.model.search import check
from tidemark.model.state import Constants, true_leader
from tidemark.model.traces import extend_to_leader, random_traces, shortest_traces


def test_shortest_traces_are_distinct_and_cover_the_space() -> None:
    tiny = Constants(log_size=1, records=1, max_epoch=1)
    found = list(shortest_traces(PROTOCOLS["kip-320"], tiny))
    assert (
        len({trace.last for trace in found})
        == len(found)
        == check(PROTOCOLS["kip-320"], tiny, ALL).states
    )
    for trace in found[::50]:
        assert_is_a_run(PROTOCOLS["kip-320"], tiny, trace)
    assert len(list(shortest_traces(PROTOCOLS["kip-320"], SMALL, max_traces=300))) == 300


def test_random_traces_are_distinct() -> None:
    found = list(islice(random_traces(PROTOCOLS["kip-966"], SMALL, Random(5), steps=20), 200))
    assert len({trace.states for trace in found}) == 200
    assert_is_a_run(PROTOCOLS["kip-966"], SMALL, found[0])


def test_random_traces_end_when_there_are_no_new_ones() -> None:
    nothing = Constants(replicas=1, log_size=1, records=0, max_epoch=0)
    assert len(list(random_traces(PROTOCOLS["kip-320"], nothing, Random(5)))) < 10


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_trace_can_be_extended_to_a_leader(protocol: str) -> None:
    wider = SMALL._replace(max_epoch=SMALL.max_epoch + 1)
    led = 0
    for trace in islice(shortest_traces(PROTOCOLS[protocol], SMALL), 0, 3_000, 30):
        ways = list(extend_to_leader(PROTOCOLS[protocol], SMALL, trace))
        quorum = trace.last.quorum
        assert ways or not (quorum.isr or quorum.elr)
        for longer in ways:
            led += 1
            assert longer.steps[: len(trace.steps)] == trace.steps
            assert true_leader(longer.last) is not None
            assert_is_a_run(PROTOCOLS[protocol], wider, longer)
    assert led > 100

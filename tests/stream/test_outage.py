"""Which failures of the query are waited out, without a JVM."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from tests.stream.test_failures import JavaException
from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.stream.health import StreamHealth
from tidemark.stream.query import is_outage, watch

TIMED_OUT = (
    "[STREAM_FAILED] Query terminated with exception: java.util.concurrent.ExecutionException\n"
    "Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node"
)
FEW = "org.apache.kafka.common.errors.NotEnoughReplicasException: fewer in-sync replicas"
NO_METRICS = (
    'java.lang.NullPointerException: Cannot invoke "scala.collection.IterableOps.map(scala.'
    'Function1)" because the return value of "scala.Option.get()" is null'
)
DENIED = "Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: not authorized"
WRONG = "java.util.concurrent.TimeoutException: of something else"


class JavaQuery:
    """The side of a query that is Scala: an option of an exception."""

    def __init__(self, failure: str | None) -> None:
        self.exception = lambda: self
        self.isDefined = lambda: failure is not None
        self.get = lambda: JavaException(failure or "")


class Query:
    """A query that has ended."""

    isActive = False  # noqa: N815 - Spark's name

    def __init__(self, failure: str | None) -> None:
        self._jsq = JavaQuery(failure)
        self.exception = lambda: None


def watched(failure: str | None, *, restart: bool) -> ClusterError | None:
    return watch(cast(Any, Query(failure)), threading.Event(), "checkpoint", restart=restart)


@pytest.mark.parametrize("failure", [TIMED_OUT, FEW, NO_METRICS])
def test_an_outage_is_returned_only_where_the_query_may_start_again(failure: str) -> None:
    assert is_outage(failure)
    assert isinstance(watched(failure, restart=True), ClusterError)
    with pytest.raises(TidemarkError, match="the query failed"):
        watched(failure, restart=False)


@pytest.mark.parametrize("failure", [DENIED, WRONG, "a damaged state file", ""])
def test_other_failures_end_the_stream(failure: str) -> None:
    assert not is_outage(failure)
    with pytest.raises(TidemarkError, match="the query failed"):
        watched(failure, restart=True)


def test_a_query_that_was_stopped_is_no_failure() -> None:
    assert watched(None, restart=True) is None


def test_health_follows_the_last_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    health = StreamHealth()
    assert (health.waiting(), health.stuck()) == (["the first batch"], [])
    now[0] += 1_000
    assert health.stuck() == []
    health.started()
    health.moved()
    assert (health.waiting(), health.stuck()) == ([], [])
    now[0] += 100
    assert (health.waiting(), health.stuck()) == (["a batch: none ended for 100 s"], [])
    now[0] += 300
    assert health.stuck() == ["no batch ended for 400 s"]
    # Waiting for Kafka, it has no query that could hang.
    health.ended()
    assert health.stuck() == []

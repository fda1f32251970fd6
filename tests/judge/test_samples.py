from __future__ import annotations

import json

from tidemark.core.events import Batch, Event, Observation, Pass, Replica
from tidemark_lab.judge.samples import LeaderRead, Reading, read_samples, served_at


def batch(number: int, *events: Event) -> Batch:
    return Batch(
        v=2, cluster="c", collector="k", collector_epoch=1, pass_number=number, events=[*events]
    )


def observation(at: float, epoch: int, committed: int, end: int, log_start: int = 0) -> Observation:
    leader = Replica(
        broker=1,
        log_end_offset=end,
        log_start_offset=log_start,
        leader_epoch=epoch,
        leads=True,
        requested_ms=200.0,
    )
    return Observation(
        topic="t",
        partition=0,
        observed_at=at,
        leader=1,
        leader_epoch=epoch,
        committed=committed,
        samples=[leader],
        lineage=[(0, 5), (epoch, end)] if epoch else [(0, end)],
        lineage_complete_from=0,
    )


def ended(number: int, at: float) -> Pass:
    return Pass(
        number=number, started_at=at, ended_at=at + 1, monotonic=at, period_ms=1000.0, missed={}
    )


def test_a_reading_is_between_the_request_to_the_leader_and_the_end_of_the_pass() -> None:
    shown = read_samples([batch(1, observation(10.6, 0, 9, 9)), batch(1, ended(1, 10.0))])
    assert shown["t", 0].readings == [Reading(10.2, 10.6, 9, 0)]
    assert shown["t", 0].leader_reads == [LeaderRead(10.6, 0, has_lineage=True)]


def test_a_pass_without_its_end_counts_for_nothing() -> None:
    assert read_samples([batch(1, observation(10.6, 0, 9, 9))]) == {}


def test_a_pass_after_the_given_time_counts_for_nothing() -> None:
    passes = [batch(n, observation(n + 0.6, 0, 9, 9), ended(n, float(n))) for n in (1, 2)]
    assert len(read_samples(passes, until=2.5)["t", 0].readings) == 1


def test_two_reads_of_a_later_leader_prove_a_loss() -> None:
    passes = [
        batch(n, observation(at, epoch, committed, end, start), ended(n, at - 0.5))
        for n, at, epoch, committed, end, start in (
            (1, 10.0, 0, 9, 9, 0),
            (2, 11.0, 2, 5, 6, 2),
            (3, 12.0, 2, 5, 7, 2),
        )
    ]
    found = read_samples(passes)["t", 0]
    assert found.oracle.proven == {(2, (0, 5, 9))}
    assert found.log_starts == [(11.0, 2)]


def sample(at: float, epoch: int | None, committed: int | None) -> str:
    return json.dumps({"at": at, "leader_epoch": epoch, "committed": committed})


def test_a_leader_serves_from_its_first_answer_in_an_epoch() -> None:
    lines = [
        sample(1.0, 4, 10),
        sample(2.0, 4, 11),
        # It is named, and does not answer as the leader yet.
        sample(3.0, 5, None),
        sample(5.0, 5, 8),
        # Another thread wrote its line later.
        sample(4.0, 5, 8),
        sample(6.0, None, None),
    ]
    assert served_at(lines) == [1.0, 4.0]

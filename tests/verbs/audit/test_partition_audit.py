"""An audit of replicas in memory: which windows are read, and what a second read confirms."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verbs.audit.logs import Replica, Replicas, T, written
from tidemark.verbs.audit import command, partition_audit
from tidemark.verbs.audit.command import CONFIRM_EPOCHS_SECONDS, CONFIRM_SECONDS, audit_partitions
from tidemark.verbs.audit.partition_audit import PartitionReport
from tidemark.verbs.audit.source import Partition, Position
from tidemark.verbs.audit.windows import Pace, Window, sample, whole

LOG = written(*[5] * 20)
OTHER = [b.with_value(42, b"other") for b in LOG]


class Time:
    """A clock that only `sleep` moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def replicas(*logs: object) -> Replicas:
    return Replicas(
        {
            broker: log if isinstance(log, Replica) else Replica(list(log))  # type: ignore[call-overload]
            for broker, log in enumerate(logs, 1)
        }
    )


def audited(
    source: Replicas,
    partition: Partition = T,
    choose: Callable[[int, int], list[Window]] = whole,
    time: Time | None = None,
) -> PartitionReport:
    time = time or Time()
    pace = Pace(0, lambda: time.now, time.sleep)
    (report,) = audit_partitions([partition], source, pace, choose, lambda *_: None)
    return report


def test_equal_replicas_are_compared_whole() -> None:
    report = audited(replicas(LOG, LOG, LOG))
    assert (report.compared, report.batches, report.findings) == (100, 60, [])
    assert (report.start, report.end, report.notes, report.not_compared) == (0, 100, [], {})


def test_a_difference_is_a_finding_after_a_second_read() -> None:
    time = Time()
    report = audited(replicas(LOG, OTHER, LOG), time=time)
    assert [(found.offset, found.records) for found in report.findings] == [(42, 1)]
    assert time.now == CONFIRM_SECONDS


def test_other_leader_epochs_are_read_again_after_a_truncation_would_have_happened() -> None:
    time = Time()
    other = [replace(b, epoch=3) if b.base == 40 else b for b in OTHER]
    assert len(audited(replicas(LOG, other), time=time).findings) == 1
    assert time.now == CONFIRM_EPOCHS_SECONDS


@pytest.mark.parametrize(
    "change",
    [
        lambda r: setattr(r, "log", LOG),
        lambda r: setattr(r, "log", [*OTHER[:19], *written(1, start=95)]),
        lambda r: setattr(r, "epoch", 1),
        lambda r: setattr(r, "high_watermark", 90),
        lambda r: setattr(r, "log_start", 50),
        lambda r: setattr(r, "reason", "refused"),
    ],
    ids=["caught up", "truncated", "elected", "watermark fell", "deleted", "died"],
)
def test_what_changed_before_the_second_read_is_not_compared(
    change: Callable[[Replica], None],
) -> None:
    source = replicas(LOG, OTHER)
    time = Time()
    pace = Pace(0, lambda: time.now, lambda _: change(source.of[2]))
    (report,) = audit_partitions([T], source, pace, whole, lambda *_: None)
    assert (report.findings, report.changed) == ([], 1)


def test_only_what_all_replicas_hold_below_their_watermarks_is_compared() -> None:
    report = audited(
        replicas(Replica(LOG, 20), Replica(OTHER, high_watermark=40), Replica(LOG[:12]))
    )
    assert (report.start, report.end, report.compared, report.findings) == (20, 40, 20, [])


def test_replicas_that_do_not_answer_are_named() -> None:
    report = audited(replicas(LOG, Replica(LOG, reason="refused"), LOG))
    assert report.not_compared == {2: "refused"}
    assert (report.brokers, report.compared) == ((1, 3), 100)
    report = audited(replicas(LOG))
    assert (report.brokers, report.compared, len(report.not_compared)) == ((1,), 0, 2)


@pytest.mark.parametrize(
    ("broker", "name", "before", "after", "expected"),
    [
        (
            *(3, "reason", None, "timed_out"),
            (100, (1, 2), {3: "timed_out, from offset 40 on"}, []),
        ),
        (
            *(3, "log", LOG, LOG[:7]),
            (
                *(100, (1, 2), {3: "its log end moved back from 100 to 35, from offset 40 on"}),
                [],
            ),
        ),
        # The comparison goes on behind what was deleted.
        (
            *(2, "log_start", 0, 60),
            (80, (1, 2, 3), {}, ["the log start of broker 2 moved to 60 meanwhile"]),
        ),
    ],
    ids=["a replica that dies", "a log that is cut", "retention"],
)
def test_what_happens_to_a_replica_meanwhile(
    broker: int, name: str, before: Any, after: Any, expected: tuple[Any, ...]
) -> None:
    source = replicas(*[Replica(LOG, segment=4) for _ in range(3)])
    source.before = lambda n: setattr(source.of[broker], name, after if n > 2 else before)
    report = audited(source)
    assert (report.compared, report.brokers, report.not_compared, report.notes) == expected


def test_an_empty_answer_is_asked_again() -> None:
    source = replicas(LOG, OTHER, LOG)
    source.answer = lambda broker, data: b"" if source.reads == 1 and broker == 2 else data
    report = audited(source)
    assert [found.offset for found in report.findings] == [42]
    assert report.not_compared == {}


def test_bytes_that_are_no_batches_leave_the_replica_out() -> None:
    source = replicas(LOG, LOG, LOG)
    source.answer = lambda broker, data: b"\xff" * 100 if broker == 2 else data
    report = audited(source)
    assert report.not_compared == {2: "damaged log: magic -1 is unknown, from offset 0 on"}
    assert report.compared == 100


def test_records_that_a_cleaned_replica_lacks_are_counted() -> None:
    cleaned = [b.without(41, 43) for b in LOG]
    report = audited(replicas(LOG, cleaned), T._replace(compacted=True))
    assert (report.findings, report.absent_records, report.notes) == ([], 2, [])
    assert len(audited(replicas(LOG, cleaned)).findings) == 1
    report = audited(replicas(LOG, cleaned), T._replace(compacted=None))
    assert report.findings == []
    assert report.notes == [
        "the cleanup policy is unknown: records that one replica lacks are not compared"
    ]


def test_tiered_offsets_are_not_compared() -> None:
    class Tiered(Replicas):
        def positions(self, *arguments: object) -> dict[int, Position | str]:
            found = super().positions(*arguments)  # type: ignore[arg-type]
            return {
                broker: p._replace(local_log_start=30 + broker)
                for broker, p in found.items()
                if isinstance(p, Position)
            }

    report = audited(Tiered(replicas(LOG, LOG, LOG).of))
    assert (report.start, report.compared) == (33, 67)
    assert report.notes == ["33 offsets below 33 are in tiered storage only: not compared"]


def test_many_differences_end_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    other = [b.with_value(b.base, b"other") for b in LOG]
    source = replicas(*[Replica(log, segment=1) for log in (LOG, other)])
    monkeypatch.setattr(partition_audit, "MAX_DIFFERENCES", 7)
    monkeypatch.setattr(command, "MAX_SUSPECTS", 7)
    time = Time()
    pace = Pace(0, lambda: time.now, time.sleep)
    first, second = audit_partitions([T, T], source, pace, whole, lambda *_: None)
    assert (len(first.findings), first.compared) == (7, 35)
    assert first.notes == ["not read on from offset 35: 7 differences are enough"]
    assert second.notes == ["not read: there are 7 differences before it"]


def test_the_rate_limit_holds_over_all_replicas() -> None:
    time = Time()
    pace = Pace(1000, lambda: time.now, time.sleep)
    audit_partitions([T], replicas(LOG, LOG, LOG), pace, whole, lambda *_: None)
    assert time.now == pytest.approx(pace.bytes / 1000)
    assert pace.bytes > 3 * 20 * 61


def test_a_sample_covers_the_newest_offsets_and_random_ones() -> None:
    windows = sample(1000, 90_000, 10, random.Random(1))
    assert len(windows) == 11
    assert windows[-1].start == 89_500
    assert windows == sorted(windows)
    assert windows == sample(1000, 90_000, 10, random.Random(1))
    assert sample(5, 5, 10, random.Random(1)) == whole(5, 5) == []
    report = audited(replicas(LOG, LOG), choose=partial(sample, count=3, chance=random.Random(1)))
    assert report.compared == 100


shapes = st.lists(st.integers(1, 6), min_size=1, max_size=12)


@settings(max_examples=30)
@given(shapes, st.data())
def test_a_planted_difference_is_found_whatever_the_answers_cover(
    shape: list[int], data: st.DataObject
) -> None:
    log = written(*shape)
    planted = data.draw(st.integers(0, sum(shape) - 1))
    broker = data.draw(st.sampled_from([1, 2, 3]))
    other = [batch.with_value(planted, b"other") for batch in log]
    source = replicas(
        *[
            Replica(other if number == broker else log, segment=data.draw(st.integers(1, 5)))
            for number in (1, 2, 3)
        ]
    )
    size = data.draw(st.integers(1, 500))
    report = audited(source, choose=lambda start, end: [Window(start, end, size, None)])
    assert [found.first_record for found in report.findings] == [planted]
    assert report.compared == sum(shape)


@settings(max_examples=30)
@given(shapes, st.data())
def test_equal_logs_never_differ_whatever_the_answers_cover(
    shape: list[int], data: st.DataObject
) -> None:
    log = written(*shape)
    end = sum(shape)
    source = replicas(
        *[
            Replica(
                log,
                log_start=data.draw(st.integers(0, end)),
                high_watermark=data.draw(st.integers(0, end)),
                segment=data.draw(st.integers(1, 5)),
            )
            for _ in range(3)
        ]
    )
    size = data.draw(st.integers(1, 500))
    report = audited(source, choose=lambda start, end: [Window(start, end, size, None)])
    assert (report.findings, report.changed, report.not_compared) == ([], 0, {})

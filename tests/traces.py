"""Recorded faults as events: `python -m tests.traces FILE | tidemark replay -`.

Reads broker samples and ignores producer lines. One sampling round is one pass, `t` seconds after
ORIGIN. A `hw` counts as leader-fenced where the broker names itself leader, `leo_epoch` equals
`epoch` if present, and both errors are 0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tidemark.core.codec import encode_batch
from tidemark.core.events import (
    OK,
    REFUSED,
    TIMED_OUT,
    UNREACHABLE,
    Batch,
    BrokerAnswer,
    Event,
    Observation,
    Pass,
    Replica,
)

ORIGIN = 1_000_000_000.0
Sample = dict[str, Any]


def rounds(lines: Iterable[str]) -> Iterator[list[Sample]]:
    """Groups samples into rounds. A round ends before the second sample of a broker."""
    current: list[Sample] = []
    for line in lines:
        sample = json.loads(line)
        if "broker" not in sample or "event" in sample:
            continue
        if any(sample["broker"] == other["broker"] for other in current):
            yield current
            current = []
        current.append(sample)
    if current:
        yield current


def batches(lines: Iterable[str], topic: str = "trace") -> Iterator[Batch]:
    """One batch per round: the observation of the partition, and the pass."""
    previous: float | None = None
    hosts: set[int] = set()
    for number, samples in enumerate(rounds(lines)):
        at = ORIGIN + max(sample["t"] for sample in samples)
        # Where no sample has the assigned replicas: all brokers that were asked so far.
        hosts |= {sample["broker"] for sample in samples}
        observation = _observation(samples, sorted(hosts), topic, at)
        period = 200.0 if previous is None else max(1.0, (at - previous) * 1000.0)
        answers = [BrokerAnswer(broker=s["broker"], outcome=_outcome(s)) for s in samples]
        closing = Pass(
            number=number,
            started_at=at,
            ended_at=at,
            monotonic=at,
            period_ms=period,
            brokers=answers,
        )
        events: list[Event] = [closing] if observation is None else [observation, closing]
        yield Batch(
            v=2,
            cluster="trace",
            collector="trace",
            collector_epoch=1,
            pass_number=number,
            events=events,
        )
        previous = at


def _outcome(sample: Sample) -> str:
    down = sample.get("down")
    if down is None:
        return OK
    return {"TimeoutError": TIMED_OUT, "ConnectionRefusedError": REFUSED}.get(down, UNREACHABLE)


def _observation(
    samples: list[Sample], asked: list[int], topic: str, at: float
) -> Observation | None:
    views = [
        sample
        for sample in samples
        if sample.get("isr") is not None and "leader" in sample and sample.get("p_err", 0) in (0, 5)
    ]
    assigned = next((sample["ar"] for sample in views if sample.get("ar")), None)
    hosts = assigned or asked
    newest = max(views, key=lambda sample: sample.get("epoch", 0), default=None)
    leader = newest["leader"] if newest is not None and newest["leader"] >= 0 else None
    epoch = newest.get("epoch") if newest is not None else None
    agreeing = [
        s for s in views if s["leader"] < 0 and s.get("p_err") == 5 and s.get("epoch") == epoch
    ]
    own = next((s for s in samples if s["broker"] == leader), None)
    fenced = own is not None and _is_fenced(own, epoch)
    lineage = own.get("lineage") if fenced and own is not None else None
    log_end = own["leo"] if fenced and own is not None else None
    return Observation(
        topic=topic,
        partition=0,
        observed_at=at,
        leader=leader,
        leader_epoch=epoch,
        leaderless=len(agreeing) >= 2,
        replicas=hosts,
        in_sync_replicas=None if newest is None else newest["isr"],
        eligible_leader_replicas=None if newest is None else newest.get("elr"),
        last_known_eligible_leader_replicas=None if newest is None else newest.get("last_elr"),
        metadata_from=[sample["broker"] for sample in views],
        samples=[_replica(sample) for sample in samples if sample["broker"] in hosts],
        leader_log_end_offset_before=log_end,
        leader_before_at=at if log_end is not None else None,
        committed=own["hw"] if fenced and own is not None and own["hw"] >= 0 else None,
        lineage=_lineage(lineage),
        lineage_complete_from=0 if lineage else None,
    )


def _is_fenced(sample: Sample, epoch: int | None) -> bool:
    return (
        "down" not in sample
        and sample.get("lo_err") == 0
        and sample.get("f_err") == 0
        and sample.get("leader") == sample["broker"]
        and sample.get("epoch") == epoch
        and sample.get("leo_epoch", epoch) == epoch
    )


def _replica(sample: Sample) -> Replica:
    if "down" in sample:
        return Replica(broker=sample["broker"], error=_outcome(sample))
    if sample.get("lo_err") or sample.get("f_err"):
        return Replica(
            broker=sample["broker"], error=f"error_{sample.get('lo_err') or sample.get('f_err')}"
        )
    return Replica(
        broker=sample["broker"],
        log_end_offset=_known(sample.get("leo")),
        high_watermark=_known(sample.get("hw")),
        log_start_offset=_known(sample.get("start")),
        last_stable_offset=_known(sample.get("lso")),
        leader_epoch=_known(sample.get("leo_epoch")),
        leads=sample.get("leader") == sample["broker"],
        lineage=_lineage(sample.get("lineage")),
    )


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def _lineage(entries: list[list[int]] | None) -> list[tuple[int, int]] | None:
    return None if entries is None else [(epoch, end) for epoch, end in entries][-8:]


if __name__ == "__main__":
    for path in sys.argv[1:]:
        for batch in batches(Path(path).read_text(encoding="utf-8").splitlines()):
            sys.stdout.write(encode_batch(batch).decode() + "\n")

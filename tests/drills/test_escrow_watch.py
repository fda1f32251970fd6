"""What an escrow held too long beside faults that lose nothing."""

from __future__ import annotations

import pytest

from tidemark.core.events import Batch, Observation, Replica
from tidemark_lab.drills.escrow.watch import Scrape, judge_escrow


def batch(at: float, error: str | None) -> Batch:
    """Broker 2 is in sync; whether it answers."""
    shown = Observation(
        topic="t",
        partition=0,
        observed_at=at,
        leader=1,
        in_sync_replicas=[1, 2],
        samples=[Replica(broker=1), Replica(broker=2, error=error)],
    )
    return Batch(v=2, cluster="c", collector="c", collector_epoch=1, pass_number=0, events=[shown])


# Broker 2 is silent from 10 s to 20 s.
@pytest.mark.parametrize(
    ("held_until", "read_until", "failures"),
    [(22, 12, []), (27, 12, ["of t 7.0 s after"]), (22, 29, ["read 0.0 MB more than 5 s after"])],
)
def test_what_is_held_or_read_long_after_its_cause_fails(
    held_until: int, read_until: int, failures: list[str]
) -> None:
    batches = [batch(float(at), "timed_out" if 10 <= at < 20 else None) for at in range(40)]
    scrapes = [
        Scrape(float(at), {"t": 9.0 * (10 <= at <= held_until)}, float(min(at, read_until)), 0.0)
        for at in range(10, 40)
    ]
    assert all(
        text in reason
        for text, reason in zip(failures, judge_escrow(scrapes, batches)[1], strict=True)
    )

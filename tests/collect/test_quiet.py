from __future__ import annotations

import msgspec
import pytest

from tidemark.collect.observe.quiet import is_quiet
from tidemark.core.events import Observation, Replica

REPLICA = Replica(
    broker=1,
    log_end_offset=7,
    high_watermark=7,
    log_start_offset=0,
    last_stable_offset=7,
    leader_epoch=3,
)
QUIET = Observation(
    topic="t",
    partition=0,
    observed_at=1.0,
    leader=1,
    leader_epoch=3,
    replicas=[1, 2],
    in_sync_replicas=[2, 1],
    committed=7,
    samples=[REPLICA, msgspec.structs.replace(REPLICA, broker=2, log_start_offset=4)],
)


def with_replica(**changes: object) -> Observation:
    changed = msgspec.structs.replace(REPLICA, **changes)
    return msgspec.structs.replace(QUIET, samples=[REPLICA, changed])


@pytest.mark.parametrize(
    ("observation", "quiet"),
    [
        (QUIET, True),
        (with_replica(last_stable_offset=None), True),
        (with_replica(leader_epoch=None), True),
        (msgspec.structs.replace(QUIET, leader_epoch=None), True),
        (msgspec.structs.replace(QUIET, effective_min_in_sync_replicas=2), True),
        # Any lag, gap or change is not quiet.
        (msgspec.structs.replace(QUIET, effective_min_in_sync_replicas=3), False),
        (msgspec.structs.replace(QUIET, leader=None), False),
        (msgspec.structs.replace(QUIET, committed=None), False),
        (msgspec.structs.replace(QUIET, committed=6), False),
        (msgspec.structs.replace(QUIET, in_sync_replicas=[1]), False),
        (msgspec.structs.replace(QUIET, in_sync_replicas=None), False),
        (msgspec.structs.replace(QUIET, adding=[3]), False),
        (msgspec.structs.replace(QUIET, removing=[2]), False),
        (with_replica(log_end_offset=8), False),
        (with_replica(high_watermark=6), False),
        (with_replica(high_watermark=None), False),
        (with_replica(last_stable_offset=6), False),
        (with_replica(leader_epoch=2), False),
        (with_replica(error="timed_out"), False),
    ],
)
def test_a_fully_replicated_partition_is_quiet(observation: Observation, quiet: bool) -> None:
    assert is_quiet(observation) is quiet

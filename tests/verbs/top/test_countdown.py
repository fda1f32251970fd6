"""When a frozen follower leaves the in-sync set, on the screens and in the plain lines."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from tests.stream.synthetic import CLUSTER, COLLECTOR, COLLECTOR_EPOCH, SyntheticPasses
from tests.verbs.top.shown import pressed, reduced, screen
from tidemark.core.broker_report import BrokerConfiguration
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.events import Batch, BrokerState, Observation
from tidemark.verbs.top.plain import block
from tidemark.verbs.top.snapshot import Snapshot
from tidemark.verbs.top.ui_state import UiState

LOAD = SyntheticPasses(partitions=3, groups=1)
PASSES = 9
FROZEN_FROM = 3


def recorded(*, limit_read: bool) -> list[bytes]:
    """Broker 3 no longer copies orders-0, which broker 1 leads, since pass 3 of 9."""
    values = [_pass(number) for number in range(PASSES)]
    if limit_read:
        values.insert(1, _configuration())
    return list(chain.from_iterable(values))


def frozen(*, limit_read: bool) -> Snapshot:
    return reduced(recorded(limit_read=limit_read), CLUSTER)


def _pass(number: int) -> list[bytes]:
    values = []
    for _, value in LOAD.records(number):
        batch = decode_batch(value)
        for event in batch.events:
            if isinstance(event, Observation) and event.partition == 0:
                sample = next(s for s in event.samples if s.broker == 3)
                sample.log_end_offset = 1000 + 10 * min(number, FROZEN_FROM)
                sample.high_watermark = sample.log_end_offset
        values.append(encode_batch(batch))
    return values


def _configuration() -> list[bytes]:
    event = BrokerState(
        broker=1,
        observed_at=LOAD.at(0) + 0.2,
        configuration=BrokerConfiguration(replica_lag_time_max_ms=30_000),
    )
    return [
        encode_batch(
            Batch(
                v=2,
                cluster=CLUSTER,
                collector=COLLECTOR,
                collector_epoch=COLLECTOR_EPOCH,
                pass_number=0,
                events=[event],
            )
        )
    ]


KNOWN, UNKNOWN = frozen(limit_read=True), frozen(limit_read=False)
SENTENCE = "broker 3 leaves the in-sync set in 25 to 41 s unless it catches up"


def test_the_worst_partitions_have_the_countdown_in_80_columns() -> None:
    text = "\n".join(screen(KNOWN, UiState()))
    assert re.search(r"^partition +state.* lag  lag time  leaves ISR$", text, re.MULTILINE)
    assert re.search(r"^orders-0 .* 3 in 25-41 s$", text, re.MULTILINE)


@pytest.mark.parametrize("opened", [("p",), ("p", "enter")])
def test_the_selected_and_the_opened_partition_have_the_sentence(opened: tuple[str, ...]) -> None:
    assert SENTENCE in screen(KNOWN, pressed(KNOWN, *opened))
    assert f"  {SENTENCE}" in block(KNOWN, 0.0)


def test_without_the_limit_the_missing_right_is_named() -> None:
    assert any(line.endswith(" 3 in ?") for line in screen(UNKNOWN, UiState()))
    text = " ".join(screen(UNKNOWN, pressed(UNKNOWN, "p", "enter")))
    assert (
        "when broker 3 leaves the in-sync set is not known: replica.lag.time.max.ms of leader 1 "
        "was not read; that needs DescribeConfigs on Cluster"
    ) in text


def test_without_a_lag_there_is_no_such_column() -> None:
    healthy = reduced([v for number in range(3) for _, v in LOAD.records(number)], CLUSTER)
    assert "leaves ISR" not in "\n".join(screen(healthy, UiState(), 200))

"""The end of a pass: how each broker answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.histories.inventory import Watched
from tidemark.core.events import OK, BrokerAnswer, Pass

if TYPE_CHECKING:
    from tests.histories.collector import Collector


def pass_record(collector: Collector, watched: Watched | None, *, missed: bool) -> Pass:
    """`missed`: no replica answered, and no metadata was read."""
    world, image = collector.world, None if watched is None else watched.image
    brokers = []
    for number in world.brokers:
        preferred = image is not None and bool(image.replicas) and image.replicas[0] == number
        brokers.append(
            BrokerAnswer(
                broker=number,
                outcome=collector.outcomes.get(number, OK),
                preferred=int(preferred),
                preferred_led=int(preferred and image is not None and image.leader == number),
                in_sync=int(image is not None and number in image.in_sync),
            )
        )
    return Pass(
        number=collector.number,
        started_at=collector.started + collector.offset,
        ended_at=collector.wall(),
        monotonic=world.now,
        period_ms=1000.0,
        brokers=brokers,
        missed={"orders": [(0, 0)]} if missed else {},
        cluster_id="cluster",
        partitions=int(watched is not None),
        quorum_leader=100 if world.mode.quorum else None,
        quorum_epoch=1 if world.mode.quorum else None,
    )

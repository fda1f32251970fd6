"""CPU time of high watermarks between passes, with answers from memory: ask, decode, keep."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kafka.future import Future

from tests.bench.bench_collect import BROKERS, LIST_OFFSETS_VERSION, Memory, image, offsets
from tests.bench.row import Row
from tidemark.collect.codecs.wire import LIST_OFFSETS, RawResponse
from tidemark.collect.collection_pass import PassRunner
from tidemark.settings import Cluster, Collect

SECONDS = 3.0
# Topics of a hundred partitions each.
CHOSEN = {100: ["topic-1"], 1_000: ["topic-1."]}


class Moving(Memory):
    """Every high watermark has moved in every answer."""

    def __init__(self, broker: int, passes: PassRunner) -> None:
        super().__init__(broker, passes._plans[broker])
        (read,) = (r for r in passes.fast._reads if r.broker == broker)
        self._bodies_to_come = iter(
            [
                offsets(read._subset, lambda _, end=1_000 + 10 * n: end)  # type: ignore[misc]
                for n in range(int(20 * SECONDS))
            ]
        )

    async def ask(self, request: object, seconds: float) -> RawResponse:
        return RawResponse(next(self._bodies_to_come), time.monotonic(), 0)


def cpu_share(partitions: int) -> float:
    """Of one core, in percent, beside an idle loop."""
    topics = CHOSEN[partitions]
    settings = Collect(collector="k", fast_high_watermark_topics=topics)
    passes = PassRunner(Cluster(name="c"), settings, 16, 1)
    passes.inventory.apply([image()])
    passes._plan_requests()
    connections = {broker: Moving(broker, passes) for broker in BROKERS}
    assert connections[1].version(LIST_OFFSETS, 9) == LIST_OFFSETS_VERSION

    async def rest(chosen: bool) -> float:
        began = time.process_time()
        live = connections if chosen else {}
        await passes.fast.rest(live, Future(), SECONDS, may_end_early=False)  # type: ignore[arg-type]
        return time.process_time() - began

    idle, busy = passes.loop.run(rest, False), passes.loop.run(rest, True)
    assert passes.fast.partitions == partitions, passes.fast.partitions
    passes.close()
    return 100.0 * (busy - idle) / SECONDS


def rows() -> Iterator[Row]:
    for partitions in CHOSEN:
        yield Row(
            name=f"collect: {partitions:,} fast high watermarks",
            value=cpu_share(partitions),
            unit="% of a core",
            how=f"{partitions:,} of 10,000 partitions on {len(BROKERS)} brokers are read every 100 "
            f"ms for {SECONDS:.0f} s, and every one moved before every answer; answers from "
            "memory; CPU time above that of an idle loop",
        )

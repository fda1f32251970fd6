"""Tells the stream what is held: what changed soon, and all of it from time to time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidemark.core.codec import encode_batch
from tidemark.core.escrow import MAX_RANGES, HeldRange
from tidemark.core.events import Batch, Escrow
from tidemark.core.identity import group_of
from tidemark.escrow.copies import Copies, Key
from tidemark.escrow.held import Held
from tidemark.settings import Settings

COLLECTOR: Final = "tidemark-escrow"
# Between two reports about a partition: where something changed, and where nothing did.
CHANGED_SECONDS: Final = 1.0
REPEAT_SECONDS: Final = 30.0
NOTHING: Final = Held()


class Reports:
    """Sent with `copies`."""

    def __init__(self, settings: Settings, copies: Copies) -> None:
        self._settings, self._copies = settings, copies
        # When it was told last, and what; only where something was held.
        self._told: dict[Key, tuple[float, list[HeldRange]]] = {}

    def tell(self, all_held: Mapping[Key, Held], now: float) -> None:
        for key in all_held.keys() | self._told.keys():
            held = all_held.get(key, NOTHING)
            ranges = [*held.ranges][-MAX_RANGES:]
            at, before = self._told.get(key, (0.0, []))
            is_due = now - at >= (REPEAT_SECONDS if ranges == before else CHANGED_SECONDS)
            if is_due and (ranges or before) and self._send(key, held, ranges, now):
                self._told[key] = (now, ranges)
            if not ranges and not before:
                self._told.pop(key, None)

    def _send(self, key: Key, held: Held, ranges: list[HeldRange], now: float) -> bool:
        cluster, topic, number = key
        oldest = held.batches[0].stored_at if held.batches else now
        event = Escrow(
            topic=topic,
            partition=number,
            observed_at=now,
            topic_id=held.topic_id,
            ranges=ranges,
            kept_until=oldest + self._settings.escrow.hours * 3600,
        )
        batch = Batch(
            v=2,
            cluster=cluster,
            collector=COLLECTOR,
            collector_epoch=int(now * 1000),
            pass_number=0,
            events=[event],
        )
        group = group_of(*key, self._settings.topics.partitions)
        return self._copies.report(group, encode_batch(batch))

"""Events that do not come from samples: each source reads beside the passes, in its own thread.

A pass takes what its sources have and packs it before its own observations, so that the reducer
reads a recorded change before the samples that follow it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.publish.pack import Packer
from tidemark.core.events import BrokerState, PartitionEvent

SourceEvent = PartitionEvent | BrokerState


class Source(Protocol):
    """A reader beside the passes."""

    def take(self) -> list[SourceEvent]:
        """The events since the last call, in order. Does not block; raises nothing.

        The queue behind it is bounded.
        """

    def close(self) -> None:
        """Ends the reader. From any thread."""


def add_source_events(
    sources: Iterable[Source],
    inventory: Inventory,
    packer: Packer,
    nodes: Iterable[BrokerState] = (),
) -> None:
    """Packs what the sources have: of partitions, only those that this collector watches.

    `nodes`: those of the quorum. Events about one broker are in the order of their times, because
    the reducer ignores what is older than the newest one.
    """
    events: list[SourceEvent] = [*nodes]
    for source in sources:
        events += source.take()
    for event in sorted(events, key=lambda event: event.observed_at):
        if isinstance(event, BrokerState):
            packer.broadcast(event)
        elif inventory.is_own(event.topic, event.partition) and inventory.wants(event.topic):
            packer.add(inventory.group_of(event.topic, event.partition), event)

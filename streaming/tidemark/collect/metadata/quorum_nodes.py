"""The nodes of the metadata quorum as they were published last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidemark.collect.metadata.admin_queries import Quorum
from tidemark.core.events import BrokerState

# A node that falls behind is published again at each of these: first the limits that matter, then
# doublings.
LAG_BANDS_MS: Final = (1_000, *(10_000 * 2**step for step in range(10)))


class QuorumNodes:
    def __init__(self) -> None:
        # node -> (fenced, is a voter, how many lag bands it has passed)
        self._published: dict[int, tuple[bool | None, bool, int | None]] = {}

    def changes(self, quorum: Quorum, fenced: dict[int, bool], at: float) -> Iterator[BrokerState]:
        """A state for each changed node. `at`: when the quorum was read, in Unix seconds."""
        for node, replica in quorum.replicas.items():
            lag_ms = replica.lag_ms
            band = None if lag_ms is None else sum(lag_ms >= limit for limit in LAG_BANDS_MS)
            state = (fenced.get(node), replica.is_voter, band)
            if self._published.get(node) != state:
                self._published[node] = state
                yield BrokerState(
                    broker=node,
                    observed_at=at,
                    fenced=fenced.get(node),
                    is_voter=replica.is_voter,
                    metadata_log_end_offset=replica.log_end_offset,
                    metadata_lag_ms=lag_ms,
                )
        for node in self._published.keys() - quorum.replicas.keys():
            # Removed from the quorum: no voter any more.
            del self._published[node]
            yield BrokerState(broker=node, observed_at=at, is_voter=False)

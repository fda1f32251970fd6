"""The answers of one broker in the pass under way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from operator import ne
from typing import NamedTuple

from tidemark.collect.codecs.fetch import FetchEntry
from tidemark.collect.codecs.list_offsets import OffsetEntry
from tidemark.collect.watched.lineage_schedule import Lineage


class RequestTimes(NamedTuple):
    """When a request was sent and its answer was read (monotonic)."""

    requested_at: float
    answered_at: float


class BrokerAnswers:
    """Answers by slot, the place of a partition in the broker's requests. Null: no answer.

    `led` are the slots that the broker leads, by the metadata of the plan.
    """

    def __init__(self, broker: int, size: int, led: Iterable[int]) -> None:
        self.broker = broker
        self.size = size
        self.led = frozenset(led)
        self._reset()
        # The answers of the pass before: `changed` compares with them.
        self._before = self._columns()

    def clear(self) -> None:
        """For the next pass."""
        self._before = self._columns()
        self._reset()

    def _reset(self) -> None:
        # ListOffsets: the replica's log end offset, and the high watermark under the leader's
        # fence.
        self.latest: list[OffsetEntry | None] = [None] * self.size
        self.committed: list[OffsetEntry | None] = [None] * self.size
        self.fetched: list[FetchEntry | None] = [None] * self.size
        # Slots that were fetched without an epoch: `fetched` has no log end offset, that of
        # `latest` counts.
        self.epochless: set[int] = set()
        # slot of a replica that should not lead -> error code of a request that only a leader
        # answers
        self.claims: dict[int, int] = {}
        # Slots whose records the user may not read: Fetch gave no answer, `latest` counts.
        self.unreadable: set[int] = set()
        # Slots of followers whose `latest` was asked again, after the leaders' first answers.
        self.asked_again: set[int] = set()
        # Null: it was to be read and is not yet. Without entries: there is none to be had.
        self.lineages: dict[int, Lineage | None] = {}
        # Slots of leaders whose lineage was read without its older epochs.
        self.newest_epoch_only: set[int] = set()
        # Slots with anything besides their entries in `latest`, `committed` and `fetched`.
        self.unusual: set[int] = set()
        self.latest_times: RequestTimes | None = None
        self.followers_times: RequestTimes | None = None
        self.asked_again_times: RequestTimes | None = None
        self.leaders_times: RequestTimes | None = None
        self.outcome: str | None = None
        # The pass went on before the broker had answered everything.
        self.is_late = False
        # Whether the broker's ListOffsets has a fence (v4).
        self.fenced = True

    def note_unusual(self) -> None:
        """Once all answers of the pass are there."""
        self.unusual = {
            *self.epochless,
            *self.claims,
            *self.unreadable,
            *self.asked_again,
            *self.lineages,
        }

    def _columns(self) -> tuple[Sequence[object], ...]:
        return self.latest, self.fetched, self.committed

    def changed(self) -> set[int]:
        """The slots with another answer than in the pass before."""
        found: set[int] = set()
        for before, now in zip(self._before, self._columns(), strict=True):
            # Entries of an answer that was not decoded again are the same objects.
            if before != now:
                found.update(compress(range(self.size), map(ne, before, now)))
        return found

    @property
    def last_times(self) -> RequestTimes | None:
        return self.leaders_times or self.followers_times or self.latest_times

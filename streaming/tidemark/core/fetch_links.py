"""Which followers lack what their leaders had seconds ago, counted by leader and follower.

One partition cannot tell a slow leader from a slow follower. All partitions of a collector's share
together mostly can (`tidemark.assess.blame`).
"""

from __future__ import annotations

from typing import Final

from tidemark.core.events import MAX_LINKS, Link, Observation

# Several fetch rounds (500 ms).
LATE_SECONDS: Final = 2.0
# Topic, partition, leader, follower.
_Place = tuple[str, int, int | None, int]


class LinkCounter:
    """Counts for one collector. It remembers followers that are behind: at most one per replica."""

    def __init__(self) -> None:
        # Whether a follower was behind in the pass before: then those that keep up count too.
        self.is_counting = False
        # When the leader had a record that the follower lacks, and the offset after that record.
        # 0.0: it was late since then.
        self._behind: dict[_Place, tuple[float, int]] = {}
        self._known: dict[_Place, tuple[float, int]] = {}
        self._counts: dict[tuple[int, int], list[int]] = {}
        self._passed_at = 0.0

    def note(self, observation: Observation, end: int) -> None:
        """`end`: the log end offset of the same leader in the pass before.

        A follower that ends above it has fetched since then. One that ends there may not have had
        to, and one without an answer is no follower that is late.
        """
        leader, adding = observation.leader, observation.adding
        for sample in observation.samples:
            follower, reached = sample.broker, sample.log_end_offset
            if leader in (None, follower) or reached in (None, end) or follower in adding:
                continue
            is_late = reached < end
            if is_late:
                place = (observation.topic, observation.partition, leader, follower)
                since, first = self._known.get(place, (self._passed_at, end))
                if since and reached >= first:
                    since, first = self._passed_at, end
                if observation.observed_at - since >= LATE_SECONDS:
                    since = 0.0
                self._behind[place] = (since, first)
                if since:
                    continue
            count = self._counts.setdefault((leader, follower), [0, 0])
            count[0] += 1
            count[1] += is_late

    def take(self, ended_at: float) -> list[Link]:
        """Ends a pass: its links that are late, and those that share a broker's side with them."""
        counts, self._counts = self._counts, {}
        self._known, self._behind = self._behind, {}
        self._passed_at, self.is_counting = ended_at, bool(self._known)
        late = [pair for pair, (_, number) in counts.items() if number]
        leaders, followers = {pair[0] for pair in late}, {pair[1] for pair in late}
        links = [
            (leader, follower, moving, number)
            for (leader, follower), (moving, number) in counts.items()
            if leader in leaders or follower in followers
        ]
        return sorted(links, key=lambda link: (not link[3], link))[:MAX_LINKS]

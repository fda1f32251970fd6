"""Where a new follower truncates its log: one rule, for the searched and for the played model.

Mirrors ReplicaFetcherThread.maybeTruncate and AbstractFetcherThread.getOffsetTruncationState.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark_lab.model import epoch_cache


class LogEpochs(NamedTuple):
    """What a broker knows of its log when it asks, or is asked, where an epoch ends."""

    cache: epoch_cache.Cache
    log_end_offset: int


class Answer(NamedTuple):
    """What a leader says to a follower that asks about an epoch.

    `found` is (largest epoch up to that one, its end offset); None: it knows no epoch so late.
    """

    asked: int
    found: tuple[int, int] | None


class Truncation(NamedTuple):
    """What the releases of a protocol do. Each of these came with another one."""

    # Whether logs have leader epochs, and a new follower asks its leader about its last one (0.11).
    leader_epochs: bool = True
    # Whether the leader's answer names its epoch, so that a follower asks again (2.0).
    answers_epoch: bool = True
    # Whether a new leader notes its epoch before a record of it: else with the first (2.0.1).
    notes_epoch_at_election: bool = True

    def decide(
        self, leader: LogEpochs, follower: LogEpochs, high_watermark: int
    ) -> tuple[int, list[Answer]]:
        """The new end of the follower's log, and the leader's answers that led to it.

        Before 0.11, and where the leader does not know the epoch, the follower's own high watermark
        decides. An answer with another epoch than the one asked about removes what the follower has
        of later ones, and where it does not have that epoch, it asks about its epoch before.
        """
        cache, end = follower
        answers: list[Answer] = []
        if not self.leader_epochs:
            return min(high_watermark, end), answers
        while cache:
            asked = cache[-1][0]
            found = epoch_cache.end_offset_for(leader.cache, asked, leader.log_end_offset)
            answers.append(Answer(asked, found))
            if found is None:
                return min(high_watermark, end), answers
            epoch, leader_end = found
            if not self.answers_epoch:
                return min(leader_end, end), answers
            own_epoch, own_end = epoch_cache.end_offset_for(cache, epoch, end) or found
            if own_epoch == epoch:
                return min(own_end, leader_end, end), answers
            end = min(own_end, end)
            cache = epoch_cache.truncate_from_end(cache, end)
        return end, answers


# Since 2.0.1.
NEWEST: Final = Truncation()

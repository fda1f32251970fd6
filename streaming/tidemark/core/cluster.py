"""What a group knows of a cluster as a whole: its collectors' clocks and how each broker answered.

Every group sees every pass record, so each keeps the same knowledge; broker- and cluster-wide alerts are raised in the
home group only, in the others this knowledge mutes.
"""

from __future__ import annotations

from msgspec import Struct

from tidemark.core.events import CONTROLLED_SHUTDOWN, OK, REFUSED, BrokerAnswer, Pass
from tidemark.core.partition import Life

# A collector that gave no pass for this long no longer owns its partitions.
OWNER_SILENT_SECONDS = 30.0
# A broker that came back keeps its grace this long, to fetch its way into the in-sync sets again.
RETURN_SECONDS = 60.0
MAX_COLLECTORS = 64


class Clock(Struct, array_like=True):
    """The newest pass of one collector."""

    collector_epoch: int
    pass_number: int
    ended_at: float
    monotonic: float
    period_ms: float


class BrokerSeen(Struct, array_like=True):
    """How a broker answered lately."""

    outcome: str
    since: float
    passes: int = 1
    # Restart grace: until then its absence is put down to an orderly restart.
    grace_until: float = 0.0


class ClusterState(Struct, array_like=True):
    """One cluster in one group."""

    collectors: dict[str, Clock] = {}
    brokers: dict[int, BrokerSeen] = {}
    cluster_id: str | None = None
    partitions: int | None = None
    quorum_leader: int | None = None
    quorum_epoch: int | None = None
    # Passes in a row in which the whole group was missed, or no broker answered.
    blind_passes: int = 0
    lives: list[Life] = []
    view_at: float = 0.0
    view_digest: int = 0

    def tick(self, name: str, collector_epoch: int, event: Pass) -> bool:
        """Moves a collector's clock. False when this pass was seen already or comes from a replaced process."""
        clock = self.collectors.get(name)
        if clock is not None and (clock.collector_epoch, clock.pass_number) >= (collector_epoch, event.number):
            return False
        self.collectors[name] = Clock(collector_epoch, event.number, event.ended_at, event.monotonic, event.period_ms)
        if len(self.collectors) > MAX_COLLECTORS:
            del self.collectors[min(self.collectors, key=lambda known: self.collectors[known].ended_at)]
        return True

    def owner_is_silent(self, name: str, at: float) -> bool:
        """Whether a collector has given no pass lately, measured at `at`."""
        clock = self.collectors.get(name)
        return clock is None or at - clock.ended_at > OWNER_SILENT_SECONDS

    def newly_refusing(self, answers: list[BrokerAnswer]) -> list[int]:
        """Brokers that refuse connections in this pass and did not in the last one (they may deserve grace)."""
        return [
            answer.broker
            for answer in answers
            if answer.outcome in (REFUSED, CONTROLLED_SHUTDOWN)
            and (seen := self.brokers.get(answer.broker)) is not None
            and seen.outcome not in (REFUSED, CONTROLLED_SHUTDOWN)
        ]

    def note_answers(self, answers: list[BrokerAnswer], at: float) -> None:
        """Takes over how each broker answered; a broker the pass does not name is forgotten with the cluster's list."""
        known = self.brokers
        self.brokers = {}
        for answer in answers:
            seen = known.get(answer.broker)
            if seen is None:
                self.brokers[answer.broker] = BrokerSeen(answer.outcome, at)
                continue
            if seen.outcome == answer.outcome:
                seen.passes += 1
            else:
                if answer.outcome == OK:
                    seen.grace_until = min(seen.grace_until, at + RETURN_SECONDS)
                elif seen.outcome == OK:
                    # A new absence needs a grace of its own.
                    seen.grace_until = 0.0
                seen.outcome, seen.since, seen.passes = answer.outcome, at, 1
            self.brokers[answer.broker] = seen

    def grant_grace(self, candidates: list[int], at: float, grace_ms: float) -> None:
        """Grants restart grace; a second broker that is down ends everybody's."""
        for broker in candidates:
            self.brokers[broker].grace_until = at + grace_ms / 1000.0
        if sum(seen.outcome != OK for seen in self.brokers.values()) > 1:
            for seen in self.brokers.values():
                seen.grace_until = 0.0

    def in_grace(self, broker: int, at: float) -> bool:
        """Whether a broker's absence is put down to an orderly restart at `at`."""
        seen = self.brokers.get(broker)
        return seen is not None and at < seen.grace_until

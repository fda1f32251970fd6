"""What a group knows of a cluster as a whole: its collectors' clocks and how each broker answered.

Every group sees every pass record, so each keeps the same knowledge; broker- and cluster-wide alerts are raised in the
home group only, in the others this knowledge mutes.
"""

from __future__ import annotations

from msgspec import Struct

from tidemark.core.events import CONTROLLED_SHUTDOWN, OK, REFUSED, BrokerAnswer, BrokerState, Pass
from tidemark.core.partition import Life

# A collector that gave no pass for this long no longer owns its partitions.
OWNER_SILENT_SECONDS = 30.0
# A collector's pass counts for the cluster when that of another one was so many periods ago.
TURN = 0.75
# A broker that came back keeps its grace this long, to fetch its way into the in-sync sets again.
RETURN_SECONDS = 60.0
# So many passes of an older process, with none of the newer one in between: that one is gone, and the clock was set back
# before the other one started.
SET_BACK_PASSES = 30
MAX_COLLECTORS = 64
MAX_BROKERS = 4096
# Operations in purgatory: samples no closer than this, at most so many.
PURGATORY_SECONDS = 10.0
MAX_PURGATORY = 8


class Clock(Struct, array_like=True):
    """The newest pass of one collector."""

    collector_epoch: int
    pass_number: int
    ended_at: float
    monotonic: float
    period_ms: float
    # The share it watches; null is the whole cluster.
    shard: str | None = None
    # Its first pass.
    began_at: float = 0.0
    # The newest pass of an older process under the same name.
    older_at: float = 0.0
    # Passes of which events were refused because another collector owns their partitions, and the newest of them.
    refused: int = 0
    refused_pass: int = -1
    # Its passes in a row that came while a newer process of another name passed too.
    contested: int = 0
    # broker -> (partitions of its share whose preferred leader that is, those of them that it leads), at most MAX_BROKERS.
    preferred: dict[int, tuple[int, int]] = {}
    # Passes of an older process under the same name since its newest one.
    older_passes: int = 0


class NodeState(Struct, array_like=True):
    """What `broker` events said last of a broker, or of a node of the metadata quorum."""

    observed_at: float
    incarnation: int | None = None
    # When the incarnation was first seen; the first one seen is no restart.
    restarted_at: float | None = None
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    is_voter: bool | None = None
    metadata_log_end_offset: int | None = None
    metadata_lag_ms: float | None = None
    offline_log_dirs: int | None = None
    # (time, produce, fetch), oldest first, at most MAX_PURGATORY.
    purgatories: list[tuple[float, int | None, int | None]] = []


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
    # What `broker` events said, at most MAX_BROKERS.
    nodes: dict[int, NodeState] = {}
    # The pass at which it was judged last, and whose that was.
    looked_at: float = 0.0
    looked_by: str = ""

    def tick(self, name: str, collector_epoch: int, event: Pass) -> bool:
        """Moves a collector's clock. False when this pass was seen already or comes from a replaced process."""
        clock = self.collectors.get(name)
        if clock is not None and clock.collector_epoch > collector_epoch:
            clock.older_at, clock.older_passes = (
                max(clock.older_at, event.ended_at),
                clock.older_passes + 1,
            )
            if clock.older_passes < SET_BACK_PASSES:
                return False
        elif clock is not None and (clock.collector_epoch, clock.pass_number) >= (
            collector_epoch,
            event.number,
        ):
            return False
        same = clock if clock is not None and clock.collector_epoch == collector_epoch else None
        fresh = Clock(
            collector_epoch,
            event.number,
            event.ended_at,
            event.monotonic,
            event.period_ms,
            event.shard,
            event.ended_at,
        )
        if same is not None:
            fresh.began_at, fresh.older_at = same.began_at, same.older_at
            fresh.refused, fresh.refused_pass = same.refused, same.refused_pass
        fresh.contested = (
            (same.contested if same is not None else 0) + 1
            if self._is_contested(name, fresh)
            else 0
        )
        for answer in event.brokers:
            if answer.preferred is not None and answer.preferred_led is not None:
                fresh.preferred[answer.broker] = (answer.preferred, answer.preferred_led)
        self.collectors[name] = fresh
        if len(self.collectors) > MAX_COLLECTORS:
            del self.collectors[
                min(self.collectors, key=lambda known: self.collectors[known].ended_at)
            ]
        return True

    def _is_contested(self, name: str, clock: Clock) -> bool:
        """Whether a newer process of another name is alive."""
        return any(
            other.collector_epoch > clock.collector_epoch
            and not self.owner_is_silent(rival, clock.ended_at)
            for rival, other in self.collectors.items()
            if rival != name
        )

    def preferred_of(self, broker: int, at: float) -> tuple[int, int] | None:
        """(partitions whose preferred leader a broker is, those of them that it leads), over all shares that are watched at `at`."""
        shares = {
            clock.shard: counted
            for name, clock in self.collectors.items()
            if (counted := clock.preferred.get(broker)) is not None
            and not self.owner_is_silent(name, at)
        }
        # One that watches the whole cluster has counted everything.
        counts = [shares[None]] if None in shares else list(shares.values())
        return (
            (sum(count[0] for count in counts), sum(count[1] for count in counts))
            if counts
            else None
        )

    def is_due(self, name: str, event: Pass) -> bool:
        """Whether to judge the cluster at a pass: collectors of its shares take turns, lest a moment count once for each of them."""
        if (
            name != self.looked_by
            and abs(event.ended_at - self.looked_at) * 1000.0 < TURN * event.period_ms
        ):
            return False
        self.looked_at, self.looked_by = event.ended_at, name
        return True

    def owner_is_silent(self, name: str, at: float, collector_epoch: int = 0) -> bool:
        """Whether a collector has given no pass lately, measured at `at`, or its process of then was found to be gone."""
        clock = self.collectors.get(name)
        return (
            clock is None
            or clock.collector_epoch < collector_epoch
            or at - clock.ended_at > OWNER_SILENT_SECONDS
        )

    def refuse(self, name: str, collector_epoch: int, pass_number: int) -> None:
        """Counts a pass with an event of a collector that does not own the partition; a repeated record counts once."""
        clock = self.collectors.get(name)
        if clock is None or clock.collector_epoch != collector_epoch:
            return
        if pass_number > max(clock.pass_number, clock.refused_pass):
            clock.refused, clock.refused_pass = clock.refused + 1, pass_number

    def note_node(self, event: BrokerState) -> None:
        """Takes a `broker` event over; what it leaves out stays as it was known. An older event changes nothing."""
        known = self.nodes.get(event.broker)
        if known is None:
            if len(self.nodes) >= MAX_BROKERS:
                return
            known = self.nodes[event.broker] = NodeState(event.observed_at)
        elif event.observed_at < known.observed_at:
            return
        known.observed_at = event.observed_at
        if event.incarnation is not None and event.incarnation != known.incarnation:
            known.restarted_at = (
                event.observed_at if known.incarnation is not None else known.restarted_at
            )
            known.incarnation = event.incarnation
        for name in (
            "fenced",
            "in_controlled_shutdown",
            "is_voter",
            "metadata_log_end_offset",
            "metadata_lag_ms",
            "offline_log_dirs",
        ):
            value = getattr(event, name)
            if value is not None:
                setattr(known, name, value)
        sized = event.produce_purgatory is not None or event.fetch_purgatory is not None
        if sized and (
            not known.purgatories
            or event.observed_at - known.purgatories[-1][0] >= PURGATORY_SECONDS
        ):
            sample = (event.observed_at, event.produce_purgatory, event.fetch_purgatory)
            known.purgatories = [*known.purgatories, sample][-MAX_PURGATORY:]

    def newly_refusing(self, answers: list[BrokerAnswer]) -> list[int]:
        """Brokers that refuse connections in this pass and did not in the last one (they may deserve grace).

        A group knows its own partitions only; the collector's count tells whether a broker was in sync with any other.
        """
        return [
            answer.broker
            for answer in answers
            if (
                answer.outcome == CONTROLLED_SHUTDOWN
                or (answer.outcome == REFUSED and not answer.in_sync)
            )
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
                seen = BrokerSeen(answer.outcome, at, passes=0)
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

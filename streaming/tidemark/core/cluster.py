"""What a group knows of a whole cluster: its collectors' clocks and how each broker answers.

Every group reads every pass record, so each group keeps the same knowledge. Alerts about brokers
and the cluster are raised in the home group only; in the other groups this knowledge mutes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeVar

from msgspec import Struct

from tidemark.core.broker_report import BrokerConfiguration, LogDirectory
from tidemark.core.broker_seen import UNSEEN, BrokerSeen
from tidemark.core.jmx import NodeJmx
from tidemark.core.tracked_alert import TrackedAlert

Count = TypeVar("Count")

# A collector without a pass for this long, by the clock of another collector, no longer owns its
# partitions.
OWNER_SILENT_SECONDS: Final = 30.0
MAX_COLLECTORS: Final = 64
MAX_BROKERS: Final = 4096
MAX_PURGATORY_SAMPLES: Final = 9
MAX_QUORUM_EPOCHS: Final = 32
# A link that was late within this time is.
LINK_SECONDS: Final = 15.0


class CollectorClock(Struct, array_like=True):
    """The newest pass of one collector."""

    collector_epoch: int
    pass_number: int
    ended_at: float
    monotonic: float
    period_ms: float
    # The share that it watches; None is the whole cluster.
    shard: str | None = None
    # Its first pass.
    began_at: float = 0.0
    # The newest pass of an older process with the same name.
    older_at: float = 0.0
    # Passes with events that were refused because another collector owns the partitions, and the
    # newest of them.
    refused: int = 0
    refused_pass: int = -1
    # Its passes in a row during which a newer process with another name was alive.
    contested: int = 0
    # broker -> (partitions of the share whose preferred leader it is, those that it leads), at
    # most MAX_BROKERS.
    preferred: dict[int, tuple[int, int]] = {}
    # Passes of an older process with the same name since its newest one.
    older_passes: int = 0
    # Another collector -> that one's monotonic clock at its first pass after this one. At most
    # MAX_COLLECTORS.
    silent_from: dict[str, float] = {}
    # Its monotonic clock at the first of its contested passes.
    contested_from: float = 0.0
    # broker -> partitions of the share in whose in-sync set it is, and `BrokerAnswer.serving` (of
    # older collectors: the former), at most MAX_BROKERS each.
    in_sync: dict[int, int] = {}
    serving: dict[int, int] = {}
    # broker -> `BrokerAnswer.led_shrinks` and `led_shrinks_of_absent`, at most MAX_BROKERS.
    led_shrinks: dict[int, tuple[int, int]] = {}
    # Its passes in a row that missed all of its share, or in which no broker answered.
    blind_passes: int = 0
    # Partitions of its share.
    partitions: int | None = None
    # (leader, follower) -> when `Pass.links` had it last, the partitions in which the follower had
    # to fetch, and when it was late in most of them: within LINK_SECONDS, at most MAX_LINKS.
    links: dict[tuple[int, int], tuple[float, int, float]] = {}
    # When Kafka stored the pass, Unix seconds; 0: not known.
    stored_at: float = 0.0


class PurgatorySample(Struct, array_like=True):
    """Operations in a broker's purgatories; None: unknown."""

    at: float
    produce: int | None
    fetch: int | None


class CheckpointFiles(Struct, array_like=True):
    """The high watermark checkpoint files of a broker, as a reader on its host found them.

    Both times are by the reader's clock.
    """

    # When the oldest file was written, and when it was read.
    modified_at: float
    read_at: float
    directory: str | None = None


class BrokerStop(Struct, array_like=True):
    """The newest stop of a broker that a reader of its log directories saw."""

    clean: bool
    at: float


class NodeState(Struct, array_like=True):
    """What `broker` events reported last of a broker, or of a node of the metadata quorum."""

    observed_at: float
    incarnation: int | None = None
    # When the incarnation was first seen; the first incarnation is no restart.
    restarted_at: float | None = None
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    is_voter: bool | None = None
    metadata_log_end_offset: int | None = None
    metadata_lag_ms: float | None = None
    offline_log_dirs: int | None = None
    # Oldest first, at most MAX_PURGATORY_SAMPLES.
    purgatories: list[PurgatorySample] = []
    # What the broker reported of itself, and when; None: never.
    log_directories: list[LogDirectory] | None = None
    log_directories_at: float = 0.0
    configuration: BrokerConfiguration | None = None
    configuration_at: float = 0.0
    checkpoint: CheckpointFiles | None = None
    last_stop: BrokerStop | None = None
    # Group of fields -> when they were observed last. Each source reports its own groups, so none
    # makes another one's events old.
    reported_at: dict[str, float] = {}
    jmx: NodeJmx | None = None
    # When its controlled shutdown was seen first; None: it is in none.
    stopping_since: float | None = None


def shares_of(shard: str | None) -> str | None:
    """The number of shares in "1/4"."""
    return None if shard is None else shard.partition("/")[2]


class ClusterState(Struct, array_like=True):
    """One cluster in one group."""

    collectors: dict[str, CollectorClock] = {}
    brokers: dict[int, BrokerSeen] = {}
    cluster_id: str | None = None
    partitions: int | None = None
    quorum_leader: int | None = None
    quorum_epoch: int | None = None
    # Passes in a row that missed the whole group, or in which no broker answered.
    blind_passes: int = 0
    alerts: list[TrackedAlert] = []
    published_at: float = 0.0
    published_digest: int = 0
    # At most MAX_BROKERS.
    nodes: dict[int, NodeState] = {}
    # The pass at which the cluster was judged last, and its collector.
    judged_at: float = 0.0
    judged_by: str = ""
    # The collector of the newest pass.
    passed_by: str = ""
    # `Pass.reassigning` of the newest pass.
    reassigning: int | None = None
    # (time, epoch of the metadata quorum) over the last ten minutes, oldest first, at most
    # MAX_QUORUM_EPOCHS.
    quorum_epochs: list[tuple[float, int]] = []
    # The id before the newest change of `cluster_id`, and when that was.
    former_cluster_id: str | None = None
    cluster_changed_at: float = 0.0
    # Of the records of the metadata log: when the newer of two spans of time began, and the least
    # `MetadataChange.delay` of the older and of the newer one.
    record_delays: tuple[float, float, float] | None = None

    def is_silent(self, name: str, by: str, collector_epoch: int = 0) -> bool:
        """Whether a collector has given no pass lately, or its process was replaced.

        The time is that which another collector, `by`, has measured by itself since the last pass:
        the clocks of two machines are not compared.
        """
        clock, other = self.collectors.get(name), self.collectors.get(by)
        if clock is None or clock.collector_epoch < collector_epoch:
            return True
        silent_from = clock.silent_from.get(by)
        if other is None or silent_from is None:
            return False
        return other.monotonic - silent_from > OWNER_SILENT_SECONDS

    def live_shares(self, by: str) -> dict[str | None, CollectorClock]:
        """Share -> the newest collector that gives its passes; None is the whole cluster.

        Of the division of the cluster that the newest process takes part in. `by`: see `is_silent`.
        """
        live = [clock for name, clock in self.collectors.items() if not self.is_silent(name, by)]
        live.sort(key=lambda clock: clock.collector_epoch)
        divided = {clock.shard: clock for clock in live}
        return {
            shard: clock
            for shard, clock in divided.items()
            if shares_of(shard) == shares_of(live[-1].shard)
        }

    def seen(self, broker: int) -> BrokerSeen:
        """How a broker answers; without an outcome where no pass has asked it."""
        return self.brokers.get(broker, UNSEEN)

    def in_grace(self, broker: int, at: float) -> bool:
        """Whether an orderly restart explains a broker's absence at `at`."""
        return at < self.seen(broker).grace_until

    def is_absent(self, broker: int, at: float) -> bool:
        """Whether a broker does not answer although others do, or has only just returned.

        BROKER_DOWN reports the absence, or it is too short for a report.
        """
        seen = self.seen(broker)
        if seen is UNSEEN or seen.answers:
            return at < seen.returning_until
        return self.others_answer(broker)

    def on_one_rack(self, brokers: Collection[int]) -> bool | None:
        """Whether several brokers share one rack, and the cluster has others.

        None: the rack of one of them is not known. In a cluster without racks, none share one.
        """
        everywhere = {seen.rack for seen in self.brokers.values() if seen.rack is not None}
        if len(brokers) < 2 or len(everywhere) < 2:
            return False
        racks = {self.seen(broker).rack for broker in brokers}
        return None if None in racks else len(racks) == 1

    def others_answer(self, broker: int) -> bool:
        """Whether any other broker answers the collector. If not, the collector is cut off."""
        return any(seen.answers for number, seen in self.brokers.items() if number != broker)

    def preferred_of(self, broker: int) -> tuple[int, int] | None:
        """(partitions whose preferred leader a broker is, those that it leads) over all shares.

        None when no collector that is alive at the newest pass counted them.
        """
        counts = self._of_shares(lambda clock: clock.preferred.get(broker))
        return (sum(c[0] for c in counts), sum(c[1] for c in counts)) if counts else None

    def in_sync_of(self, broker: int) -> int | None:
        """In how many in-sync sets of all shares a broker is; None: not counted."""
        counts = self._of_shares(lambda clock: clock.in_sync.get(broker))
        return sum(counts) if counts else None

    def serving_of(self, broker: int) -> int | None:
        """`BrokerAnswer.serving` over all shares; None: not counted."""
        counts = self._of_shares(lambda clock: clock.serving.get(broker))
        return sum(counts) if counts else None

    def led_shrinks_of(self, broker: int) -> list[tuple[int, int, int]]:
        """By each collector that counts: its epoch, `BrokerAnswer.led_shrinks` and `..._of_absent`.

        Empty: not counted.
        """
        return self._of_shares(
            lambda clock: (
                (clock.collector_epoch, *clock.led_shrinks[broker])
                if broker in clock.led_shrinks
                else None
            )
        )

    @property
    def links(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(leader, follower) -> `Pass.links` over all shares.

        Empty: no follower is late, or no collector counts them.
        """
        merged: dict[tuple[int, int], tuple[int, int]] = {}
        for clock in self._of_shares(lambda clock: clock):
            for pair, (_, moving, late_at) in clock.links.items():
                # A link that is slow lets records pass now and then.
                late = moving if clock.ended_at - late_at <= LINK_SECONDS else 0
                known = merged.get(pair, (0, 0))
                merged[pair] = (known[0] + moving, known[1] + late)
        return merged

    def _of_shares(self, count: Callable[[CollectorClock], Count | None]) -> list[Count]:
        """A count by each collector that is alive at the newest pass, once per share."""
        shares = {
            clock.shard: counted
            for name, clock in self.collectors.items()
            if (counted := count(clock)) is not None and not self.is_silent(name, self.passed_by)
        }
        # A collector of the whole cluster has counted everything.
        return [shares[None]] if None in shares else list(shares.values())

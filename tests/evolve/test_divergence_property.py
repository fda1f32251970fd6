"""Replicas that truncate as Kafka does never raise DIVERGENCE. A forked log does.

A leader and a follower as KIP-101, KIP-279 and KIP-595 describe them, with the logs of the random
histories, clean and unclean elections, hangs, retention, and a follower that copies its
log again. The protocol model is not involved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.histories.logs import ReplicaLog
from tidemark.core.codec import encode_batch
from tidemark.core.events import OK, TIMED_OUT, Batch, BrokerAnswer, Observation, Pass, Replica
from tidemark.detect.default_thresholds import Detection, Thresholds
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord

DETECTION = Detection(thresholds=Thresholds(divergence_ms=10_000))
# A follower that answers truncates within this many passes of one second, far below divergence_ms.
SLOWEST_TRUNCATION = 4


class Log(ReplicaLog):
    """`ids` are the epochs of its records; null: the cleaner removed it."""

    ids: list[int | None]  # type: ignore[assignment]

    def __init__(self, epochs: Sequence[int] = (), cache: Sequence[tuple[int, int]] = ()) -> None:
        super().__init__([])
        self.ids, self.cache = [*epochs], [*cache]

    def lineage(self) -> list[tuple[int, int]]:
        """The newest eight entries, read as a collector reads them: from the newest epoch down."""
        found: list[tuple[int, int]] = []
        asked = self.cache[-1][0] if self.cache else -1
        while asked >= 0 and len(found) < 8:
            answer = self.end_offset_for(asked)
            assert answer is not None
            found.append(answer)
            asked = answer[0] - 1
        return found[::-1]


@dataclass
class Pair:
    """Brokers 1 and 2. The follower learns of an epoch, truncates, and then fetches."""

    logs: dict[int, Log] = field(default_factory=lambda: {1: Log(cache=[(0, 0)]), 2: Log()})
    leader: int = 1
    epoch: int = 0
    knows: dict[int, int] = field(default_factory=lambda: {1: 0, 2: 0})
    # Passes that the follower answered before it truncated for the epoch that it knows.
    untruncated_passes: int = 0
    truncated: bool = True
    compacted: bool = False

    @property
    def follower(self) -> int:
        return 3 - self.leader

    def elect(self, broker: int) -> None:
        self.leader, self.epoch = broker, self.epoch + 1
        self.knows[broker] = self.epoch
        self.logs[broker].assign(self.epoch, self.logs[broker].end)
        self.truncated, self.untruncated_passes = False, 0

    def write(self, count: int) -> None:
        self.logs[self.leader].ids += [self.epoch] * count

    def learn(self) -> None:
        self.knows[self.follower] = self.epoch

    def fetch(self, count: int) -> None:
        """Truncates in rounds (KIP-279), then copies at most `count` records."""
        mine, other = self.logs[self.follower], self.logs[self.leader]
        self.learn()
        if mine.end < other.start:
            mine.truncate_fully(other.start)
        while mine.cache:
            # AbstractFetcherThread.getOffsetTruncationState, once per answer of the leader.
            epoch, end = other.end_offset_for(mine.cache[-1][0]) or (mine.cache[-1][0], mine.end)
            if epoch == mine.cache[-1][0] and end >= mine.end:
                break
            own = mine.end_offset_for(epoch)
            assert own is not None
            mine.truncate_to(
                min(own[1], mine.end) if own[0] != epoch else min(own[1], end, mine.end)
            )
        if mine.end > other.end:
            mine.truncate_to(other.end)
        self.truncated = True
        for offset in range(mine.end, min(mine.end + count, other.end)):
            copied = other.ids[offset]
            if copied is not None:
                mine.assign(copied, offset)
            mine.ids.append(copied)

    def compact(self, which: int) -> None:
        """The cleaner removes the first records of an epoch; the follower then loses its disk."""
        entries = self.logs[self.leader].cache
        start = entries[which % len(entries)][1]
        for log in self.logs.values():
            log.ids[start : start + 2] = [None] * len(log.ids[start : start + 2])
        self.compacted = True
        self.logs[self.follower] = Log()

    def step(self, name: str, count: int) -> None:
        """One step of a history; other names change nothing."""
        match name:
            case "write":
                self.write(count)
            case "fetch":
                self.fetch(5 * count)
            case "learn":
                self.learn()
            case "elect other":
                self.elect(self.follower)
            case "elect again":
                self.elect(self.leader)
            case "expire":
                log = self.logs[self.leader]
                log.delete_before(min(log.start + count, log.end))
            case "compact":
                self.compact(count)

    def observe(
        self, at: float, *, silent: bool, reads_leader: bool, reads_follower: bool
    ) -> Observation:
        samples = []
        for broker in (1, 2):
            log = self.logs[broker]
            if silent and broker == self.follower:
                samples.append(Replica(broker=broker, error=TIMED_OUT))
                continue
            read = reads_follower and broker == self.follower
            samples.append(
                Replica(
                    broker=broker,
                    log_end_offset=log.end,
                    high_watermark=0,
                    log_start_offset=log.start,
                    leader_epoch=self.knows[broker],
                    leads=broker == self.leader,
                    lineage=log.lineage() if read else None,
                )
            )
        lineage = self.logs[self.leader].lineage()
        return Observation(
            topic="t",
            partition=0,
            observed_at=at,
            topic_id="a",
            leader=self.leader,
            leader_epoch=self.epoch,
            replicas=[1, 2],
            in_sync_replicas=[self.leader],
            samples=samples,
            leader_log_end_offset_before=self.logs[self.leader].end,
            lineage=lineage if reads_leader else None,
            lineage_complete_from=min((epoch for epoch, _ in lineage), default=None)
            if reads_leader
            else None,
            compacted=self.compacted,
        )


class Watcher:
    """The whole reducer with its detectors."""

    def __init__(self) -> None:
        self.fold = Fold(GroupState(), DETECTION, 0, 1)
        self.number = 0
        self.at = 1_000.0

    def observe(
        self,
        pair: Pair,
        gap: float = 1.0,
        *,
        silent: bool = False,
        leader: bool = True,
        follower: bool = True,
    ) -> None:
        self.number += 1
        self.at += gap
        event = pair.observe(self.at, silent=silent, reads_leader=leader, reads_follower=follower)
        closing = Pass(
            number=self.number,
            started_at=self.at,
            ended_at=self.at,
            monotonic=self.at,
            period_ms=1000.0,
            brokers=[BrokerAnswer(broker=broker, outcome=OK) for broker in (1, 2)],
        )
        batch = Batch(
            v=2,
            cluster="c",
            collector="k",
            collector_epoch=1,
            pass_number=self.number,
            events=[event, closing],
        )
        self.fold.record(RawRecord(0, self.number, self.at, encode_batch(batch)))

    @property
    def has_fired(self) -> bool:
        """Whether it raised KafkaDivergence."""
        return any(b"KafkaDivergence" in (row.value or b"") for row in self.fold.rows)


# Single steps, and sequences that single steps rarely make: a former leader with two epochs of its
# own returns; a replica copies a compacted log again; a follower hangs before it truncates.
STEPS = (
    *("write", "fetch", "learn", "elect other", "elect again"),
    *("expire", "compact", "hang", "gap", "nothing"),
    "write, fetch, write, elect again, write, elect other, write, learn, nothing",
    "write, elect again, write, elect again, write, compact, fetch, nothing",
    "write, fetch, write, elect other, write, learn, hang, hang, nothing",
)
# Which lineages a pass reads: the leader's, the follower's.
Reads = tuple[bool, bool]
reads = st.sampled_from([(True, True)] * 5 + [(True, False), (False, True), (False, False)])


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 5), reads), max_size=20))
@settings(max_examples=2 * settings().max_examples)
def test_replicas_that_truncate_as_kafka_does_never_diverge(
    history: list[tuple[str, int, Reads]],
) -> None:
    pair, watcher = Pair(), Watcher()
    steps = [(step, n, read) for moves, n, read in history for step in moves.split(", ")]
    for step, count, (leader, follower) in steps:
        pair.step(step, count)
        silent = step == "hang"
        # A gap is longer than what counts as watched. Within it, a follower would have fetched.
        gap = {"hang": 1.0 + 4.0 * count, "gap": 16.0 * count}.get(step, 1.0)
        if not silent and not pair.truncated and pair.knows[pair.follower] == pair.epoch:
            pair.untruncated_passes += 1
            if pair.untruncated_passes > SLOWEST_TRUNCATION:
                pair.fetch(0)
        watcher.observe(pair, gap, silent=silent, leader=leader, follower=follower)
        assert not watcher.has_fired, (pair, watcher.number)


@given(
    st.integers(1, 20),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 9),
    st.lists(reads, max_size=6),
)
def test_a_fork_below_a_later_epoch_is_found_by_two_reads(
    shared: int, mine: int, theirs: int, later: int, others: list[Reads]
) -> None:
    """The follower kept its tail and fetched on as if it had truncated."""
    leader = Log(
        [*[0] * shared, *[1] * theirs, *[2] * later], [(0, 0), (1, shared), (2, shared + theirs)]
    )
    forked = Log([*[0] * (shared + mine), *[2] * later], [(0, 0), (2, shared + mine)])
    pair, watcher = Pair({1: leader, 2: forked}, epoch=2, knows={1: 2, 2: 2}), Watcher()
    watcher.observe(pair)
    assert not watcher.has_fired
    for reads_leader, reads_follower in others:
        watcher.observe(pair, leader=reads_leader, follower=reads_follower)
    watcher.observe(pair)
    assert watcher.has_fired


@given(st.integers(1, 20), st.integers(1, 9), st.integers(0, 9))
def test_a_tail_that_is_never_cut_off_is_found_after_its_time(
    shared: int, tail: int, written: int
) -> None:
    leader = Log([*[0] * shared, *[1] * written], [(0, 0), (1, shared)])
    untruncated = Log([*[0] * (shared + tail)], [(0, 0)])
    pair, watcher = Pair({1: leader, 2: untruncated}, epoch=1, knows={1: 1, 2: 1}), Watcher()
    for _ in range(10):
        watcher.observe(pair)
        assert not watcher.has_fired
    watcher.observe(pair)
    assert watcher.has_fired

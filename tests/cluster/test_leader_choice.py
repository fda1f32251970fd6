"""Elections on real brokers lose what was said before: clean and unclean, with random lags.

The truth is what producers have an acknowledgement for, and what consumers can read afterwards.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, Self

import pytest
from kafka import TopicPartition

from tests.cluster.producing import producer_of
from tidemark.assess.election_commands import election_commands
from tidemark.assess.leader_choice import Choice, OffsetRange, choose_leader
from tidemark.assess.leader_death import LeaderDeath, if_leader_died
from tidemark.core.records import View
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.few_passes import few_passes
from tidemark.settings import Cluster, Collect
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.replica_logs import read_disks
from tidemark_lab.brokers.wait import wait_until
from tidemark_lab.judge.truth import establish

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

TOPIC: Final = "orders"
PARTITIONS: Final = 10
PLACES: Final = [(TOPIC, number) for number in range(PARTITIONS)]
ASSIGNMENTS: Final = {n: [1, 2, 3] if n % 2 else [1, 3, 2] for n in range(PARTITIONS)}
UNCLEAN: Final = 1
SECONDS: Final = 90.0


class Acked(NamedTuple):
    """A record that producers with acks=all have an acknowledgement for."""

    partition: int
    offset: int
    number: int


class Watch:
    """Passes over the topic in a thread, as a collector would run them."""

    def __init__(self, brokers: LocalCluster) -> None:
        self._cluster = Cluster(name="c", bootstrap_servers=brokers.bootstrap_servers)
        self._found, self._lock = ClusterViews(Detection()), threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        for done in few_passes(self._cluster, Collect(), [TOPIC]):
            with self._lock:
                for batch in done.batches:
                    self._found.add(batch)
            if self._stop.is_set():
                return

    def views(self) -> dict[int, View]:
        with self._lock:
            return {view.partition or 0: view for view in self._found.views("c")}

    def until(self, condition: Callable[[View], bool], what: str) -> dict[int, View]:
        """The views once all meet the condition."""
        found: dict[int, View] = {}

        def all_meet_it() -> bool:
            found.update(self.views())
            return len(found) == PARTITIONS and all(map(condition, found.values()))

        def unmet() -> View | None:
            return next((view for view in found.values() if not condition(view)), None)

        wait_until(all_meet_it, SECONDS, what, seen=unmet)
        return found


class Truth:
    """What is acknowledged, and which of it is lost."""

    def __init__(self, brokers: LocalCluster, load: LoadProducer) -> None:
        self._brokers, self._load, self._lost = brokers, load, set[Acked]()

    def acknowledged(self) -> set[Acked]:
        """Without what is known to be lost."""
        return {Acked(r.partition, r.offset, r.id) for r in self._load.acknowledged()} - self._lost

    def newly_lost(self) -> set[Acked]:
        """Acknowledged records that the leader's log lacks, and held at the last call."""
        found = self._brokers.partitions([TOPIC])
        leaders = {place: partition.leader_id for place, partition in found.items()}
        truth = establish(self._load.acknowledged(), read_disks(self._brokers, PLACES), leaders)
        lost = {Acked(r.partition, r.offset, r.id) for r in truth.lost} - self._lost
        self._lost |= lost
        return lost


@pytest.fixture(scope="module")
def brokers() -> Iterator[LocalCluster]:
    overrides = {"replica.lag.time.max.ms": "1500", "broker.session.timeout.ms": "6000"}
    with LocalCluster(overrides=overrides) as cluster:
        cluster.create_topic(TOPIC, ASSIGNMENTS, {"min.insync.replicas": "1"})
        yield cluster


def burst(brokers: LocalCluster, seed: random.Random, partitions: list[int]) -> None:
    """Records with acks=1, of no record id: a follower that is behind lacks them."""
    with producer_of(brokers, acks=1, enable_idempotence=False) as producer:
        for number in partitions:
            for _ in range(seed.randrange(60)):
                producer.send(TOPIC, value=b"-1 burst", partition=number)


def some(seed: random.Random) -> list[int]:
    return seed.sample(range(PARTITIONS), PARTITIONS // 2)


def members(*expected: int) -> Callable[[View], bool]:
    return lambda view: set(view.in_sync_replicas or []) == set(expected) and view.leader == 1


def restore(brokers: LocalCluster, watch: Watch) -> None:
    """All brokers run and are in sync, and broker 1 leads."""
    for broker in (1, 2, 3):
        if not brokers.is_running(broker):
            brokers.start_broker(broker)
    watch.until(lambda v: len(v.in_sync_replicas or []) == 3, "in sync")
    brokers.elect_preferred_leaders({TOPIC: range(PARTITIONS)})
    watch.until(
        lambda v: (
            v.leader == 1
            and all(r.error is None and (r.lineage or r.broker == 1) for r in v.replicas)
        ),
        "led",
    )


def is_within(record: Acked, *ranges: OffsetRange | None) -> bool:
    return any(
        found is not None
        and found.start <= record.offset
        and (found.end is None or record.offset < found.end)
        for found in ranges
    )


def elect(brokers: LocalCluster, chosen: dict[int, tuple[View, Choice]]) -> None:
    """What the commands do: the order first, then an unclean election, then the old order."""
    for view, choice in chosen.values():
        purposes = [command.purpose for command in election_commands(view, choice)]
        assert f"elect broker {choice.broker}, which" in " ".join(purposes)

    def order(wanted: dict[int, list[int]]) -> None:
        targets = {TopicPartition(TOPIC, number): order for number, order in wanted.items()}
        brokers.administer(lambda admin: admin.alter_partition_reassignments(targets), "reorder")

    order(
        {
            number: [choice.broker, *(b for b in view.assigned if b != choice.broker)]
            for number, (view, choice) in chosen.items()
        }
    )
    brokers.administer(lambda admin: admin.elect_leaders(UNCLEAN, {TOPIC: list(chosen)}), "elect")
    order({number: view.assigned for number, (view, _) in chosen.items()})


@pytest.mark.parametrize("first", [2, 3])
def test_unclean_elections_lose_what_was_said(
    brokers: LocalCluster, tmp_path: Path, first: int
) -> None:
    """Broker `first` falls behind, then the other one, then leader 1 dies: every record that is
    lost lies in a range that was named, and every record of a proven range is lost.
    """
    seed, second = random.Random(first), 5 - first
    elections = proven = 0
    with (
        Watch(brokers) as watch,
        LoadProducer(brokers.bootstrap_servers, PLACES, tmp_path / "acks", 300) as load,
    ):
        truth = Truth(brokers, load)
        for _ in range(2):
            restore(brokers, watch)
            brokers.kill_broker(first)
            watch.until(members(1, second), "shrunk once")
            burst(brokers, seed, some(seed))
            brokers.kill_broker(second)
            watch.until(members(1), "shrunk twice")
            burst(brokers, seed, some(seed))
            before = truth.acknowledged()
            # With all brokers down, nothing says so: the next views are those of 2 and 3.
            brokers.kill_broker(1)
            brokers.start_broker(2)
            brokers.start_broker(3)
            found = watch.until(
                lambda v: v.leader is None and not any(r.error for r in v.replicas if r.broker > 1),
                "answering",
            )
            load.pause(TOPIC)
            chosen = {}
            for number, view in found.items():
                made = choose_leader(view)
                live = [choice for choice in made.choices if choice.answers]
                assert {choice.broker for choice in live} == {2, 3}
                assert not any(choice.loses_nothing for choice in live), view
                chosen[number] = view, seed.choice(live)
            elect(brokers, chosen)
            watch.until(
                lambda v: v.leader == chosen[v.partition or 0][1].broker,  # noqa: B023
                "elected as chosen",
            )
            lost = truth.newly_lost()
            for number, (_, choice) in chosen.items():
                gone = {each for each in lost if each.partition == number}
                outside = {
                    each for each in gone if not is_within(each, choice.committed, choice.possible)
                }
                assert not outside, (choice, sorted(outside))
                named = {
                    each
                    for each in before
                    if each.partition == number and is_within(each, choice.committed)
                }
                assert named <= gone, (choice, sorted(named - gone))
                proven += len(named)
                elections += 1
            load.resume(TOPIC)
        restore(brokers, watch)
    print(f"{elections} unclean elections, {proven} records lost in proven ranges")
    assert elections == 2 * PARTITIONS
    assert proven > 0


def test_a_clean_election_loses_nothing_that_was_safe(
    brokers: LocalCluster, tmp_path: Path
) -> None:
    """Leader 1 dies while others are in sync: the named successor leads, and no record that
    producers with acks=all have an acknowledgement for is lost.
    """
    seed = random.Random(7)
    elections = 0
    with (
        Watch(brokers) as watch,
        LoadProducer(brokers.bootstrap_servers, PLACES, tmp_path / "acks", 300) as load,
    ):
        truth = Truth(brokers, load)
        for away in (None, 2, 3):
            restore(brokers, watch)
            if away is not None:
                brokers.kill_broker(away)
                watch.until(members(1, 5 - away), "shrunk")
            burst(brokers, seed, some(seed))
            deaths: dict[int, LeaderDeath] = {}
            for number, view in watch.views().items():
                death = if_leader_died(view)
                assert death is not None
                assert (death.election, death.committed) == ("clean", None), death
                deaths[number] = death
            brokers.kill_broker(1)
            found = watch.until(lambda v: v.leader not in (None, 1), "elected")
            load.pause(TOPIC)
            assert {n: view.leader for n, view in found.items()} == {
                n: death.successor for n, death in deaths.items()
            }
            assert not truth.newly_lost()
            elections += len(found)
            load.resume(TOPIC)
        restore(brokers, watch)
    print(f"{elections} clean elections")
    assert elections == 3 * PARTITIONS

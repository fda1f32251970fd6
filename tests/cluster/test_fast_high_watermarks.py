"""Unclean elections on real brokers: how far short of the truth a proven range ends, with high
watermarks that are read between passes and without.

In each round the follower of all partitions is killed, the leader goes on alone and is killed
under load, and the follower is elected. The truth is what the producer got acknowledged, and when.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tidemark.assess.losses import LOSS
from tidemark.core.codec import decode_batch
from tidemark.core.events import Pass
from tidemark.core.records import Alert
from tidemark_lab.brokers.broker_socket import fetch_metadata
from tidemark_lab.brokers.cluster import LocalCluster, Place
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.process import ChildProcess
from tidemark_lab.brokers.replica_logs import read_disks
from tidemark_lab.brokers.wait import wait_until
from tidemark_lab.judge.loss_comparison import LossComparison, compare_loss
from tidemark_lab.judge.replay import replay
from tidemark_lab.judge.truth import establish

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

# Of four unclean elections for each topic.
ROUNDS: Final = int(os.environ.get("ROUNDS", "5"))
PARTITIONS: Final = 4
PLACES: Final[list[Place]] = [(topic, n) for topic in ("fast", "plain") for n in range(PARTITIONS)]
PASS_SECONDS: Final = 1.0
WAIT_SECONDS: Final = 90.0
OVERRIDES: Final = {"broker.session.timeout.ms": "3000", "replica.lag.time.max.ms": "2000"}
OPTIONS: Final = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}


class Round(NamedTuple):
    """Its bounds by the clock. What is lost in it was acknowledged in it."""

    began_at: float
    ended_at: float


class Result(NamedTuple):
    """Of one unclean election; `is_claimed`: whether an alert has a range."""

    topic: str
    comparison: LossComparison
    evidence: dict[str, Any]


class Rounds:
    """Broker 3 is never touched; 1 and 2 change their parts in each round."""

    def __init__(self, cluster: LocalCluster, events: Path) -> None:
        self.cluster, self.events = cluster, events
        self.chance = random.Random(7)

    def wait(self, condition: Any, what: str) -> None:
        wait_until(condition, WAIT_SECONDS, what)

    def leads(self, broker: int | None) -> bool:
        """Whether broker 3 shows it as the leader of every partition; None: no leader."""
        wanted = -1 if broker is None else broker
        topics = fetch_metadata(self.cluster.address(3), ["fast", "plain"]).topics
        return all(p.leader_id == wanted for t in topics for p in t.partitions)

    def is_alone(self, broker: int) -> bool:
        topics = fetch_metadata(self.cluster.address(3), ["fast", "plain"]).topics
        return all(list(p.isr_nodes) == [broker] for t in topics for p in t.partitions)

    def is_listed(self, broker: int) -> bool:
        return any(b.node_id == broker for b in fetch_metadata(self.cluster.address(3)).brokers)

    def newest_pass(self) -> float:
        with self.events.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 65_536))
            lines = file.read().split(b"\n")[1:-1]
        found = [e for line in lines for e in decode_batch(line).events if isinstance(e, Pass)]
        return max((event.started_at for event in found), default=0.0)

    def wait_passes(self, number: int) -> None:
        for _ in range(number):
            now = time.time()
            self.wait(lambda now=now: self.newest_pass() > now, "another pass")

    def run(self, leader: int) -> Round:
        cluster, follower = self.cluster, 3 - leader
        began_at = time.time()
        cluster.kill_broker(follower)
        self.wait(lambda: self.is_alone(leader), "the leader is alone")
        self.wait_passes(2)
        # At any moment between two passes.
        time.sleep(self.chance.uniform(0.0, PASS_SECONDS))
        cluster.kill_broker(leader)
        self.wait(lambda: not self.is_listed(leader), "the killed leader is gone")
        cluster.start_broker(follower)
        self.wait(lambda: self.leads(follower), "the follower leads")
        self.wait_passes(4)
        ended_at = time.time()
        cluster.start_broker(leader)
        self.wait(lambda: cluster.is_whole(["fast", "plain"]), "every replica is in sync")
        self.wait_passes(2)
        return Round(began_at, ended_at)


def collector(cluster: LocalCluster, folder: Path) -> tuple[ChildProcess, Path]:
    events = folder / "events.jsonl"
    command = [sys.executable, "-m", "tidemark.cli", "collect", "--to", "-"]
    flags = ["--bootstrap", ",".join(cluster.bootstrap_servers), "--cluster", "local"]
    option = "TIDEMARK_COLLECT_FAST_HIGH_WATERMARK_TOPICS=fast"
    redirect = ["/bin/sh", "-c", 'exec env "$@" >>"$0"', str(events.absolute()), option]
    child = ChildProcess("tidemark collect", [*redirect, *command, *flags], folder / "collect.log")
    wait_until(lambda: events.exists() and events.stat().st_size > 0, 60.0, "the first events")
    return child, events


def claims(events: Path) -> list[Alert]:
    """Every loss that a replay of the recording claims, as it was fired."""
    found = [alert for alert in replay(events, 1) if alert.state == "firing"]
    return [alert for alert in found if alert.labels["alertname"] == LOSS]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    folder = tmp_path_factory.mktemp("fast")
    with LocalCluster(folder / "kafka", OVERRIDES) as cluster:
        for topic in ("fast", "plain"):
            cluster.create_topic(topic, {n: [1, 2] for n in range(PARTITIONS)}, OPTIONS)
        child, events = collector(cluster, folder)
        # A batch each 10 ms, so that the truth is finer than what it is held against.
        with LoadProducer(
            cluster.bootstrap_servers, PLACES, folder / "acked.jsonl", 320, 40, tick_seconds=0.01
        ) as load:
            rounds = Rounds(cluster, events)
            rounds.wait_passes(3)
            played = [rounds.run(1 + number % 2) for number in range(ROUNDS)]
            child.stop()
            load.stop(1.0)
            acknowledged = load.acknowledged()
        found_now = cluster.partitions(["fast", "plain"])
        leaders = {place: partition.leader_id for place, partition in found_now.items()}
        logs = read_disks(cluster, PLACES)
    alerts, found = claims(events), []
    for one in played:
        for place in PLACES:
            records = [
                r
                for r in acknowledged
                if (r.topic, r.partition) == place and one.began_at <= r.acked_at <= one.ended_at
            ]
            evidence = _evidence(alerts, place, one)
            proven = evidence.get("proven")
            bounds = None if proven is None else (proven[0], proven[1])
            truth = establish(records, logs, {place: leaders[place]})
            comparison = compare_loss(bounds, truth, place)
            found.append(Result(place[0], comparison, evidence))
            print(f"{place[0]}-{place[1]}: {comparison.text()}", file=sys.stderr)
    return found


def _evidence(alerts: Sequence[Alert], place: Place, one: Round) -> dict[str, Any]:
    found = [
        alert.evidence
        for alert in alerts
        if (alert.labels["topic"], alert.labels["partition"]) == (place[0], str(place[1]))
        and one.began_at <= alert.at
    ]
    inside = [e for e in found if e["committed_seen_at"] <= one.ended_at]
    return inside[0] if inside else {}


def shortfalls(results: list[Result], topic: str) -> list[float]:
    """Milliseconds, by election."""
    own = [result.comparison for result in results if result.topic == topic]
    found = sorted(c.shortfall_ms for c in own if c.shortfall_ms is not None)
    print(f"{topic}: {len(found)} of {len(own)}: {[round(ms) for ms in found]}", file=sys.stderr)
    assert len(found) == len(own)
    return found


def test_no_proven_range_holds_a_surviving_record(results: list[Result]) -> None:
    """Every election is claimed, from its first lost record on."""
    for _, comparison, evidence in results:
        assert comparison.still_there == ()
        assert comparison.actual is not None
        assert comparison.proven is not None
        assert comparison.proven[0] <= comparison.actual[0]
        assert evidence["confidence"] == "proven"


def test_the_last_proven_record_was_there_when_the_claim_says(results: list[Result]) -> None:
    for _, comparison, evidence in results:
        low, high = evidence["written_between"]
        assert high is not None
        assert low is None or low < high
        assert comparison.proven is not None


def test_a_range_ends_within_100_ms_of_the_truth_where_it_is_read_between_passes(
    results: list[Result],
) -> None:
    assert statistics.median(shortfalls(results, "fast")) <= 100.0


def test_a_range_ends_within_a_pass_of_the_truth_without(results: list[Result]) -> None:
    assert statistics.median(shortfalls(results, "plain")) <= 1000.0 * PASS_SECONDS

"""The simulator keeps Kafka's promises, and the judge can fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.histories.broker_judge import BrokerJudge
from tests.histories.case import Case
from tests.histories.claims import judge_claim
from tests.histories.history import History, script
from tests.histories.judge import Judge, judge
from tests.histories.logs import ReplicaLog
from tests.histories.modes import MODES
from tests.histories.sentences import judge_sentences
from tidemark.core.events import Observation, Replica
from tidemark.core.records import Alert
from tidemark_lab.judge.proofs import Oracle


@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if mode.fenced])
def test_clean_elections_lose_nothing(mode: str) -> None:
    """Without lossy disks and unclean elections, every leader has every committed record."""
    for seed in range(0, 16, 2):
        history = History(replace(script(seed, benign=True, mode=mode), collectors=[]))
        for number in range(1, history.plan.passes + 1):
            history.step(number)
            check_logs(history)
        for partition in history.world.partitions:
            assert not any(seen.lost for seen in partition.truth.leaderships), seed


def check_logs(history: History) -> None:
    for replica in (r for p in history.world.partitions for r in p.replicas.values()):
        log = replica.log
        if log is None:
            continue
        assert log.start <= log.high_watermark <= log.end
        for (epoch, start), (later, end) in zip(log.cache, log.cache[1:], strict=False):
            assert epoch < later and start < end
            ids = log.ids[max(start, log.start) : end]
            assert {log.epoch_of[record] for record in ids} <= {epoch}


def test_epoch_ends_follow_the_cache_of_kafka() -> None:
    """LeaderEpochFileCache.endOffsetFor."""
    log = ReplicaLog([1, 1, 3])
    log.copy_from([0, 1, 2])
    assert log.cache == [(1, 0), (3, 2)]
    ends = [log.end_offset_for(epoch) for epoch in range(5)]
    assert ends == [(0, 0), (1, 2), (1, 2), (3, 3), None]
    assert log.truncate_to(2) == [2]
    assert log.cache == [(1, 0)]


def seen(epoch: int, end: int, lineage: list[tuple[int, int]], committed: int) -> Observation:
    leader = 1 if epoch != 1 else 2
    return Observation(
        topic="orders",
        partition=0,
        observed_at=float(epoch),
        topic_id="id0",
        leader=leader,
        leader_epoch=epoch,
        samples=[
            Replica(
                broker=leader,
                log_end_offset=end,
                log_start_offset=0,
                leader_epoch=epoch,
                leads=True,
            )
        ],
        committed=committed,
        lineage=lineage,
        lineage_complete_from=0,
    )


def test_an_old_tail_over_committed_records_is_proven() -> None:
    """The end of epoch 0 was 5 in the log of epoch 1's leader; the old leader's is 24."""
    oracle = Oracle()
    oracle.observe(seen(0, 5, [(0, 5)], 5))
    oracle.observe(seen(1, 18, [(0, 5), (1, 18)], 18))
    returned = seen(2, 24, [(0, 24), (2, 24)], 0)
    oracle.observe(returned)
    assert not oracle.proven
    oracle.observe(returned)
    assert oracle.proven == {(2, (1, 5, 18))}


def alert(name: str, text: str, **evidence: object) -> Alert:
    return Alert(
        id="1",
        fingerprint="1",
        state="firing",
        labels={"alertname": name, "severity": "critical"},
        annotations={"description": text},
        evidence=evidence,
        starts_at=0.0,
        at=0.0,
    )


def case_of(text: str, name: str = "KafkaHwRegression", **evidence: object) -> Case:
    history = History(script(2, benign=True, mode="4.1"))
    for number in range(1, 6):
        history.step(number)
    partition = history.world.partitions[0]
    return Case(history.world, partition, alert(name, text, **evidence), 0, [(4.0, 6.0)], 0, set())


def test_one_to_four_partitions_share_brokers_and_not_their_leader() -> None:
    plans = [script(seed, benign=True) for seed in range(40)]
    assert {len(plan.placements) for plan in plans} == {1, 2, 3, 4}
    leaders = [[place.replicas[0] for place in plan.placements] for plan in plans]
    assert all(len(set(found)) > 1 for found in leaders if len(found) > 1)


def test_a_history_follows_from_its_seed() -> None:
    plan = replace(script(9, benign=False), passes=20)
    assert judge(plan).written == judge(plan).written


def test_a_false_alert_about_a_broker_is_found() -> None:
    player = Judge(script(2, benign=True))
    player.history.step(1)
    down = alert("KafkaBrokerDown", "")
    down.labels["broker"] = "1"
    brokers = BrokerJudge(player.history, player.findings)
    brokers.judge(1, down)
    player.history.world.brokers[1].paused = True
    brokers.note()
    brokers.judge(2, down)
    assert [(found.kind, found.number) for found in player.findings.found] == [
        ("untrue: KafkaBrokerDown", 1)
    ]


def test_new_wording_needs_a_line() -> None:
    found = judge_sentences(case_of("All is well."), Counter())
    assert found == [("unknown sentence: KafkaHwRegression", "All is well.")]


def test_a_false_claim_and_a_false_sentence_are_found() -> None:
    case = case_of("", "KafkaCommittedDataLoss", proven=[500, 502], leader_epoch_after=0)
    case.truth.commit(case.truth.write(0, 500, 1), 0, legitimate=True)
    assert judge_claim(case, Counter()) == "1 surviving, 1 uncommitted"
    text = "No record below 501 is missing in its log; the high watermark rises"
    case = case_of(text, leader=1, leader_epoch=1)
    case.truth.commit(case.truth.write(0, 500, 1), 0, legitimate=True)
    kinds = [kind for kind, _ in judge_sentences(case, Counter())]
    assert kinds == ["false: KafkaHwRegression: none missing"]

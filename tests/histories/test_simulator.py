"""The simulator keeps Kafka's promises, and the judge can fail."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.histories.case import Case
from tests.histories.claims import judge_claim
from tests.histories.history import History, script
from tests.histories.logs import ReplicaLog
from tests.histories.modes import MODES
from tests.histories.oracle import Oracle
from tests.histories.sentences import judge_sentences
from tidemark.core.events import Observation, Replica
from tidemark.core.records import Alert


@pytest.mark.parametrize("mode", [name for name, mode in MODES.items() if mode.fenced])
def test_clean_elections_lose_nothing(mode: str) -> None:
    """Without lossy disks and unclean elections, every leader has every committed record."""
    for seed in range(0, 16, 2):
        history = History(script(seed, benign=True, mode=mode))
        for number in range(1, history.plan.passes + 1):
            history.step(number)
            check_logs(history)
        assert not any(seen.lost for seen in history.world.truth.leaderships), seed


def check_logs(history: History) -> None:
    for broker in history.world.brokers.values():
        log = broker.log
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
    return Case(history.world, alert(name, text, **evidence), 0, 4.0, 0, set())


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

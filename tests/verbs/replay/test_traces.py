"""Recorded faults of real brokers, replayed: what must be told of each, and what must not."""

from __future__ import annotations

import json

import pytest

from tests.traces import ORIGIN, batches, rounds
from tests.verbs.replay.make import TRACES
from tidemark.core.codec import encode_batch
from tidemark.core.events import Observation, Pass
from tidemark.core.records import Alert, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord


def lines(name: str) -> list[str]:
    return (TRACES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()


def told(recorded: list[str]) -> dict[str, list[Alert]]:
    """The alerts that a recording raises, by name, as they fired."""
    fold = Fold(GroupState(), Detection(), 0, 1)
    for number, batch in enumerate(batches(recorded)):
        fold.record(RawRecord(0, number, 0.0, encode_batch(batch)))
    records = [decode_record(row.value) for row in fold.rows if row.value is not None]
    result: dict[str, list[Alert]] = {}
    for record in records:
        if isinstance(record, Alert) and record.state == "firing":
            result.setdefault(record.labels["alertname"], []).append(record)
    return result


def test_an_unclean_election_and_what_it_lost() -> None:
    found = told(lines("unclean"))
    (loss,) = found["KafkaCommittedDataLoss"]
    (election,) = found["KafkaUncleanElection"]
    assert loss.evidence["proven"] == [5, 12]
    assert election.labels["severity"] == "critical"
    assert "KafkaDivergence" not in found


def test_a_loss_below_a_high_watermark_that_nobody_sampled_is_a_truncation() -> None:
    found = told(lines("loss_0102"))
    (cut,) = found["KafkaLogTruncation"]
    assert (cut.evidence["log_end_offset_before"], cut.evidence["cut_at"]) == (6, 5)
    assert not {"KafkaCommittedDataLoss", "KafkaDivergence"} & found.keys()


def test_where_no_sample_tells_who_hosts_it_rounds_of_one_broker_take_nobody_away() -> None:
    seen = [
        event
        for batch in batches(lines("loss_0102"))
        for event in batch.events
        if isinstance(event, Observation)
    ]
    assert {tuple(event.replicas) for event in seen} == {(1, 2)}
    assert len(told(lines("loss_0102"))["KafkaIsrChange"]) == 1


def test_one_sample_of_that_high_watermark_proves_the_loss() -> None:
    recorded = lines("loss_0102")
    kill = next(number for number, line in enumerate(recorded) if "kill -9 all three" in line)
    sample = next(s for s in map(json.loads, reversed(recorded[:kill])) if s.get("broker") == 1)
    assert (sample["leo"], sample["hw"], sample["leader"]) == (5, 5, 1)
    sample |= {"t": json.loads(recorded[kill])["t"], "leo": 6, "hw": 6}
    (loss,) = told([*recorded[:kill], json.dumps(sample), *recorded[kill:]])[
        "KafkaCommittedDataLoss"
    ]
    assert loss.evidence["proven"] == [5, 6]


@pytest.mark.parametrize("name", ["sigstop_follower", "kip101_modern"])
def test_where_nothing_was_lost_nothing_is_claimed(name: str) -> None:
    assert (
        not {"KafkaCommittedDataLoss", "KafkaDivergence", "KafkaLossRisk"}
        & told(lines(name)).keys()
    )


@pytest.mark.parametrize("name", ["unclean", "loss_0102", "sigstop_follower", "kip101_modern"])
def test_a_round_of_samples_is_a_pass_at_the_traces_time(name: str) -> None:
    recorded = lines(name)
    made = list(batches(recorded))
    assert len(made) == len(list(rounds(recorded))) > 10
    for samples, batch in zip(rounds(recorded), made, strict=True):
        (closing,) = [event for event in batch.events if isinstance(event, Pass)]
        assert closing.ended_at == ORIGIN + max(sample["t"] for sample in samples)
        assert {answer.broker for answer in closing.brokers} == {
            sample["broker"] for sample in samples
        }
        for event in batch.events:
            if isinstance(event, Observation) and event.committed is not None:
                own = next(sample for sample in samples if sample["broker"] == event.leader)
                assert (own["leader"], own["lo_err"], own["f_err"]) == (own["broker"], 0, 0)
                assert own.get("leo_epoch", own.get("epoch")) == own.get("epoch")
                assert own["hw"] == event.committed


@pytest.mark.parametrize("name", ["unclean", "loss_0102"])
def test_what_producers_were_told_is_not_looked_at(name: str) -> None:
    """Whatever stands in the producers' lines, the events are the same."""
    recorded = lines(name)
    told_otherwise = [
        '{"t": 0.0, "event": "acked", "offs": [0]}' if '"event"' in line else line
        for line in recorded
    ]
    assert list(batches(recorded)) == list(batches(told_otherwise))

"""Replays of recorded faults of real brokers: the alerts that each must raise and must not."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from tests.traces import ORIGIN, batches, rounds
from tests.verbs.recordings import TRACES, alerts_of
from tidemark.core.codec import encode_batch
from tidemark.core.events import Observation, Pass
from tidemark.core.records import Alert


def lines(name: str) -> list[str]:
    return (TRACES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()


def fired(recorded: list[str]) -> dict[str, list[Alert]]:
    """The firing alerts of a recording by name."""
    result: dict[str, list[Alert]] = defaultdict(list)
    for alert in alerts_of(map(encode_batch, batches(recorded))):
        if alert.state == "firing":
            result[alert.labels["alertname"]].append(alert)
    return result


def test_an_unclean_election_and_its_loss() -> None:
    found = fired(lines("unclean"))
    (loss,) = found["KafkaCommittedDataLoss"]
    (election,) = found["KafkaUncleanElection"]
    assert loss.evidence["proven"] == [5, 12]
    assert election.labels["severity"] == "critical"
    assert "KafkaDivergence" not in found


def test_a_loss_below_a_high_watermark_without_a_sample_is_a_truncation() -> None:
    found = fired(lines("loss_0102"))
    (cut,) = found["KafkaLogTruncation"]
    assert (cut.evidence["log_end_offset_before"], cut.evidence["cut_at"]) == (6, 5)
    assert not {"KafkaCommittedDataLoss", "KafkaDivergence"} & found.keys()


def test_without_assigned_replicas_rounds_of_one_broker_keep_the_other() -> None:
    seen = [
        event
        for batch in batches(lines("loss_0102"))
        for event in batch.events
        if isinstance(event, Observation)
    ]
    assert {tuple(event.replicas) for event in seen} == {(1, 2)}
    assert len(fired(lines("loss_0102"))["KafkaIsrChange"]) == 1


def test_one_sample_of_that_high_watermark_proves_the_loss() -> None:
    recorded = lines("loss_0102")
    kill = next(number for number, line in enumerate(recorded) if "kill -9 all three" in line)
    sample = next(s for s in map(json.loads, reversed(recorded[:kill])) if s.get("broker") == 1)
    assert (sample["leo"], sample["hw"], sample["leader"]) == (5, 5, 1)
    sample |= {"t": json.loads(recorded[kill])["t"], "leo": 6, "hw": 6}
    (loss,) = fired([*recorded[:kill], json.dumps(sample), *recorded[kill:]])[
        "KafkaCommittedDataLoss"
    ]
    assert loss.evidence["proven"] == [5, 6]


@pytest.mark.parametrize("name", ["sigstop_follower", "kip101_modern"])
def test_without_a_loss_no_loss_is_claimed(name: str) -> None:
    assert (
        not {"KafkaCommittedDataLoss", "KafkaDivergence", "KafkaLossRisk"}
        & fired(lines(name)).keys()
    )


@pytest.mark.parametrize("name", ["unclean", "loss_0102", "sigstop_follower", "kip101_modern"])
def test_a_round_of_samples_is_a_pass_at_the_time_of_the_trace(name: str) -> None:
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
def test_producer_events_are_ignored(name: str) -> None:
    recorded = lines(name)
    other_producers = [
        '{"t": 0.0, "event": "acked", "offs": [0]}' if '"event"' in line else line
        for line in recorded
    ]
    assert list(batches(recorded)) == list(batches(other_producers))

"""The rows of two pipelines that watched the same faults, and the passes of the output's delay."""

from __future__ import annotations

import pytest

from tests.bench.latency_rows import first_message_of, latency_rows
from tests.bench.moving_passes import EPOCH_AFTER, MovingPasses
from tests.bench.row import Row
from tests.bench.watched_faults import Outcome
from tests.soak.first_posts import first_posts
from tidemark.core.text import rfc3339
from tidemark_lab.brokers.receiver import ReceivedAlert


def outcome(
    fault: str = "follower paused", *, slower: float = 0.0, silent: bool = False
) -> Outcome:
    return Outcome(
        fault,
        began=100.0,
        ended=160.0,
        detectable={"FOLLOWER_LAG": 102.2, "UNDER_REPLICATED": 109.0},
        tidemark={"KafkaFollowerLag": 106.0 + slower, "KafkaBrokerDown": 111.0 + slower},
        usual={} if silent else {"ScrapeProblem": 126.0, "UnderReplicatedPartitions": 136.0},
    )


def values(*outcomes: Outcome) -> dict[str, float]:
    return {row["name"].removeprefix("latency: "): row["value"] for row in latency_rows(outcomes)}


def test_the_first_messages_stand_beside_each_other() -> None:
    found = values(outcome(), outcome(slower=2.0))
    assert found["follower paused, Tidemark: first message, KafkaFollowerLag"] == 8.0
    assert found["follower paused, usual stack: first message, ScrapeProblem"] == 26.0
    assert found["follower paused, usual stack to Tidemark"] == pytest.approx(26.0 / 8.0)
    under = "follower paused, detectable to webhook, UnderReplicatedPartitions"
    assert found[under] == 27.0


def test_an_alert_is_judged_from_the_moment_when_the_probe_saw_it() -> None:
    (row,) = (
        row
        for row in latency_rows([outcome()])
        if row["name"].endswith("KafkaFollowerLag") and "detectable" in row["name"]
    )
    assert row["value"] == pytest.approx(3.8)
    assert (row["target"], row["met"]) == ("<= 7 s", True)
    (late,) = (r for r in latency_rows([outcome(slower=3.5)]) if r["name"] == row["name"])
    assert late["met"] is False


def leader_killed() -> Outcome:
    """The probe sees a leader down only when another one leads."""
    return Outcome(
        "leader killed",
        began=100.0,
        ended=150.0,
        detectable={"BROKER_DOWN": 105.0},
        tidemark={"KafkaBrokerDown": 104.0},
        usual={"ScrapeProblem": 126.0},
    )


def row_of(name: str, *outcomes: Outcome) -> Row:
    (found,) = (r for r in latency_rows(outcomes) if r["name"].removeprefix("latency: ") == name)
    return found


def test_a_message_before_the_probe_sees_the_condition_keeps_its_target() -> None:
    name = "leader killed, detectable to webhook, KafkaBrokerDown"
    row = row_of(name, leader_killed())
    assert (row["value"], row["target"], row["met"]) == (0.0, "<= 12 s", True)
    assert "(1 came before that and count as 0)" in row["how"]
    # One that came early does not hide one that came late.
    late = leader_killed()
    late.tidemark["KafkaBrokerDown"] = 120.0
    row = row_of(name, leader_killed(), late)
    assert (row["value"], row["met"]) == (15.0, False)


def test_all_faults_are_pooled_from_their_condition_to_the_first_message() -> None:
    # 3.8 s of a lag, which may take 3 s in passes; and a message before the probe sees it.
    outcomes = [outcome()] * 3 + [leader_killed()]
    pooled = "all faults, detectable to first message, "
    assert row_of(f"{pooled}p50", *outcomes)["value"] == pytest.approx(3.8)
    assert row_of(f"{pooled}p99", *outcomes)["value"] == pytest.approx(3.8)
    assert row_of("all faults, number", *outcomes)["value"] == 4.0
    beyond = row_of("all faults, beyond the hysteresis, p99", *outcomes)
    assert beyond["value"] == pytest.approx(0.8)
    assert (beyond["target"], beyond["met"]) == ("<= 4 s", True)
    assert beyond["how"].count("4 faults;") == 1
    late = row_of("all faults, beyond the hysteresis, p99", *outcomes, outcome(slower=3.5))
    assert late["value"] == pytest.approx(4.3)
    assert late["met"] is False


def test_a_fault_without_a_message_is_not_left_out() -> None:
    silent = outcome()
    silent.tidemark.clear()
    found = row_of("all faults, beyond the hysteresis, p99", outcome(), silent)
    # From its first condition to its end.
    assert found["value"] == pytest.approx(57.8)
    assert found["met"] is False
    assert "2 faults, 1 without a message until it ended" in found["how"]


def test_an_alert_that_the_probe_does_not_date_counts_from_the_first_condition() -> None:
    undated = outcome()
    undated.tidemark = {"KafkaLeaderAlone": 105.0}
    assert first_message_of(undated).seconds == pytest.approx(2.8)
    undated.detectable.clear()
    assert first_message_of(undated).seconds == 5.0


def test_only_the_first_post_of_a_firing_alert_after_the_fault_counts() -> None:
    def alert(at: float, status: str, started_at: float = 3.0) -> ReceivedAlert:
        return ReceivedAlert(
            at, status, {"alertname": "KafkaOffline"}, {}, rfc3339(started_at), None
        )

    alerts = [
        alert(1.0, "firing"),
        alert(5.0, "resolved"),
        alert(6.0, "firing"),
        alert(7.0, "firing"),
    ]
    assert first_posts(alerts, 4.0) == {"KafkaOffline": 6.0}
    assert first_posts([alert(6.0, "firing", started_at=1.0)], 4.0) == {}


@pytest.mark.parametrize("moves", [1, 10])
def test_each_pass_elects_leaders_of_other_partitions(moves: int) -> None:
    load = MovingPasses(60, moves, 4, 5.0, 6)
    before: set[int] = set()
    for number in range(12):
        after = {
            partition
            for partition, event in load.observations(number)
            if event.leader_epoch == EPOCH_AFTER
        }
        elected = set(load.elected(number))
        assert (len(elected), elected - after) == (6 if number < 10 else 0, set())
        assert after <= before | elected
        before |= elected
        groups = {group for group, _ in load.records(number)}
        assert groups == set(range(4))

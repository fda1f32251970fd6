from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.brokers.test_faults import Recorder
from tests.judge.examples import PLACE, received
from tidemark.core.errors import ClusterError
from tidemark_lab.drills.stage import Stage
from tidemark_lab.drills.steps import in_sync, leaderless, led_by, not_led_by
from tidemark_lab.faults.node_faults import Pause


class Pipeline:
    """Alerts that were received; a pass for each question."""

    def __init__(self, *alerts: Any) -> None:
        self._alerts, self._passes = list(alerts), 0

    def alerts(self) -> list[Any]:
        return self._alerts

    def passes(self) -> int:
        self._passes += 1
        return self._passes

    def check(self) -> None:
        pass


class Cluster(Recorder):
    """What the brokers say of partition 0: its leader and in-sync set; None: none answers."""

    def __init__(self, view: tuple[int, list[int]] | None) -> None:
        super().__init__()
        self.view = view

    def partitions(self, _topics: list[str]) -> dict[Any, Any]:
        if self.view is None:
            return {}
        leader, members = self.view
        return {PLACE: SimpleNamespace(leader_id=leader, isr_nodes=members)}


def make(cluster: Any, *alerts: Any) -> Stage:
    return Stage(cluster, cast("Any", None), cast("Any", Pipeline(*alerts)), [PLACE])


def test_conditions_are_of_what_the_brokers_say() -> None:
    stage = make(Cluster((3, [3, 2])))
    assert stage.leaders() == {0: 3}
    assert in_sync(2, 3)(stage)
    assert not in_sync(1, 2, 3)(stage)
    assert (led_by(3)(stage), not_led_by(1)(stage), leaderless()(stage)) == (True, True, False)


def test_without_an_answer_no_state_is_reached() -> None:
    stage = make(Cluster(None))
    assert not any(holds(stage) for holds in (in_sync(), leaderless(), not_led_by(1)))
    with pytest.raises(ClusterError, match="broker 1 leads: not within 0 s"):
        stage.wait(led_by(1), 0.0, "broker 1 leads")


def test_a_fault_is_marked_with_its_times_and_healed_at_the_end() -> None:
    cluster = Recorder()
    stage = make(cluster)
    stage.inject("pause", Pause(cast("Any", cluster), 2))
    (before,) = stage.marks.values()
    stage.heal_all()
    (after,) = stage.marks.values()
    assert (before.healed_at, after.detail) == (None, "broker 2")
    assert after.healed_at is not None
    assert after.healed_at >= after.at == before.at
    stage.heal_all()
    assert cluster.calls == ["pause_broker 2", "resume_broker 2"]


def test_alerts_fire_and_are_open_until_they_resolve() -> None:
    lag = received("KafkaFollowerLag", 1.0, broker=3)
    end = received("KafkaFollowerLag", 2.0, broker=3, state="resolved")
    down = received("KafkaBrokerDown", 3.0, partition=None, broker=2)
    stage = make(None, lag, end, down)
    assert stage.firing("FOLLOWER_LAG", 3) == {PLACE}
    assert stage.firing("FOLLOWER_LAG", 2) == set()
    assert stage.firing("FOLLOWER_LAG", 3, since=1.5) == set()
    stage.topic = "another"
    assert (stage.firing("FOLLOWER_LAG"), stage.firing("BROKER_DOWN")) == (set(), {None})
    assert stage.firing("BROKER_DOWN") == {None}
    assert stage.open_alerts() == {"KafkaBrokerDown"}


def test_passes_are_waited_for() -> None:
    make(None).pass_over(3)

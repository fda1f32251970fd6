from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.drill.examples import PLACE, received
from tests.local.test_faults import Recorder
from tidemark.core.errors import ClusterError
from tidemark_lab.drills import stage as stage_module
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
    """Each broker's view of partition 0: (epoch, leader, in-sync set); None: no answer."""

    def __init__(self, views: dict[int, tuple[int, int, list[int]] | None]) -> None:
        super().__init__()
        self.views = views

    def address(self, broker: int) -> int:
        return broker

    def fetch(self, broker: int, *_: object) -> Any:
        view = self.views[broker]
        if view is None:
            raise TimeoutError
        epoch, leader, members = view
        partition = SimpleNamespace(
            partition_index=0, leader_epoch=epoch, leader_id=leader, isr_nodes=members
        )
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[partition])])


def make(cluster: Any, *alerts: Any) -> Stage:
    return Stage(cluster, cast("Any", None), cast("Any", Pipeline(*alerts)), [PLACE])


@pytest.fixture
def zombie(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Broker 1 answers with an old epoch, broker 2 hangs, broker 3 knows the newest."""
    cluster = Cluster({1: (4, 1, [1, 2, 3]), 2: None, 3: (5, 3, [3, 2])})
    monkeypatch.setattr(stage_module, "fetch_metadata", cluster.fetch)
    return make(cluster)


def test_the_newest_epoch_of_the_brokers_that_answer_counts(zombie: Stage) -> None:
    assert zombie.leaders() == {0: 3}
    assert in_sync(2, 3)(zombie)
    assert not in_sync(1, 2, 3)(zombie)
    assert (led_by(3)(zombie), not_led_by(1)(zombie), leaderless()(zombie)) == (True, True, False)


def test_without_an_answer_no_state_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(dict.fromkeys((1, 2, 3)))
    monkeypatch.setattr(stage_module, "fetch_metadata", cluster.fetch)
    stage = make(cluster)
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
    assert stage.firing("BROKER_DOWN") == {None}
    assert stage.open_alerts() == {"KafkaBrokerDown"}


def test_passes_are_waited_for() -> None:
    make(None).pass_over(3)

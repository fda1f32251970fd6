"""The four scenes: what is done to the brokers, and what is waited for. Whether it was right is `report`'s business."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.demo.expectations import (
    FOLLOWER,
    HEALTHY,
    KILL_FOLLOWER,
    KILL_LEADER,
    LEADER,
    PAUSE_FOLLOWER,
    PAUSED,
    RETURN_LEADER,
    RETURN_STALE,
    ROLLING,
    UNCLEAN,
    Expectation,
    expected,
)
from tidemark.demo.report import Report
from tidemark.demo.services import WATCHED, Services
from tidemark.demo.table import LiveTable
from tidemark.local.cluster import BROKERS, LocalCluster
from tidemark.local.faults import Fault, KillBroker, PauseBroker, StopBroker
from tidemark.local.load import Load
from tidemark.local.receiver import Received, WebhookReceiver

HEALTHY_SECONDS: Final = 12.0
# After a scene's last step, long enough for a page that should not come, and for a scrape of what did.
SETTLE_SECONDS: Final = 6.0
ALERT_SECONDS: Final = 45.0
RESOLVE_SECONDS: Final = 30.0
# So much load goes to the lone leader: records that only it holds, all of them acknowledged.
ALONE_SECONDS: Final = 3.0
_TICK_SECONDS: Final = 0.2


@dataclass
class Stage:
    """Everything a scene needs."""

    cluster: LocalCluster
    services: Services
    load: Load
    webhooks: WebhookReceiver
    report: Report
    table: LiveTable
    own_topics: Mapping[str, Sequence[int]]

    def alerts(self) -> list[Received]:
        return list(self.webhooks.alerts())

    def begin(self, scene: str, text: str) -> None:
        self.report.timeline.scenes[scene] = time.time()
        self.table.say(f"{scene}: {text}")

    def cause(self, scene: str, name: str, act: Callable[[], None]) -> None:
        """Marks the time and injects a fault."""
        self.report.timeline.causes[scene, name] = time.time()
        self.table.say(f"{scene}: {name}")
        act()

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Redraws the table until `done` or until the time is up; raises when a process of the product is gone."""
        deadline = time.monotonic() + seconds
        while True:
            self.services.check()
            self.table.show(self.report.rows(self.alerts()))
            if done():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_TICK_SECONDS)

    def wait_alerts(self, wanted: Sequence[Expectation], ended: bool = False) -> None:
        """Until all have come (or ended). What does not come in time shows in the table; the scenes go on."""
        self.wait(
            lambda: not self.report.missing(wanted, self.alerts(), ended),
            RESOLVE_SECONDS if ended else ALERT_SECONDS,
        )

    def wait_cluster(
        self, topic: str, wanted: Callable[[Any], bool], seconds: float, what: str
    ) -> None:
        """Until every running broker shows the partitions of `topic` as `wanted`. Raises ClusterError: the scene failed."""
        if not self.wait(lambda: self.cluster.shows(topic, wanted), seconds):
            raise ClusterError(
                f"the local cluster did not get there within {seconds:.0f} s: {what}. Its logs are in {self.cluster.directory}."
            )

    def wait_whole(self) -> None:
        """Until every replica is in sync again, in all topics."""
        for topic in (WATCHED, *self.own_topics):
            self.wait_cluster(topic, _whole, 90.0, f"all replicas of {topic} in sync")


def _whole(partition: Any) -> bool:
    return len(partition.isr_nodes) == len(partition.replica_nodes)


def open_alerts(alerts: Sequence[Received]) -> list[Received]:
    """The newest notification of each alert that has not been resolved."""
    newest = {tuple(sorted(alert.labels.items())): alert for alert in alerts}
    return [alert for alert in newest.values() if alert.status == "firing"]


def healthy(stage: Stage) -> None:
    """Nothing happens, and nothing fires. What fired while the processes came up must have ended before."""
    if not stage.wait(lambda: not open_alerts(stage.alerts()), RESOLVE_SECONDS):
        names = ", ".join(sorted({alert.name for alert in open_alerts(stage.alerts())}))
        raise TidemarkError(
            f"alerts that fired at the start do not end: {names}. Logs: {stage.services.config.parent}"
        )
    stage.begin(HEALTHY, f"nothing happens for {HEALTHY_SECONDS:.0f} s, and nothing may fire")
    stage.wait(lambda: False, HEALTHY_SECONDS)


def follower_paused(stage: Stage) -> None:
    """A follower hangs under load: the mark stands still long before Kafka takes it out of the in-sync set."""
    stage.begin(PAUSED, f"broker {FOLLOWER} will hang under load (SIGSTOP)")
    fault: Fault = PauseBroker(stage.cluster, FOLLOWER)
    stage.cause(PAUSED, PAUSE_FOLLOWER, fault.inject)
    stage.wait_alerts(expected(PAUSED))
    fault.heal()
    stage.table.say(f"{PAUSED}: broker {FOLLOWER} goes on (SIGCONT); its alerts must end")
    stage.wait_whole()
    stage.wait_alerts(expected(PAUSED), ended=True)


def rolling_restart(stage: Stage) -> None:
    """What operators do every week: it must page nobody."""
    stage.begin(ROLLING, "a clean restart of each broker in turn; nobody may be paged")
    for broker in BROKERS:
        stage.table.say(f"{ROLLING}: broker {broker} stops cleanly and starts again")
        fault: Fault = StopBroker(stage.cluster, broker)
        fault.inject()
        fault.heal()
        stage.wait(partial(stage.cluster.ready, broker), 90.0)
        stage.wait_whole()
    stage.cluster.elect_preferred_leaders({WATCHED: [0], **stage.own_topics})
    stage.wait_cluster(WATCHED, _led_by(LEADER), 30.0, f"broker {LEADER} leads {WATCHED} again")
    stage.wait(lambda: False, SETTLE_SECONDS)


def unclean_election(stage: Stage) -> None:
    """The follower dies, the leader goes on alone and dies too; the follower comes back and is elected without its records."""
    stage.begin(
        UNCLEAN,
        "the follower dies, then the leader; the stale follower is elected while load goes on",
    )
    follower: Fault = KillBroker(stage.cluster, FOLLOWER)
    leader: Fault = KillBroker(stage.cluster, LEADER)
    stage.cause(UNCLEAN, KILL_FOLLOWER, follower.inject)
    stage.wait_cluster(WATCHED, _in_sync(LEADER), 60.0, f"broker {LEADER} alone in the in-sync set")
    alone_since = time.time()
    stage.wait_alerts(expected(UNCLEAN, KILL_FOLLOWER))
    stage.wait(
        lambda: (stage.load.last_acknowledged_at() or 0.0) > alone_since + ALONE_SECONDS, 30.0
    )
    stage.cause(UNCLEAN, KILL_LEADER, leader.inject)
    stage.wait_alerts(expected(UNCLEAN, KILL_LEADER))
    stage.cause(UNCLEAN, RETURN_STALE, follower.heal)
    stage.wait_cluster(WATCHED, _led_by(FOLLOWER), 90.0, f"broker {FOLLOWER} elected uncleanly")
    stage.wait_alerts(expected(UNCLEAN, RETURN_STALE))
    stage.cause(UNCLEAN, RETURN_LEADER, leader.heal)
    stage.wait_whole()
    stage.wait_alerts(expected(UNCLEAN, RETURN_LEADER))
    stage.table.say(f"{UNCLEAN}: both replicas are back; the alerts on states must end")
    stage.wait_alerts(expected(UNCLEAN), ended=True)
    stage.wait(lambda: False, SETTLE_SECONDS)


def _led_by(broker: int) -> Callable[[Any], bool]:
    return lambda partition: partition.leader_id == broker


def _in_sync(broker: int) -> Callable[[Any], bool]:
    return lambda partition: list(partition.isr_nodes) == [broker]


PLAY: Final = (healthy, follower_paused, rolling_restart, unclean_election)

"""The four scenes: faults on the brokers, and the states they wait for. `report` judges them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.receiver import ReceivedAlert, WebhookReceiver
from tidemark_lab.demo.expected_alerts import (
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
    expected_alerts,
)
from tidemark_lab.demo.live_table import LiveTable
from tidemark_lab.demo.report import Report
from tidemark_lab.demo.services import WATCHED, Services

HEALTHY_SECONDS: Final = 12.0
# After a scene's last step: time for an unexpected page, and for a scrape of the expected alerts.
SETTLE_SECONDS: Final = 6.0
# Load on the lone leader: acknowledged records that no other broker holds.
ALONE_SECONDS: Final = 3.0
# Longer than Alertmanager's group_wait for a page: what is resolved before causes no message.
OFFLINE_SECONDS: Final = 6.0
ALERT_SECONDS: Final = 45.0
RESOLVE_SECONDS: Final = 30.0
# A slow start raises TidemarkStreamStalled. It resolves once passes have flowed for two minutes.
SLOW_START_SECONDS: Final = 240.0
RECOVERY_SECONDS: Final = 90.0
_TICK_SECONDS: Final = 0.2


@dataclass
class DemoRun:
    """Everything a scene needs."""

    cluster: LocalCluster
    services: Services
    load: LoadProducer
    webhooks: WebhookReceiver
    report: Report
    table: LiveTable

    def begin(self, scene: str, text: str) -> None:
        self.report.began[scene] = time.time()
        self.table.say(f"{scene}: {text}")

    def inject(self, scene: str, fault: str, act: Callable[[int], None], broker: int) -> None:
        """Notes the time and injects a fault on a broker."""
        self.report.injected[scene, fault] = time.time()
        self.table.say(f"{scene}: {fault}")
        act(broker)

    def wait(self, seconds: float, condition: Callable[[], bool] = lambda: False) -> bool:
        """Shows the table until the condition holds or the time is over.

        Raises TidemarkError when one of the processes has ended.
        """
        deadline = time.monotonic() + seconds
        while True:
            self.services.check()
            self.table.show(self.report.results(self.webhooks.alerts()))
            if condition():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_TICK_SECONDS)

    def wait_firing(self, scene: str, *faults: str) -> None:
        """Waits for the expected alerts. Missing ones show in the table; the scenes go on."""
        expected = expected_alerts(scene, *faults)
        self.wait(ALERT_SECONDS, lambda: self.report.have_fired(expected, self.webhooks.alerts()))

    def wait_resolved(self, scene: str) -> None:
        """Waits until the scene's alerts on states are resolved, as `wait_firing` does."""
        self.wait(
            RESOLVE_SECONDS,
            lambda: self.report.have_resolved(expected_alerts(scene), self.webhooks.alerts()),
        )

    def wait_cluster(
        self, what: str, topic: str, condition: Callable[[Any], bool], seconds: float
    ) -> None:
        """Waits until each partition meets the condition on every running broker.

        Raises ClusterError: the scene failed.
        """
        if not self.wait(seconds, lambda: self.cluster.all_partitions(topic, condition)):
            raise ClusterError(
                f"the local cluster did not reach this state within {seconds:.0f} s: {what}. "
                f"Its logs are in {self.cluster.directory}."
            )

    def wait_leader(self, broker: int, seconds: float) -> None:
        what = f"broker {broker} leads {WATCHED}"
        self.wait_cluster(what, WATCHED, lambda p: p.leader_id == broker, seconds)

    def wait_all_in_sync(self) -> None:
        for topic in (WATCHED, *self.services.own_topics):
            self.wait_cluster(
                f"all replicas of {topic} in sync",
                topic,
                lambda partition: len(partition.isr_nodes) == len(partition.replica_nodes),
                RECOVERY_SECONDS,
            )


def open_alerts(alerts: Sequence[ReceivedAlert]) -> set[str]:
    """The names of the alerts that are not resolved."""
    newest = {tuple(sorted(alert.labels.items())): alert for alert in alerts}
    return {alert.name for alert in newest.values() if alert.status == "firing"}


def healthy(run: DemoRun) -> None:
    """Nothing happens, nothing may fire. Alerts from the start-up must be resolved before."""
    if not run.wait(SLOW_START_SECONDS, lambda: not open_alerts(run.webhooks.alerts())):
        names = ", ".join(sorted(open_alerts(run.webhooks.alerts())))
        raise TidemarkError(
            f"alerts that fired at the start are not resolved: {names}. "
            f"Logs: {run.services.config.parent}"
        )
    run.begin(HEALTHY, f"nothing happens for {HEALTHY_SECONDS:.0f} s, nothing may fire")
    run.wait(HEALTHY_SECONDS)


def follower_paused(run: DemoRun) -> None:
    """A follower hangs under load: the high watermark stops before Kafka shrinks the ISR."""
    run.begin(PAUSED, f"broker {FOLLOWER} will hang under load (SIGSTOP)")
    run.inject(PAUSED, PAUSE_FOLLOWER, run.cluster.pause_broker, FOLLOWER)
    run.wait_firing(PAUSED)
    run.cluster.resume_broker(FOLLOWER)
    run.table.say(f"{PAUSED}: broker {FOLLOWER} resumes (SIGCONT); its alerts must resolve")
    run.wait_all_in_sync()
    run.wait_resolved(PAUSED)


def rolling_restart(run: DemoRun) -> None:
    """A weekly routine: it must not page."""
    run.begin(ROLLING, "a clean restart of each broker in turn; nothing may page")
    for broker in BROKERS:
        run.table.say(f"{ROLLING}: broker {broker} stops cleanly and starts again")
        run.cluster.stop_broker(broker)
        run.cluster.start_broker(broker)
        run.wait(RECOVERY_SECONDS, partial(run.cluster.is_ready, broker))
        run.wait_all_in_sync()
    run.cluster.elect_preferred_leaders({WATCHED: [0], **run.services.own_topics})
    run.wait_leader(LEADER, 30.0)
    run.wait(SETTLE_SECONDS)


def unclean_election(run: DemoRun) -> None:
    """The follower dies, then the leader. The follower returns and leads without the records."""
    run.begin(
        UNCLEAN, "the follower dies, then the leader; the stale follower is elected under load"
    )
    run.inject(UNCLEAN, KILL_FOLLOWER, run.cluster.kill_broker, FOLLOWER)
    run.wait_cluster(
        f"broker {LEADER} alone in the in-sync set",
        WATCHED,
        lambda partition: list(partition.isr_nodes) == [LEADER],
        60.0,
    )
    alone_until = time.time() + ALONE_SECONDS
    run.wait_firing(UNCLEAN, KILL_FOLLOWER)
    run.wait(30.0, lambda: (run.load.last_acknowledged_at() or 0.0) > alone_until)
    run.inject(UNCLEAN, KILL_LEADER, run.cluster.kill_broker, LEADER)
    run.wait_firing(UNCLEAN, KILL_LEADER)
    run.wait(OFFLINE_SECONDS)
    run.inject(UNCLEAN, RETURN_STALE, run.cluster.start_broker, FOLLOWER)
    run.wait_leader(FOLLOWER, RECOVERY_SECONDS)
    run.wait_firing(UNCLEAN, RETURN_STALE)
    run.inject(UNCLEAN, RETURN_LEADER, run.cluster.start_broker, LEADER)
    run.wait_all_in_sync()
    run.wait_firing(UNCLEAN, RETURN_LEADER)
    run.table.say(f"{UNCLEAN}: both replicas are back; the state alerts must resolve")
    run.wait_resolved(UNCLEAN)
    run.wait(SETTLE_SECONDS)


SCRIPT: Final = (healthy, follower_paused, rolling_restart, unclean_election)

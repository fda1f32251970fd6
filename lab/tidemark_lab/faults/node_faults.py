"""Faults of nodes and processes of a local cluster: stops, crashes, pauses, restarts.

Faults of topics are in `topic_faults`, those that lose records in `harmful_faults`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.brokers.link import Link
from tidemark_lab.faults.fault import Fault


class BrokerFault(Fault):
    """A fault of one broker's process."""

    def __init__(self, cluster: LocalCluster, broker: int, hold_seconds: float = 0.0) -> None:
        self._cluster, self._broker = cluster, broker
        self.brokers, self.hold_seconds = (broker,), hold_seconds

    def heal(self) -> None:
        self._start(self._cluster, self.brokers)


class ControlledRestart(BrokerFault):
    """SIGTERM, a while down, start: leaders move away first."""

    name = "controlled restart"

    def inject(self) -> None:
        self._cluster.stop_broker(self._broker)


class Crash(BrokerFault):
    """SIGKILL and start. The page cache survives, as in a crash of the process alone."""

    name = "kill and start"

    def inject(self) -> None:
        self._cluster.kill_broker(self._broker)


class Pause(BrokerFault):
    """SIGSTOP and SIGCONT, as a long garbage collection: connections stay open."""

    name = "pause"

    def inject(self) -> None:
        self._cluster.pause_broker(self._broker)

    def heal(self) -> None:
        self._cluster.resume_broker(self._broker)


class KillAll(Fault):
    """SIGKILL to several brokers, in this order; they start in the same order."""

    name = "kill"

    def __init__(
        self, cluster: LocalCluster, brokers: Sequence[int], hold_seconds: float = 0.0
    ) -> None:
        self._cluster, self.hold_seconds = cluster, hold_seconds
        self.brokers = tuple(brokers)
        self.harmed_at: list[float] = []

    def inject(self) -> None:
        for broker in self.brokers:
            self._kill(broker)

    def _kill(self, broker: int) -> None:
        self.harmed_at.append(time.time())
        self._cluster.kill_broker(broker)

    def heal(self) -> None:
        self._start(self._cluster, self.brokers)


class SlowFollower(BrokerFault):
    """A follower that fetches only now and then: it stays in sync, and holds every commit back.

    SIGSTOP for `stopped_seconds`, SIGCONT for `running_seconds`, again and again. A throttle does
    not do: Kafka exempts replicas in sync (ReplicaManager.shouldLeaderThrottle).
    """

    name = "slow follower"

    def __init__(
        self,
        cluster: LocalCluster,
        broker: int,
        stopped_seconds: float,
        running_seconds: float,
    ) -> None:
        super().__init__(cluster, broker)
        self._seconds = stopped_seconds, running_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slow-follower", daemon=True)

    def inject(self) -> None:
        self._thread.start()

    def heal(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        stopped, running = self._seconds
        while not self._stop.is_set():
            self._cluster.pause_broker(self._broker)
            self._stop.wait(stopped)
            self._cluster.resume_broker(self._broker)
            self._stop.wait(running)


class SlowLeader(Fault):
    """Followers get the answers of one leader late; it fetches and serves clients as before."""

    name = "slow leader"

    def __init__(self, link: Link, broker: int, pause_seconds: float) -> None:
        self._link, self._pause_seconds = link, pause_seconds
        self.brokers = (broker,)

    def inject(self) -> None:
        self._link.slow(self._pause_seconds)

    def heal(self) -> None:
        self._link.slow(0.0)


class TakenAddress(Crash):
    """A broker dies, and a new broker gets its address."""

    name = "taken address"

    def __init__(self, cluster: LocalCluster, broker: int, number: int) -> None:
        super().__init__(cluster, broker)
        self._number = number

    def inject(self) -> None:
        super().inject()
        self._cluster.start_in_place_of(self._broker, self._number)

    def heal(self) -> None:
        self._cluster.kill_broker(self._number)
        super().heal()


class RollingRestart(Fault):
    """A controlled restart of each broker in turn, the next when the cluster is whole."""

    name = "rolling restart"
    brokers = BROKERS
    deadline_seconds = 120.0

    def __init__(self, cluster: LocalCluster, is_whole: Callable[[], bool]) -> None:
        self._cluster, self._is_whole = cluster, is_whole

    def inject(self) -> None:
        for broker in BROKERS:
            self._cluster.stop_broker(broker)
            self._cluster.start_broker(broker)
            self._wait(self._is_whole, f"the cluster is whole after broker {broker}")

    def heal(self) -> None:
        """The injection started every broker again."""


class ControllerRestart(BrokerFault):
    """The controller stops and starts: brokers serve, no metadata changes meanwhile."""

    name = "controller restart"

    def __init__(self, cluster: LocalCluster, hold_seconds: float = 0.0) -> None:
        super().__init__(cluster, CONTROLLER, hold_seconds)

    @property
    def detail(self) -> str:
        return f"controller {CONTROLLER}, down for {self.hold_seconds:.1f} s"

    def inject(self) -> None:
        self._cluster.stop_broker(CONTROLLER)

    def heal(self) -> None:
        self._cluster.start_broker(CONTROLLER)
        self._wait(self._cluster.has_controller, "the controller is active")

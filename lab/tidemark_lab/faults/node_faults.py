"""Faults of nodes and processes of a local cluster: stops, crashes, pauses, restarts.

A fault is injected, lasts, and is healed. `run_fault` does the three and records the times. Faults
of topics are in `topic_faults`.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Final, NamedTuple, Protocol

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.brokers.layout import CONTROLLER

_POLL_SECONDS: Final = 0.1


class FaultRecord(NamedTuple):
    """What was done to a cluster and when: Unix seconds, from injection until it is whole again.

    `brokers` are the nodes that the fault touches, the controller among them, `partitions` the
    partitions. `healed_at`: when the fault ended and the recovery began.
    """

    name: str
    detail: str
    brokers: tuple[int, ...]
    partitions: tuple[Place, ...]
    begin: float
    healed_at: float
    end: float


class Fault(ABC):
    """One disturbance of a cluster. `brokers` and `partitions` are what it touches directly.

    `inject` returns when the fault is in effect, `heal` when it has ended. Each takes at most
    `deadline_seconds`, and so does the recovery after it; both raise ClusterError beyond that.
    """

    name: ClassVar[str]
    brokers: tuple[int, ...] = ()
    partitions: tuple[Place, ...] = ()
    # How long it lasts between injection and healing.
    hold_seconds: float = 0.0
    deadline_seconds: float = 60.0

    @property
    def detail(self) -> str:
        """What distinguishes it from others of its name."""
        held = f" for {self.hold_seconds:.1f} s" if self.hold_seconds else ""
        return f"{', '.join(f'broker {broker}' for broker in self.brokers)}{held}"

    @abstractmethod
    def inject(self) -> None: ...

    @abstractmethod
    def heal(self) -> None: ...

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, self.deadline_seconds, f"{self.name} ({self.detail}): {what}")


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Raises ClusterError when the condition does not hold within this time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not within {seconds:.0f} s.")
        time.sleep(_POLL_SECONDS)


def run_fault(fault: Fault, is_whole: Callable[[], bool]) -> FaultRecord:
    """Injects, holds and heals a fault, and waits until the cluster is whole.

    Heals also a fault whose injection failed. Raises ClusterError when it cannot.
    """
    begin = time.time()
    try:
        fault.inject()
        time.sleep(fault.hold_seconds)
    except Exception:
        # The reason why the injection failed is the one to report.
        with contextlib.suppress(ClusterError):
            fault.heal()
        raise
    healed_at = time.time()
    fault.heal()
    what = f"the cluster is whole after {fault.name} ({fault.detail})"
    wait_until(is_whole, fault.deadline_seconds, what)
    return FaultRecord(
        fault.name, fault.detail, fault.brokers, fault.partitions, begin, healed_at, time.time()
    )


class BrokerFault(Fault):
    """A fault of one broker's process."""

    def __init__(self, cluster: LocalCluster, broker: int, hold_seconds: float = 0.0) -> None:
        self._cluster, self._broker = cluster, broker
        self.brokers, self.hold_seconds = (broker,), hold_seconds

    def heal(self) -> None:
        self._cluster.start_broker(self._broker)
        self._wait(lambda: self._cluster.is_ready(self._broker), "the broker is ready")


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

    def __init__(self, cluster: LocalCluster, brokers: Sequence[int]) -> None:
        self._cluster = cluster
        self.brokers = tuple(brokers)

    def inject(self) -> None:
        for broker in self.brokers:
            self._cluster.kill_broker(broker)

    def heal(self) -> None:
        for broker in self.brokers:
            self._cluster.start_broker(broker)
        for broker in self.brokers:
            self._wait(partial(self._cluster.is_ready, broker), "the broker is ready")


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


class ControllerRestart(Fault):
    """The controller stops and starts: brokers serve, no metadata changes meanwhile."""

    name = "controller restart"
    brokers = (CONTROLLER,)

    def __init__(self, cluster: LocalCluster, hold_seconds: float = 0.0) -> None:
        self._cluster, self.hold_seconds = cluster, hold_seconds

    @property
    def detail(self) -> str:
        return f"controller {CONTROLLER}, down for {self.hold_seconds:.1f} s"

    def inject(self) -> None:
        self._cluster.stop_broker(CONTROLLER)

    def heal(self) -> None:
        self._cluster.start_broker(CONTROLLER)
        self._wait(self._cluster.has_controller, "the controller is active")


class Restartable(Protocol):
    """A program beside the cluster."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


class CollectorRestart(Fault):
    """A collector stops and starts: the cluster does not notice."""

    name = "collector restart"

    def __init__(self, collector: Restartable, hold_seconds: float = 0.0) -> None:
        self._collector, self.hold_seconds = collector, hold_seconds

    @property
    def detail(self) -> str:
        return f"down for {self.hold_seconds:.1f} s"

    def inject(self) -> None:
        self._collector.stop()

    def heal(self) -> None:
        self._collector.start()

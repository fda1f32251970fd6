"""Faults of the controller and of the links to it."""

from __future__ import annotations

import time
from typing import Final

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.link import Link
from tidemark_lab.faults.fault import Fault


class ControllerFailover(Fault):
    """The active controller of several is killed: another one takes over."""

    name = "controller failover"

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._killed: int | None = None

    @property
    def detail(self) -> str:
        return "the active controller" if self._killed is None else f"controller {self._killed}"

    def inject(self) -> None:
        active = self._cluster.active_controller()
        if active is None:
            raise ClusterError("the local cluster reports no active controller.")
        self._killed = active
        self.brokers = (active,)
        self._cluster.kill_broker(active)
        self._wait(
            lambda: self._cluster.active_controller() not in (None, active),
            "another controller is active",
        )

    def heal(self) -> None:
        if self._killed is not None:
            self._cluster.start_broker(self._killed)
        self._wait(self._cluster.has_controller, "a controller is active")


# Between two stalls the quorum decides, and answers those who ask.
BETWEEN_SECONDS: Final = 4.0


class QuorumElections(Fault):
    """The active controller stalls, so that another one is elected, again and again."""

    name = "controllers stall"

    def __init__(self, cluster: LocalCluster, times: int, stopped_seconds: float) -> None:
        self._cluster, self._times, self._stopped_seconds = cluster, times, stopped_seconds

    def inject(self) -> None:
        for _ in range(self._times):
            self._wait(lambda: self._cluster.active_controller() is not None, "one is active")
            stalled = self._cluster.active_controller()
            assert stalled is not None
            self._cluster.pause_broker(stalled)
            time.sleep(self._stopped_seconds)
            self._cluster.resume_broker(stalled)
            time.sleep(BETWEEN_SECONDS)

    def heal(self) -> None:
        self._wait(self._cluster.has_controller, "a controller is active")


class LostVoter(Fault):
    """A controller that does not lead dies, and stays dead: one failure less can be survived."""

    name = "lost voter"

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def inject(self) -> None:
        self._wait(lambda: self._cluster.active_controller() is not None, "one is active")
        active = self._cluster.active_controller()
        voter = next(node for node in self._cluster.voters if node != active)
        self.brokers = (voter,)
        self._cluster.kill_broker(voter)

    def heal(self) -> None:
        self._cluster.start_broker(*self.brokers)


class CutControllerLink(Fault):
    """A broker and the controller do not reach each other; clients and brokers reach both.

    The controller fences the broker and elects other leaders. The broker does not learn of them.
    """

    name = "cut controller link"

    def __init__(self, link: Link, broker: int) -> None:
        self._link = link
        self.brokers = (broker,)

    def inject(self) -> None:
        self._link.cut()

    def heal(self) -> None:
        self._link.restore()

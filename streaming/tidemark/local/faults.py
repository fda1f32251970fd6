"""Faults on a local cluster: each can be injected and healed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tidemark.local.cluster import LocalCluster


class Fault(Protocol):
    """Something that goes wrong with one broker."""

    def inject(self) -> None:
        """Makes it happen; returns when it has."""

    def heal(self) -> None:
        """Ends it, without waiting until the cluster has recovered."""


@dataclass(frozen=True)
class PauseBroker:
    """SIGSTOP: a broker that hangs, with its connections open (a long garbage collection, a stuck disk)."""

    cluster: LocalCluster
    broker: int

    def inject(self) -> None:
        self.cluster.pause_broker(self.broker)

    def heal(self) -> None:
        self.cluster.resume_broker(self.broker)


@dataclass(frozen=True)
class KillBroker:
    """SIGKILL: a broker that crashes; its connections are refused from then on."""

    cluster: LocalCluster
    broker: int

    def inject(self) -> None:
        self.cluster.kill_broker(self.broker)

    def heal(self) -> None:
        self.cluster.start_broker(self.broker)


@dataclass(frozen=True)
class StopBroker:
    """SIGTERM: a controlled shutdown, as in a rolling restart."""

    cluster: LocalCluster
    broker: int

    def inject(self) -> None:
        self.cluster.stop_broker(self.broker)

    def heal(self) -> None:
        self.cluster.start_broker(self.broker)

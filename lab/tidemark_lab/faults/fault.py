"""A fault: what is done to a cluster, held and healed again, and the record of it."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import LocalCluster, Place
from tidemark_lab.brokers.wait import Check, wait_until


class FaultRecord(NamedTuple):
    """What was done to a cluster and when: Unix seconds, from injection until it is whole again.

    `brokers` are the nodes that the fault touches, the controller among them, `partitions` the
    partitions. `healed_at`: when the fault ended and the recovery began. `harmed_at`: the moments
    before what may lose records, ascending: nothing is lost between two of them.
    """

    name: str
    detail: str
    brokers: tuple[int, ...]
    partitions: tuple[Place, ...]
    begin: float
    healed_at: float
    end: float
    harmed_at: tuple[float, ...] = ()


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
    harmed_at: Sequence[float] = ()
    # While it waits. Raises where waiting longer is of no use.
    check: Check | None = None

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
        awaited = f"{self.name} ({self.detail}): {what}"
        wait_until(condition, self.deadline_seconds, awaited, check=self.check)

    def _start(self, cluster: LocalCluster, brokers: Sequence[int]) -> None:
        """Starts these, and waits until all of them serve."""
        for broker in brokers:
            cluster.start_broker(broker)
        self._wait_ready(cluster, brokers)

    def _wait_ready(self, cluster: LocalCluster, brokers: Sequence[int]) -> None:
        for broker in brokers:
            self._wait(partial(cluster.is_ready, broker), f"broker {broker} is ready")


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
        fault.name,
        fault.detail,
        fault.brokers,
        fault.partitions,
        begin,
        healed_at,
        time.time(),
        tuple(fault.harmed_at) or (begin,),
    )

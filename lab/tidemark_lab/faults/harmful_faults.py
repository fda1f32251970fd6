"""Harmful faults: crashes, unclean elections, lost page caches, zombies, disks.

Random choices come with the arguments, so a seed repeats them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tidemark_lab.brokers.cluster import LocalCluster, Place
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.faults.disk_faults import cut_logs, wipe_logs
from tidemark_lab.faults.node_faults import KillAll

# What an unflushed page cache holds here.
MOST_RECORDS: Final = 60


class World(NamedTuple):
    """A cluster, the replicas of its partitions, and the topics with unclean leader election."""

    cluster: LocalCluster
    replicas: Mapping[Place, Sequence[int]]
    unclean_topics: frozenset[str]

    def places(self, broker: int) -> list[Place]:
        return [place for place, brokers in self.replicas.items() if broker in brokers]

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.replicas})


class Harm(KillAll):
    """A fault that may lose records."""

    deadline_seconds = 90.0

    def __init__(self, world: World, brokers: Sequence[int], hold_seconds: float = 0.0) -> None:
        super().__init__(world.cluster, brokers, hold_seconds)
        self._world = world

    def _wait_all(self, condition: Callable[[Place, Any], bool], what: str) -> None:
        """Waits until all partitions meet the condition, as the brokers that answer see them."""

        def met() -> bool:
            found = self._cluster.partitions(self._world.topics)
            return len(found) == len(self._world.replicas) and all(
                condition(place, p) for place, p in found.items()
            )

        self._wait(met, what)

    def _wait_out_of_sync(self, gone: Sequence[int]) -> None:
        self._wait_all(
            lambda _, p: not {*p.isr_nodes} & {*gone} or {*p.isr_nodes} <= {*gone},
            f"no leader has {gone} in sync",
        )

    def _wait_led_without(self, gone: Sequence[int]) -> None:
        self._wait_all(
            lambda place, p: (
                place[0] not in self._world.unclean_topics
                or {*self._world.replicas[place]} <= {*gone}
                or (p.leader_id >= 0 and p.leader_id not in gone)
            ),
            f"other brokers than {gone} lead",
        )


class Crashes(Harm):
    """SIGKILL of one or two brokers at once; `cut`: their page caches are lost too."""

    name = "crash"

    def __init__(
        self,
        world: World,
        brokers: Sequence[int],
        hold_seconds: float,
        *,
        cut: random.Random | None = None,
    ) -> None:
        super().__init__(world, brokers, hold_seconds)
        self._cut_by = cut

    @property
    def detail(self) -> str:
        return super().detail + ("" if self._cut_by is None else ", page cache lost")

    def inject(self) -> None:
        super().inject()
        if self._cut_by is not None:
            for broker in self.brokers:
                folder = self._cluster.log_directory(broker)
                cut_logs(folder, self._world.places(broker), MOST_RECORDS, self._cut_by)


class PowerFailure(Crashes):
    """All brokers at once, with the controller; they come back one after another."""

    name = "power failure"

    def __init__(
        self,
        world: World,
        order: Sequence[int],
        hold_seconds: float,
        pauses: Sequence[float],
        cut: random.Random,
    ) -> None:
        super().__init__(world, order, hold_seconds, cut=cut)
        self._pauses = pauses

    def inject(self) -> None:
        self._cluster.kill_broker(CONTROLLER)
        super().inject()

    def heal(self) -> None:
        self._cluster.start_broker(CONTROLLER)
        for broker, pause in zip(self.brokers, self._pauses, strict=True):
            self._cluster.start_broker(broker)
            time.sleep(pause)
        self._wait_ready(self._cluster, self.brokers)


class LastReplica(Harm):
    """Brokers die one after another; each time the rest goes on alone for a while.

    Partitions with all replicas among them have a last replica then.
    """

    def __init__(
        self,
        world: World,
        order: Sequence[int],
        alone_seconds: float,
        hold_seconds: float,
    ) -> None:
        super().__init__(world, order, hold_seconds)
        self._alone_seconds = alone_seconds

    @property
    def detail(self) -> str:
        order = ", then ".join(map(str, self.brokers))
        return f"brokers {order}, {self._alone_seconds:.1f} s alone"

    def inject(self) -> None:
        *earlier, last = self.brokers
        for number, broker in enumerate(earlier, 1):
            self._kill(broker)
            self._wait_out_of_sync(self.brokers[:number])
        time.sleep(self._alone_seconds)
        self._stop_last(last)

    def _stop_last(self, broker: int) -> None:
        self._kill(broker)


class UncleanElection(LastReplica):
    """The first one to die comes back first, and leads what it lacks records of."""

    name = "unclean election"

    def heal(self) -> None:
        first, *others = self.brokers
        self._start(self._cluster, [first])
        self._wait_led_without(others)
        self._start(self._cluster, others)


class LastReplicaDamaged(LastReplica):
    """The last replica comes back first, without the end of its logs or without any log."""

    def __init__(
        self,
        world: World,
        order: Sequence[int],
        alone_seconds: float,
        hold_seconds: float,
        cut: random.Random | None,
    ) -> None:
        super().__init__(world, order, alone_seconds, hold_seconds)
        self._cut_by = cut
        self.name = "last replica wiped" if cut is None else "last replica cut"  # type: ignore[misc]

    def inject(self) -> None:
        super().inject()
        last = self.brokers[-1]
        folder, places = self._cluster.log_directory(last), self._world.places(last)
        if self._cut_by is None:
            wipe_logs(folder, places)
        else:
            cut_logs(folder, places, MOST_RECORDS, self._cut_by)

    def heal(self) -> None:
        *others, last = self.brokers
        self._start(self._cluster, [last])
        self._start(self._cluster, others)


class ZombieLeader(LastReplica):
    """The last replica is paused until another one leads, and goes on with what it knew."""

    name = "zombie leader"

    def _stop_last(self, broker: int) -> None:
        self.harmed_at.append(time.time())
        self._cluster.pause_broker(broker)

    def heal(self) -> None:
        *others, last = self.brokers
        for broker in others:
            self._cluster.start_broker(broker)
        self._wait_led_without([last])
        # It may acknowledge what waits in its sockets before it learns that it is deposed.
        self.harmed_at.append(time.time())
        self._cluster.resume_broker(last)
        self._wait_ready(self._cluster, self.brokers)


class DiskLoss(Harm):
    """A broker dies and comes back with an empty disk."""

    name = "disk loss"

    def inject(self) -> None:
        for broker in self.brokers:
            self._kill(broker)
            wipe_logs(self._cluster.log_directory(broker), self._world.places(broker))

"""Harmful faults of a local cluster: crashes, unclean elections, lost page caches, zombies, disks.

Each notes in `harmed_at` the moments before what may lose records: nothing is lost between two of
them. Random choices come with the arguments, so a seed repeats them.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.chaos.disk import cut_logs, wipe_logs
from tidemark_lab.brokers.broker_socket import fetch_metadata
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.faults.node_faults import Fault

# What an unflushed page cache holds here.
MOST_RECORDS: Final = 60
_METADATA_SECONDS: Final = 1.0


class World(NamedTuple):
    """A cluster, the replicas of its partitions, and the topics with unclean leader election."""

    cluster: LocalCluster
    replicas: Mapping[Place, Sequence[int]]
    unclean_topics: frozenset[str]

    def places(self, broker: int) -> list[Place]:
        return [place for place, brokers in self.replicas.items() if broker in brokers]

    def folder(self, broker: int, place: Place) -> Path:
        return self.cluster.log_directory(broker) / f"{place[0]}-{place[1]}"


class Harm(Fault):
    """A fault that may lose records."""

    deadline_seconds = 90.0

    def __init__(self, world: World, brokers: Sequence[int]) -> None:
        self._world, self._cluster = world, world.cluster
        self.brokers = tuple(brokers)
        self.harmed_at: list[float] = []

    def _mark(self) -> None:
        self.harmed_at.append(time.time())

    def _kill(self, broker: int) -> None:
        self._mark()
        self._cluster.kill_broker(broker)

    def _start(self, *brokers: int) -> None:
        for broker in brokers:
            self._cluster.start_broker(broker)
        self._wait_ready(brokers)

    def _wait_ready(self, brokers: Sequence[int]) -> None:
        for broker in brokers:
            is_ready = functools.partial(self._cluster.is_ready, broker)
            self._wait(is_ready, f"broker {broker} is ready")

    def _partitions(self, asked: int) -> dict[Place, Any]:
        """Every partition as one broker sees it; empty where it does not answer."""
        topics = sorted({topic for topic, _ in self._world.replicas})
        try:
            found = fetch_metadata(self._cluster.address(asked), topics, _METADATA_SECONDS)
        except OSError:
            return {}
        return {(t.name, p.partition_index): p for t in found.topics for p in t.partitions}

    def _wait_all(self, asked: int, condition: Callable[[Place, Any], bool], what: str) -> None:
        """Waits until all partitions that a broker sees meet the condition."""

        def met() -> bool:
            found = self._partitions(asked)
            return bool(found) and all(condition(place, p) for place, p in found.items())

        self._wait(met, what)

    def _wait_out_of_sync(self, asked: int, gone: Sequence[int]) -> None:
        self._wait_all(
            asked,
            lambda _, p: not {*p.isr_nodes} & {*gone} or {*p.isr_nodes} <= {*gone},
            f"no leader has {gone} in sync",
        )

    def _wait_led_without(self, asked: int, gone: Sequence[int]) -> None:
        self._wait_all(
            asked,
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
        super().__init__(world, brokers)
        self.hold_seconds, self._cut_by = hold_seconds, cut

    @property
    def detail(self) -> str:
        return super().detail + ("" if self._cut_by is None else ", page cache lost")

    def inject(self) -> None:
        for broker in self.brokers:
            self._kill(broker)
        if self._cut_by is not None:
            for broker in self.brokers:
                self._cut(broker, self._cut_by)

    def _cut(self, broker: int, chance: random.Random) -> None:
        folder = self._cluster.log_directory(broker)
        cut_logs(folder, self._world.places(broker), MOST_RECORDS, chance)

    def heal(self) -> None:
        self._start(*self.brokers)


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
        self._wait_ready(self.brokers)


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
        super().__init__(world, order)
        self._alone_seconds, self.hold_seconds = alone_seconds, hold_seconds

    @property
    def detail(self) -> str:
        order = ", then ".join(map(str, self.brokers))
        return f"brokers {order}, {self._alone_seconds:.1f} s alone"

    def _kill_all_but_last(self) -> None:
        *earlier, last = self.brokers
        for number, broker in enumerate(earlier, 1):
            self._kill(broker)
            self._wait_out_of_sync(last, self.brokers[:number])
        time.sleep(self._alone_seconds)

    def inject(self) -> None:
        self._kill_all_but_last()
        self._stop_last(self.brokers[-1])

    def _stop_last(self, broker: int) -> None:
        self._kill(broker)


class UncleanElection(LastReplica):
    """The first one to die comes back first, and leads what it lacks records of."""

    name = "unclean election"

    def heal(self) -> None:
        first, *others = self.brokers
        self._start(first)
        self._wait_led_without(first, others)
        self._start(*others)


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
        self._start(last)
        self._start(*others)


class ZombieLeader(LastReplica):
    """The last replica is paused until another one leads, and goes on with what it knew."""

    name = "zombie leader"

    def _stop_last(self, broker: int) -> None:
        self._mark()
        self._cluster.pause_broker(broker)

    def heal(self) -> None:
        *others, last = self.brokers
        for broker in others:
            self._cluster.start_broker(broker)
        asked = next(broker for broker in (*others, *BROKERS) if broker != last)
        self._wait_led_without(asked, [last])
        # It may acknowledge what waits in its sockets before it learns that it is deposed.
        self._mark()
        self._cluster.resume_broker(last)
        self._wait_ready(self.brokers)


class DiskLoss(Harm):
    """A broker dies and comes back with an empty disk."""

    name = "disk loss"

    def inject(self) -> None:
        for broker in self.brokers:
            self._kill(broker)
            wipe_logs(self._cluster.log_directory(broker), self._world.places(broker))

    def heal(self) -> None:
        self._start(*self.brokers)

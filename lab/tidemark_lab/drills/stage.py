"""The running parts of a drill, and what its steps do with them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from tidemark.core.errors import ClusterError
from tidemark.core.identity import alert_name
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.brokers.link import Link
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.probe import Probe
from tidemark_lab.brokers.replica_logs import LogReader, ReplicaOnDisk, read_disks, read_replicas
from tidemark_lab.brokers.wait import comes_true, wait_until
from tidemark_lab.drills.pipeline import Pipeline
from tidemark_lab.faults.disk_faults import SmallDisk
from tidemark_lab.faults.fault import Fault
from tidemark_lab.judge.expected import FirstSeen, Mark, ReceivedAlert, named_broker, open_alerts
from tidemark_lab.judge.truth import Removed, Replicas, Truth, establish
from tidemark_lab.judge.verdict import Shown

TOPIC: Final = "orders"
_SETTLE_SECONDS: Final = 30.0


class Product(Protocol):
    """Tidemark as it watches the brokers."""

    def check(self) -> None:
        """Raises TidemarkError where a part of it has ended."""

    def passes(self) -> int:
        """The number of passes that were judged."""

    def alerts(self) -> list[ReceivedAlert]:
        """Every transition so far, in order."""


class Stage:
    """A cluster under load, watched by the product. `places`: the partitions of the drill."""

    def __init__(
        self,
        cluster: LocalCluster,
        load: LoadProducer,
        product: Product,
        places: Sequence[Place],
        link: Link | None = None,
        disk: SmallDisk | None = None,
        probe: Probe | None = None,
        topic: str = TOPIC,
    ) -> None:
        self.cluster, self.load, self.product = cluster, load, product
        self.places, self.link, self.disk, self.probe = list(places), link, disk, probe
        # The one that the conditions of steps are about.
        self.topic = topic
        self.marks: dict[str, Mark] = {}
        # What `tidemark audit` found; None: it was not run.
        self.differences: int | None = None
        # What steps compared on the brokers: name, whether it held, text.
        self.shown: list[Shown] = []
        self._faults: dict[str, Fault] = {}
        self._logs = LogReader()

    @property
    def topics(self) -> list[str]:
        return sorted({topic for topic, _ in self.places})

    def show(self, name: str, text: str, *, holds: bool) -> None:
        """Notes what a step compared; it becomes a check of the drill."""
        self.shown.append(Shown(name, holds, text))

    @property
    def first_seen(self) -> FirstSeen:
        """When the independent probe first saw a condition."""
        return (lambda *_: None) if self.probe is None else self.probe.first

    @property
    def pipeline(self) -> Pipeline:
        """The product, where it runs in this process."""
        if not isinstance(self.product, Pipeline):
            raise ClusterError("the drill's product runs in processes of its own.")
        return self.product

    def mark(self, key: str, name: str = "", detail: str = "") -> None:
        """Notes that something is done now, from which alerts may be counted."""
        self.marks[key] = Mark(key, name, detail, time.time())

    def inject(self, key: str, fault: Fault) -> None:
        self._faults[key] = fault
        self.mark(key, fault.name, fault.detail)
        fault.check = self.product.check
        fault.inject()
        # A fault may choose its broker as it is injected.
        self.marks[key] = self.marks[key]._replace(detail=fault.detail)

    def heal(self, key: str) -> None:
        fault = self._faults.pop(key)
        self.marks[key] = self.marks[key]._replace(healed_at=time.time())
        fault.heal()

    def heal_all(self) -> None:
        """What a step that failed left behind; the newest first."""
        for key in reversed(list(self._faults)):
            with contextlib.suppress(ClusterError):
                self.heal(key)

    def wait(self, condition: Callable[[Stage], bool], seconds: float, what: str) -> None:
        """Raises ClusterError when the condition does not hold within this time."""
        wait_until(partial(condition, self), seconds, what, check=self.product.check)

    def reaches(self, condition: Callable[[Stage], bool], seconds: float) -> bool:
        """Whether the condition holds within this time; returns as soon as it does."""
        return comes_true(partial(condition, self), seconds, check=self.product.check)

    def pause(self, seconds: float) -> None:
        """Goes on with the load for a while."""
        comes_true(lambda: False, seconds, check=self.product.check)

    def pass_over(self, passes: int) -> None:
        """Waits until so many more passes were judged."""
        wanted = self.product.passes() + passes
        self.wait(lambda _: self.product.passes() >= wanted, 60.0, f"{passes} passes are judged")

    def partitions(self) -> dict[int, Any]:
        """By number, what the brokers that answer say of the partitions of the topic."""
        found = self.cluster.partitions([self.topic])
        return {number: partition for (_, number), partition in found.items()}

    def leaders(self) -> dict[int, int]:
        """Partition -> leader; -1: there is none."""
        return {number: found.leader_id for number, found in self.partitions().items()}

    def replicas(self) -> Replicas:
        """What the disk of every broker holds."""
        return read_disks(self.cluster, self.places, self._logs)

    def truth(
        self, removed: Callable[[Stage], Removed] = lambda _: Removed(), after_passes: int = 0
    ) -> Truth:
        """Ends the load, waits for equal logs and some passes, and reads every log."""
        self.load.stop()
        self.reaches(lambda stage: stage.is_settled(), _SETTLE_SECONDS)
        if after_passes:
            self.pass_over(after_passes)
        leaders, gone = self.all_leaders(), removed(self)
        return establish(self.load.acknowledged(), self.replicas(), leaders, gone)

    def all_leaders(self) -> dict[Place, int]:
        """Of every partition of the drill; -1: there is none."""
        found = self.cluster.partitions(self.topics)
        return {place: partition.leader_id for place, partition in found.items()}

    def on_disk(self) -> dict[tuple[int, Place], ReplicaOnDisk]:
        """By broker and partition, where the logs of the running brokers end."""
        return {
            (broker, place): replica
            for broker in filter(self.cluster.is_running, BROKERS)
            for place, replica in read_replicas(
                self.cluster.log_directory(broker), self.places
            ).items()
        }

    def is_settled(self, *, committed: bool = False) -> bool:
        """Whether the logs of every running replica end at one offset.

        `committed`: which is their high watermark, too, by the checkpoints.
        """
        ends: dict[Place, set[int | None]] = {}
        for (_, place), replica in self.on_disk().items():
            ends.setdefault(place, set()).update(replica if committed else replica[:1])
        return all(len(found) == 1 for found in ends.values())

    def firing(
        self, detector: str, broker: int | None = None, since: float = 0.0
    ) -> set[Place | None]:
        """Where an alert of the topic or of a broker has fired since a time.

        None for one without a partition.
        """
        name = alert_name(detector)
        return {
            (labels["topic"], int(labels["partition"])) if "partition" in labels else None
            for alert, received_at in self.product.alerts()
            if (labels := alert.labels)["alertname"] == name
            and alert.state == "firing"
            and labels.get("topic", self.topic) == self.topic
            and received_at >= since
            and broker in (None, named_broker(alert))
        }

    def open_alerts(self) -> set[str]:
        return open_alerts(self.product.alerts())

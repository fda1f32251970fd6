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
from tidemark_lab.brokers.replica_logs import LogReader, log_folder, read_replicas
from tidemark_lab.brokers.wait import comes_true, wait_until
from tidemark_lab.drills.pipeline import Pipeline
from tidemark_lab.faults.disk_faults import SmallDisk
from tidemark_lab.faults.fault import Fault
from tidemark_lab.judge.expected import Mark, ReceivedAlert, open_alerts
from tidemark_lab.judge.truth import Replicas
from tidemark_lab.judge.verdict import Shown

TOPIC: Final = "orders"


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
    ) -> None:
        self.cluster, self.load, self.product = cluster, load, product
        self.places, self.link, self.disk, self.probe = list(places), link, disk, probe
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
    def pipeline(self) -> Pipeline:
        """The product, where it runs in this process."""
        if not isinstance(self.product, Pipeline):
            raise ClusterError("the drill's product runs in processes of its own.")
        return self.product

    def inject(self, key: str, fault: Fault) -> None:
        self._faults[key] = fault
        self.marks[key] = Mark(key, fault.name, fault.detail, time.time())
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
        """By number, what the brokers that answer say of the partitions of TOPIC."""
        found = self.cluster.partitions([TOPIC])
        return {number: partition for (_, number), partition in found.items()}

    def leaders(self) -> dict[int, int]:
        """Partition -> leader; -1: there is none."""
        return {number: found.leader_id for number, found in self.partitions().items()}

    def replicas(self) -> Replicas:
        """What the disk of every broker holds."""
        return {
            broker: {
                place: self._logs.read(folder)
                for place in self.places
                if (folder := log_folder(self.cluster.log_directory(broker), place)).is_dir()
            }
            for broker in BROKERS
        }

    def is_settled(self) -> bool:
        """Whether the logs of every running replica end at one offset."""
        ends: dict[Place, set[int]] = {}
        for broker in filter(self.cluster.is_running, BROKERS):
            folder = self.cluster.log_directory(broker)
            for place, replica in read_replicas(folder, self.places).items():
                ends.setdefault(place, set()).add(replica.log_end_offset)
        return all(len(found) == 1 for found in ends.values())

    def firing(self, detector: str, broker: int | None = None) -> set[Place | None]:
        """Where an alert has fired so far; None for one without a partition."""
        name = alert_name(detector)
        return {
            (labels["topic"], int(labels["partition"])) if "partition" in labels else None
            for alert, _ in self.product.alerts()
            if (labels := alert.labels)["alertname"] == name
            and alert.state == "firing"
            and (broker is None or labels.get("broker") == str(broker))
        }

    def open_alerts(self) -> set[str]:
        return open_alerts(self.product.alerts())

"""The running parts of a drill, and what its steps do with them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tidemark.core.errors import ClusterError
from tidemark.core.identity import alert_name
from tidemark_lab.brokers.broker_socket import fetch_metadata
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.brokers.link import Link
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.drills.pipeline import Pipeline
from tidemark_lab.faults.disk_faults import SmallDisk
from tidemark_lab.faults.node_faults import Fault

TOPIC: Final = "orders"
_POLL_SECONDS: Final = 0.1


class Mark(NamedTuple):
    """A fault that was injected, and when: Unix seconds. `healed_at`: None while it lasts."""

    key: str
    name: str
    detail: str
    at: float
    healed_at: float | None = None


class Shown(NamedTuple):
    """A property of the brokers that a step compared."""

    name: str
    holds: bool
    text: str


class Stage:
    """A cluster under load, watched by the product. `places`: the partitions of the drill."""

    def __init__(
        self,
        cluster: LocalCluster,
        load: LoadProducer,
        pipeline: Pipeline,
        places: Sequence[Place],
        link: Link | None = None,
        disk: SmallDisk | None = None,
    ) -> None:
        self.cluster, self.load, self.pipeline = cluster, load, pipeline
        self.places, self.link, self.disk = list(places), link, disk
        self.marks: dict[str, Mark] = {}
        # What `tidemark audit` found; None: it was not run.
        self.differences: int | None = None
        # What steps compared on the brokers: name, whether it held, text.
        self.shown: list[Shown] = []
        self._faults: dict[str, Fault] = {}

    def show(self, name: str, text: str, *, holds: bool) -> None:
        """Notes what a step compared; it becomes a check of the drill."""
        self.shown.append(Shown(name, holds, text))

    def inject(self, key: str, fault: Fault) -> None:
        self._faults[key] = fault
        self.marks[key] = Mark(key, fault.name, fault.detail, time.time())
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
        if not self.reaches(condition, seconds):
            raise ClusterError(f"{what}: not within {seconds:.0f} s.")

    def reaches(self, condition: Callable[[Stage], bool], seconds: float) -> bool:
        """Whether the condition holds within this time; returns as soon as it does."""
        deadline = time.monotonic() + seconds
        while not condition(self):
            self.pipeline.check()
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def pause(self, seconds: float) -> None:
        """Goes on with the load for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.pipeline.check()
            time.sleep(min(_POLL_SECONDS, max(0.0, until - time.monotonic())))

    def pass_over(self, passes: int) -> None:
        """Waits until so many more passes were judged."""
        wanted = self.pipeline.passes() + passes
        self.wait(lambda _: self.pipeline.passes() >= wanted, 60.0, f"{passes} passes are judged")

    def partitions(self) -> dict[int, Any]:
        """By number, the MetadataResponsePartition of the newest epoch that a broker answers with.

        A paused broker does not answer, and one that is cut off answers with an old epoch.
        """
        found: dict[int, Any] = {}
        for broker in BROKERS:
            if not self.cluster.is_running(broker):
                continue
            with contextlib.suppress(OSError):
                topic = fetch_metadata(self.cluster.address(broker), [TOPIC], 1.0).topics[0]
                for partition in topic.partitions:
                    known = found.setdefault(partition.partition_index, partition)
                    if _epoch(partition) > _epoch(known):
                        found[partition.partition_index] = partition
        return found

    def leaders(self) -> dict[int, int]:
        """Partition -> leader; -1: there is none."""
        return {number: found.leader_id for number, found in self.partitions().items()}

    def firing(self, detector: str, broker: int | None = None) -> set[Place | None]:
        """Where an alert has fired so far; None for one without a partition."""
        name = alert_name(detector)
        return {
            (labels["topic"], int(labels["partition"])) if "partition" in labels else None
            for alert, _ in self.pipeline.alerts()
            if (labels := alert.labels)["alertname"] == name
            and alert.state == "firing"
            and (broker is None or labels.get("broker") == str(broker))
        }

    def open_alerts(self) -> set[str]:
        """Names of the alerts whose newest transition is not their end."""
        newest = {alert.fingerprint: alert for alert, _ in self.pipeline.alerts()}
        return {a.labels["alertname"] for a in newest.values() if a.state != "resolved"}


def _epoch(partition: Any) -> int:
    """Metadata has leader epochs since Kafka 2.1."""
    epoch = getattr(partition, "leader_epoch", None)
    return -1 if epoch is None else int(epoch)

"""A real Kafka cluster on 127.0.0.1: controllers or ZooKeeper, and three brokers, as child
processes.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError, KafkaError

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.jvm.java import JavaHome, find_java
from tidemark_lab.brokers.broker_socket import fetch_metadata
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.layout import CONTROLLER, Layout, template
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.process import ChildProcess, check_running
from tidemark_lab.brokers.topic_creation import create_topic
from tidemark_lab.brokers.versions import kafka_version
from tidemark_lab.brokers.wait import comes_true, wait_until

BROKERS: Final = (1, 2, 3)
_START_SECONDS: Final = 180.0
_STOP_SECONDS: Final = 30.0
_TOPIC_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 5.0

# A topic and the number of a partition.
Place = tuple[str, int]
_T = TypeVar("_T")


class LocalCluster:
    """Brokers 1, 2, 3 and node 100, each of which can be stopped, killed, paused and started again.

    Node 100 is the controller, or ZooKeeper for the `version`s of Kafka that need it.

    With several `controllers` the others are 101, 102, …; the methods for brokers take them too.
    `overrides` are server properties of every node, `broker_overrides` of one, `jvm_flags` more
    flags of one node's JVM, `listeners` another listener of a node with KRaft, `controller_hosts`
    the address at which a node finds the controllers (127.0.0.1). `fetch_hosts`: the address at
    which the others fetch from a broker; `told_addresses`: the broker whose address a broker gives
    to clients for its own, None for one where nothing listens. A temporary `directory` is
    removed at the end, a given one is kept. A context manager: starts every process at entry and
    kills every process at exit.
    """

    def __init__(
        self,
        directory: Path | None = None,
        overrides: Mapping[str, str] | None = None,
        broker_overrides: Mapping[int, Mapping[str, str]] | None = None,
        jars: str | Path | None = None,
        java: JavaHome | None = None,
        jvm_flags: Mapping[int, Sequence[str]] | None = None,
        controllers: int = 1,
        version: str = KAFKA_VERSION,
        listeners: Mapping[int, str] | None = None,
        controller_hosts: Mapping[int, str] | None = None,
        fetch_hosts: Mapping[int, str] | None = None,
        told_addresses: Mapping[int, int | None] | None = None,
    ) -> None:
        self._controllers = tuple(range(CONTROLLER, CONTROLLER + controllers))
        self._java = java or find_java()
        self._version = kafka_version(version)
        self._jars = self._version.jars(jars, self._java)
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="tidemark-cluster-"))
        self._overrides, self._broker_overrides = overrides or {}, broker_overrides or {}
        self._jvm_flags, self._listeners = jvm_flags or {}, listeners or {}
        self._controller_hosts, self._fetch_hosts = controller_hosts or {}, fetch_hosts or {}
        self._told_addresses = told_addresses or {}
        self._children: dict[int, ChildProcess] = {}
        self._layout = self._new_layout()

    def _new_layout(self) -> Layout:
        nodes = (*self._controllers, *BROKERS)
        found = free_ports(len(nodes) + len(BROKERS) + 1)
        ports = dict(zip(nodes, found, strict=False))
        unused = found[-1]
        apart = bool(self._fetch_hosts or self._told_addresses)
        return self._version.layout(
            directory=self.directory.absolute(),
            ports=ports,
            overrides=self._overrides,
            broker_overrides=self._broker_overrides,
            jvm_flags=self._jvm_flags,
            listeners=self._listeners,
            version=self._version.number,
            controller_hosts=self._controller_hosts,
            fetch_ports=dict(zip(BROKERS, found[len(nodes) :], strict=False)) if apart else {},
            fetch_hosts=self._fetch_hosts,
            told_addresses={
                broker: f"127.0.0.1:{unused if other is None else ports[other]}"
                for broker, other in self._told_addresses.items()
            },
        )

    @property
    def bootstrap_servers(self) -> list[str]:
        return [f"127.0.0.1:{self._layout.ports[broker]}" for broker in BROKERS]

    @property
    def controllers(self) -> list[str]:
        """The addresses of the controllers' listeners."""
        return [f"127.0.0.1:{self._layout.ports[node]}" for node in self._controllers]

    @property
    def voters(self) -> tuple[int, ...]:
        """The controllers' numbers."""
        return self._controllers

    @property
    def controller_address(self) -> tuple[str, int]:
        """The listener of the first controller."""
        return self.address(CONTROLLER)

    def address(self, broker: int) -> tuple[str, int]:
        return "127.0.0.1", self._layout.ports[broker]

    def fetch_address(self, broker: int) -> tuple[str, int]:
        """Where others fetch from it, where that is a listener of its own."""
        return "127.0.0.1", self._layout.fetch_ports[broker]

    def log_directory(self, broker: int) -> Path:
        """The first folder of a broker's log.dirs."""
        return self._layout.log_dirs(broker)[0]

    def is_running(self, node: int) -> bool:
        return self._children[node].is_running()

    def start(self) -> None:
        """Formats, starts all nodes and returns when every broker is ready.

        Tries once more with other ports when one was taken meanwhile.
        """
        try:
            self._start()
        except TidemarkError:
            taken = any(
                "Address already in use" in child.log_tail(60) for child in self._children.values()
            )
            self._kill_all()
            if not taken:
                raise
            self._layout = self._new_layout()
            self._start()

    def _start(self) -> None:
        self._layout.prepare(self._java, self._jars)
        for node in (*self._controllers, *BROKERS):
            self._spawn(node)
        self._wait_ready()

    def _spawn(self, node: int) -> None:
        command = self._layout.command(node, self._java, self._jars)
        name, log = self._layout.node_name(node), self._layout.log(node)
        self._children[node] = ChildProcess(name, command, log)

    def _wait_ready(self) -> None:
        """Raises ClusterError with the end of a log when a node fails or is too slow."""
        for broker in BROKERS:
            child = self._children[broker]
            wait_until(
                partial(self.is_ready, broker),
                _START_SECONDS,
                f"{child.name} is ready",
                seen=child.log_tail,
                check=lambda: check_running(self._children.values()),
            )

    def _running_brokers(self) -> set[int]:
        return {broker for broker in BROKERS if self.is_running(broker)}

    def is_ready(self, broker: int) -> bool:
        """Whether a broker serves and knows every running broker."""
        with contextlib.suppress(OSError):
            known = {b.node_id for b in fetch_metadata(self.address(broker)).brokers}
            return known >= self._running_brokers()
        return False

    def start_broker(self, broker: int) -> None:
        """Starts it again with its port and data, without waiting."""
        self._children[broker].kill()
        self._spawn(broker)

    def start_in_place_of(self, broker: int, number: int) -> None:
        """A new broker of the cluster with this number, at the address of one that is down."""
        layout = self._layout
        ports = {**layout.ports, number: layout.ports[broker]}
        self._layout = replace(layout, ports=ports)
        meta = (self.log_directory(broker) / "meta.properties").read_text(encoding="utf-8")
        (cluster,) = (
            line.partition("=")[2] for line in meta.splitlines() if line.startswith("cluster.id=")
        )
        self._layout.write_node(
            number, cluster, template(self._java, self._jars, self._version.number)
        )
        self._spawn(number)

    def stop_broker(self, broker: int) -> None:
        """SIGTERM: a controlled shutdown."""
        self._children[broker].stop(_STOP_SECONDS)

    def kill_broker(self, broker: int) -> None:
        """SIGKILL: a crash."""
        self._children[broker].kill()

    def pause_broker(self, broker: int) -> None:
        """SIGSTOP: connections stay open, nothing is answered."""
        self._children[broker].pause()

    def resume_broker(self, broker: int) -> None:
        self._children[broker].resume()

    def create_topic(
        self,
        name: str,
        assignments: Mapping[int, Sequence[int]],
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a topic with these brokers for each partition.

        Returns when every broker knows its leaders. Raises ClusterError.
        """
        addresses = {broker: self.address(broker) for broker in self._running_brokers()}
        create_topic(addresses, name, assignments, configs or {}, _TOPIC_SECONDS)
        wait_until(
            lambda: self.all_partitions(name, lambda partition: partition.leader_id >= 0),
            _TOPIC_SECONDS,
            f"the topic {name} has leaders; logs: {self.directory}",
        )

    def elect_preferred_leaders(self, topics: Mapping[str, Sequence[int]]) -> None:
        """Returns leadership to the first broker of each assignment."""
        wanted = {topic: list(partitions) for topic, partitions in topics.items()}
        self.administer(lambda admin: admin.elect_leaders(0, wanted), "elect the preferred leaders")

    @property
    def version(self) -> str:
        """Of Kafka."""
        return self._version.number

    def administer(self, act: Callable[[Any], _T], what: str) -> _T:
        """What `act` returns for a KafkaAdminClient. Raises ClusterError: the cluster did not …

        A new client each time: kafka-python's admin client keeps asking a dead controller. Brokers
        list one that was killed until its session ends, and the client may choose that one.
        """
        found: list[_T] = []
        errors: list[KafkaError] = []

        def attempt() -> bool:
            try:
                admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
                try:
                    found.append(act(admin))
                finally:
                    admin.close()
            except KafkaError as error:
                errors[:] = [error]
                return not isinstance(error, KafkaConnectionError)
            return True

        comes_true(attempt, _CONNECT_SECONDS)
        if not found:
            raise ClusterError(f"the local cluster did not {what}: {errors[0]}")
        return found[0]

    def active_controller(self) -> int | None:
        """The controller that leads, as a broker sees it; None where it sees none."""
        try:
            quorum = self.administer(
                lambda admin: admin.describe_metadata_quorum(), "describe its quorum"
            )
        except ClusterError:
            return None
        leader = quorum["topics"][0]["partitions"][0]["leader_id"]
        return int(leader) if leader >= 0 else None

    def has_controller(self) -> bool:
        return self.active_controller() is not None

    def is_whole(self, topics: Iterable[str]) -> bool:
        """Whether every broker serves, and every replica of these topics is in sync."""
        return all(map(self.is_ready, BROKERS)) and all(
            self.all_partitions(topic, _is_whole) for topic in topics
        )

    def all_partitions(self, topic: str, condition: Callable[[Any], bool]) -> bool:
        """Whether every MetadataResponsePartition of `topic`, on each running broker, meets it."""
        return all(
            self._all_partitions(broker, topic, condition) for broker in self._running_brokers()
        )

    def _all_partitions(self, broker: int, topic: str, condition: Callable[[Any], bool]) -> bool:
        with contextlib.suppress(OSError):
            metadata = fetch_metadata(self.address(broker), [topic], timeout_seconds=1.0)
            partitions = metadata.topics[0].partitions
            return bool(partitions) and all(map(condition, partitions))
        return False

    def partitions(self, topics: Sequence[str]) -> dict[Place, Any]:
        """Each MetadataResponsePartition of the newest epoch that a broker answers with.

        A paused broker does not answer, and one that is cut off answers with an old epoch.
        """
        found: dict[Place, Any] = {}
        for broker in self._running_brokers():
            with contextlib.suppress(OSError):
                for topic in fetch_metadata(self.address(broker), [*topics], 1.0).topics:
                    for partition in topic.partitions:
                        place = (topic.name, partition.partition_index)
                        if _epoch(partition) > _epoch(found.get(place)):
                            found[place] = partition
        return found

    def _kill_all(self) -> None:
        for child in self._children.values():
            child.kill()

    def close(self) -> None:
        """Kills every process and removes a temporary directory."""
        self._kill_all()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_whole(partition: Any) -> bool:
    """Whether a MetadataResponsePartition has a leader and all its replicas in sync."""
    in_sync, replicas = set(partition.isr_nodes), set(partition.replica_nodes)
    return bool(partition.leader_id >= 0 and in_sync == replicas)


def _epoch(partition: Any) -> int:
    """-2: there is none. Metadata has leader epochs since Kafka 2.1."""
    epoch = getattr(partition, "leader_epoch", None)
    return -2 if partition is None else -1 if epoch is None else int(epoch)

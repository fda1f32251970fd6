"""A real Kafka 4.1 cluster on 127.0.0.1: one controller and three brokers as child processes."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark.jvm.jars import broker_jars
from tidemark.jvm.java import JavaHome, find_java
from tidemark.local.layout import CONTROLLER, Layout, free_ports, template
from tidemark.local.process import Child
from tidemark.local.wire import metadata_of

BROKERS: Final = (1, 2, 3)
_START_SECONDS: Final = 60.0


class LocalCluster:
    """Brokers 1, 2, 3 and controller 100, each a process that can be stopped, killed, paused and started again.

    `overrides` are server properties of every node, `broker_overrides` of one. A temporary `directory` is removed at
    the end, a given one is kept. As a context manager it starts at entry and ends every process at exit.
    """

    def __init__(
        self,
        directory: Path | None = None,
        overrides: Mapping[str, str] | None = None,
        broker_overrides: Mapping[int, Mapping[str, str]] | None = None,
        jars: str | Path | None = None,
        java: JavaHome | None = None,
    ) -> None:
        self._java = java or find_java()
        self._jars = broker_jars(jars, self._java)
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="tidemark-cluster-"))
        self._overrides, self._broker_overrides = overrides or {}, broker_overrides or {}
        self._children: dict[int, Child] = {}
        self._layout = self._new_layout()

    def _new_layout(self) -> Layout:
        ports = dict(zip((CONTROLLER, *BROKERS), free_ports(1 + len(BROKERS)), strict=True))
        return Layout(self.directory.absolute(), ports, self._overrides, self._broker_overrides)

    @property
    def bootstrap_servers(self) -> list[str]:
        return [f"127.0.0.1:{self._layout.ports[broker]}" for broker in BROKERS]

    def address(self, broker: int) -> tuple[str, int]:
        return "127.0.0.1", self._layout.ports[broker]

    def start(self) -> None:
        """Formats, starts all and returns when every broker is ready. Ports that were taken meanwhile: once more with others."""
        try:
            self._start()
        except TidemarkError:
            taken = any(
                "Address already in use" in child.log_tail(60) for child in self._children.values()
            )
            self.close_processes()
            if not taken:
                raise
            self._layout = self._new_layout()
            self._start()

    def _start(self) -> None:
        self._layout.write(template(self._java, self._jars))
        for node in (CONTROLLER, *BROKERS):
            self._spawn(node)
        self.wait_ready()

    def _spawn(self, node: int) -> None:
        name = "the controller" if node == CONTROLLER else f"broker {node}"
        self._children[node] = Child(
            name, self._layout.command(node, self._java, self._jars), self._layout.log(node)
        )

    def wait_ready(self, seconds: float = _START_SECONDS) -> None:
        """Returns when each started broker serves and knows all started brokers. Raises ClusterError with a log's end."""
        wanted = {
            node for node, child in self._children.items() if node != CONTROLLER and child.running()
        }
        deadline = time.monotonic() + seconds
        for broker in sorted(wanted):
            while not self._knows(broker, wanted):
                child = next(
                    (c for c in self._children.values() if not c.running()), self._children[broker]
                )
                if not child.running() or time.monotonic() > deadline:
                    state = (
                        "did not become ready"
                        if child.running()
                        else f"ended with {child.returncode()} at its start"
                    )
                    raise ClusterError(
                        f"{child.name} {state}; the end of {child.log}:\n{child.log_tail()}"
                    )
                time.sleep(0.1)

    def ready(self, broker: int) -> bool:
        """Whether a broker serves and knows every broker that runs."""
        return self._knows(
            broker,
            {
                node
                for node, child in self._children.items()
                if node != CONTROLLER and child.running()
            },
        )

    def _knows(self, broker: int, wanted: set[int]) -> bool:
        with contextlib.suppress(OSError):
            return wanted <= {
                b.node_id for b in metadata_of(self.address(broker), timeout_seconds=2.0).brokers
            }
        return False

    def start_broker(self, broker: int) -> None:
        """Starts it again on its old port and data, without waiting."""
        self._children[broker].kill()
        self._spawn(broker)

    def stop_broker(self, broker: int, grace_seconds: float = 30.0) -> bool:
        """SIGTERM: controlled shutdown. False when it had to be killed."""
        return self._children[broker].stop(grace_seconds)

    def kill_broker(self, broker: int) -> None:
        """SIGKILL: a crash."""
        self._children[broker].kill()

    def pause_broker(self, broker: int) -> None:
        """SIGSTOP: connections stay open, nothing is answered."""
        self._children[broker].pause()

    def resume_broker(self, broker: int) -> None:
        self._children[broker].resume()

    def running(self, broker: int) -> bool:
        return self._children[broker].running()

    def create_topic(
        self,
        name: str,
        assignments: Mapping[int, Sequence[int]],
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a topic with the given brokers for each partition; returns when every broker knows its leaders."""
        topic = NewTopic(
            name,
            replica_assignments={p: list(b) for p, b in assignments.items()},
            topic_configs=dict(configs or {}),
        )
        self._administer(lambda admin: admin.create_topics([topic]), f"create the topic {name}")
        self.wait_partitions(name, lambda partition: partition.leader_id >= 0)

    def elect_preferred_leaders(self, topics: Mapping[str, Sequence[int]]) -> None:
        """Hands leadership back to the first broker of each assignment."""
        wanted = {topic: list(partitions) for topic, partitions in topics.items()}
        self._administer(
            lambda admin: admin.elect_leaders(0, wanted), "elect the preferred leaders"
        )

    def _administer(self, act: Callable[[Any], object], what: str) -> None:
        """A client of its own for each act: kafka-python's admin client goes on asking a controller that is gone."""
        try:
            admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
            try:
                act(admin)
            finally:
                admin.close()
        except KafkaError as error:
            raise ClusterError(f"the local cluster did not {what}: {error}") from None

    def wait_partitions(
        self, topic: str, wanted: Callable[[Any], bool], seconds: float = 30.0
    ) -> None:
        """Returns when every running broker's metadata shows each partition of `topic` as `wanted`. Raises ClusterError."""
        deadline = time.monotonic() + seconds
        while not self.shows(topic, wanted):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"the topic {topic} did not reach the wanted state within {seconds:.0f} s; logs: {self.directory}."
                )
            time.sleep(0.1)

    def shows(self, topic: str, wanted: Callable[[Any], bool]) -> bool:
        """Whether each running broker's metadata shows each partition of `topic` (MetadataResponsePartition) as `wanted`."""
        return all(
            self._shows(broker, topic, wanted)
            for broker in BROKERS
            if self._children[broker].running()
        )

    def _shows(self, broker: int, topic: str, wanted: Callable[[Any], bool]) -> bool:
        with contextlib.suppress(OSError):
            partitions = (
                metadata_of(self.address(broker), [topic], timeout_seconds=1.0).topics[0].partitions
            )
            return bool(partitions) and all(wanted(partition) for partition in partitions)
        return False

    def close_processes(self) -> None:
        for child in self._children.values():
            child.kill()

    def close(self) -> None:
        """Kills every process and removes a temporary directory."""
        self.close_processes()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

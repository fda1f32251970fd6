"""The files of a local cluster with ZooKeeper: one ZooKeeper node beside the brokers.

A broker that is killed stays registered until its session ends: until then the same broker cannot
start again (Kafka before 1.1).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemark.jvm.java import JavaHome
from tidemark_lab.brokers.layout import CONTROLLER, SMALL, Layout

# In the place of the controller.
ZOOKEEPER: Final = CONTROLLER
# Old versions reach into packages that Java 17 closes.
_OPEN_PACKAGES: Final = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.util", "java.net", "java.nio", "sun.nio.ch")
)


@dataclass(frozen=True)
class ZooKeeperLayout(Layout):
    """`ports[ZOOKEEPER]` is ZooKeeper's client port."""

    def node_name(self, node: int) -> str:
        return "ZooKeeper" if node == ZOOKEEPER else f"broker {node}"

    def properties(self, node: int) -> str:
        """zookeeper.properties of ZooKeeper, server.properties of a broker."""
        lines = self._zookeeper() if node == ZOOKEEPER else self._broker(node)
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def _zookeeper(self) -> dict[str, str]:
        return {
            "dataDir": str(self.data(ZOOKEEPER)),
            "clientPort": str(self.ports[ZOOKEEPER]),
            "clientPortAddress": "127.0.0.1",
            "tickTime": "500",
            "maxSessionTimeout": "60000",
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
        }

    def _broker(self, node: int) -> dict[str, str]:
        return {
            "broker.id": str(node),
            "zookeeper.connect": f"127.0.0.1:{self.ports[ZOOKEEPER]}",
            # Else the session's, which drills shorten: a busy machine starts ZooKeeper later.
            "zookeeper.connection.timeout.ms": "60000",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.ports[node]}",
            "log.dirs": str(self.data(node)),
            # The default before 1.0 is false.
            "delete.topic.enable": "true",
            # A broker ignores options that its version does not know.
            **SMALL,
            **self.overrides,
            **self.broker_overrides.get(node, {}),
        }

    def prepare(self, java: JavaHome, jars: Sequence[Path]) -> None:  # noqa: ARG002
        """Brokers format their own folders."""
        self.write_logging()
        for node in self.ports:
            self.properties_file(node).write_text(self.properties(node), encoding="utf-8")
            shutil.rmtree(self.data(node), ignore_errors=True)
            self.data(node).mkdir()

    def command(self, node: int, java: JavaHome, jars: Sequence[Path]) -> list[str]:
        main, flags = "kafka.Kafka", (*_OPEN_PACKAGES, *self.jvm_flags.get(node, ()))
        if node == ZOOKEEPER:
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            # It registers log4j's MBeans, which reload4j does not have.
            flags += ("-Dzookeeper.jmx.log4j.disable=true",)
        return [*self.java(java, jars, *flags), main, str(self.properties_file(node))]

"""The files of a local KRaft cluster: server properties, formatted data directories, logging.

A data directory is formatted by copying two files of a template that Kafka's own StorageTool made once; only
meta.properties names the cluster and the node. That saves a Java start per node.
"""

from __future__ import annotations

import base64
import os
import random
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidemark.core.errors import TidemarkError
from tidemark.jvm.cache import cache_dir, locked
from tidemark.jvm.jars import KAFKA_VERSION
from tidemark.jvm.java import JavaHome

CONTROLLER: Final = 100
JVM_FLAGS: Final = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss512k",
)
# Small and quick, but nothing that changes how replication behaves: those settings keep Kafka's defaults.
_QUICK: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
    "log.index.size.max.bytes": "1048576",
    "log.cleaner.dedupe.buffer.size": "2097153",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.threads": "1",
}
_LOGGING: Final = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""
# Below the range from which Linux takes the ports of outgoing connections: while a broker is down, nobody takes its port.
_PORTS: Final = range(18_000, 32_000)


@dataclass(frozen=True)
class Layout:
    """Where a cluster's nodes keep their things, on which ports, with which settings."""

    directory: Path
    ports: Mapping[int, int]
    overrides: Mapping[str, str] = field(default_factory=dict)
    broker_overrides: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def properties_file(self, node: int) -> Path:
        return self.directory / f"node-{node}.properties"

    def data(self, node: int) -> Path:
        return self.directory / f"data-{node}"

    def log(self, node: int) -> Path:
        return self.directory / f"node-{node}.log"

    def properties(self, node: int) -> str:
        """server.properties of one node."""
        controller = node == CONTROLLER
        listener = "CONTROLLER" if controller else "PLAINTEXT"
        lines = {
            "process.roles": "controller" if controller else "broker",
            "node.id": str(node),
            "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self.ports[CONTROLLER]}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listener}://127.0.0.1:{self.ports[node]}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data(node)),
            **_QUICK,
            **self.overrides,
            **self.broker_overrides.get(node, {}),
        }
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def write(self, template: Path) -> None:
        """Formats every node's data directory for one new cluster and writes all properties."""
        cluster = _uuid()
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        for node in self.ports:
            self.properties_file(node).write_text(self.properties(node), encoding="utf-8")
            shutil.rmtree(self.data(node), ignore_errors=True)
            self.data(node).mkdir()
            shutil.copy(template / "bootstrap.checkpoint", self.data(node))
            meta = f"version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={_uuid()}\n"
            (self.data(node) / "meta.properties").write_text(meta, encoding="utf-8")

    def command(self, node: int, java: JavaHome, jars: Sequence[Path]) -> list[str]:
        classpath = ":".join(map(str, jars))
        logging = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}"
        return [
            str(java.java),
            *JVM_FLAGS,
            logging,
            "-cp",
            classpath,
            "kafka.Kafka",
            str(self.properties_file(node)),
        ]


def template(java: JavaHome, jars: Sequence[Path]) -> Path:
    """A folder with the bootstrap.checkpoint of this Kafka version; made by StorageTool the first time."""
    place = cache_dir("templates") / f"kafka-{KAFKA_VERSION}"
    with locked("template"):
        if not (place / "bootstrap.checkpoint").exists():
            with tempfile.TemporaryDirectory(dir=place.parent) as work:
                layout = Layout(Path(work), {CONTROLLER: 9093, 1: 9092})
                layout.properties_file(1).write_text(layout.properties(1), encoding="utf-8")
                tool = [
                    str(java.java),
                    "-cp",
                    ":".join(map(str, jars)),
                    "kafka.tools.StorageTool",
                    "format",
                    "-t",
                    _uuid(),
                ]
                run = subprocess.run(
                    [*tool, "-c", str(layout.properties_file(1))],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if run.returncode != 0:
                    raise TidemarkError(
                        f"Kafka's StorageTool could not format a directory: {(run.stdout + run.stderr).strip()[-500:]}"
                    )
                place.mkdir(exist_ok=True)
                (layout.data(1) / "bootstrap.checkpoint").replace(place / "bootstrap.checkpoint")
    return place


def free_ports(count: int) -> list[int]:
    """Distinct ports of 127.0.0.1 that nobody listens on now. Raises TidemarkError when none are left."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise TidemarkError(
        f"no {count} free ports between {_PORTS.start} and {_PORTS.stop} on 127.0.0.1."
    )


def _uuid() -> str:
    """A Kafka Uuid: 16 random bytes, base64url without padding; no leading dash, which tools take for an option."""
    while True:
        text = (
            base64.urlsafe_b64encode(uuid.UUID(bytes=os.urandom(16), version=4).bytes)
            .decode()
            .rstrip("=")
        )
        if not text.startswith("-"):
            return text

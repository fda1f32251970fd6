"""The files of a local KRaft cluster: server properties, formatted data directories, logging.

A data directory is formatted by copying what Kafka's own StorageTool wrote once for a node of its
role; only meta.properties names the cluster and the node. That saves a Java start for each node.
Before Kafka 4.4 the template is `bootstrap.checkpoint`; then a controller has a first snapshot of
the metadata log, and a broker nothing.
"""

from __future__ import annotations

import base64
import os
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
from tidemark.jvm.cache import cache_dir, cache_lock
from tidemark.jvm.java import JavaHome
from tidemark_lab.brokers.jars import KAFKA_VERSION

# The first controller. Others follow it: 101, 102.
CONTROLLER: Final = 100
# The controllers' host, where not every node finds them at one address.
CONTROLLER_NAME: Final = "controller"
JVM_FLAGS: Final = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss512k",
)
# Small and fast. Settings that change how replication behaves keep Kafka's defaults.
SMALL: Final = {
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
# For log4j 1.2: Kafka before 4.0.
_LOGGING_BEFORE_4: Final = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %m (%c{1})%n
"""
_LOGGING: Final = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


@dataclass(frozen=True)
class Layout:
    """Paths, ports and settings of a cluster's nodes."""

    directory: Path
    ports: Mapping[int, int]
    overrides: Mapping[str, str] = field(default_factory=dict)
    broker_overrides: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    # More flags of a node's JVM, such as an agent.
    jvm_flags: Mapping[int, Sequence[str]] = field(default_factory=dict)
    # Another listener of a node, such as SASL://127.0.0.1:9094.
    listeners: Mapping[int, str] = field(default_factory=dict)
    version: str = KAFKA_VERSION
    # Node -> the address at which its JVM finds the controllers, where a link can be cut. The
    # others find them at 127.0.0.1. Kafka 3.9 and later.
    controller_hosts: Mapping[int, str] = field(default_factory=dict)
    # Where brokers fetch from each other at listeners of their own: broker -> the port, and the
    # host that it tells the others, where a link can be slowed.
    fetch_ports: Mapping[int, int] = field(default_factory=dict)
    fetch_hosts: Mapping[int, str] = field(default_factory=dict)
    # Broker -> the address that it tells clients in place of its own. It needs `fetch_ports`.
    told_addresses: Mapping[int, str] = field(default_factory=dict)

    def node_name(self, node: int) -> str:
        return f"controller {node}" if node >= CONTROLLER else f"broker {node}"

    def properties_file(self, node: int) -> Path:
        return self.directory / f"node-{node}.properties"

    def data(self, node: int) -> Path:
        return self.directory / f"data-{node}"

    def log_dirs(self, node: int) -> list[Path]:
        """`log.dirs` of the node; the first one holds the metadata log."""
        given = self.broker_overrides.get(node, {}).get("log.dirs")
        return [self.data(node)] if given is None else [Path(name) for name in given.split(",")]

    def log(self, node: int) -> Path:
        return self.directory / f"node-{node}.log"

    def properties(self, node: int) -> str:
        """server.properties of one node."""
        controller = node >= CONTROLLER
        listener = "CONTROLLER" if controller else "PLAINTEXT"
        listeners = [f"{listener}://127.0.0.1:{self.ports[node]}"]
        if node in self.listeners:
            listeners.append(self.listeners[node])
        name = CONTROLLER_NAME if self.controller_hosts else "127.0.0.1"
        advertised = {}
        if controller and self.controller_hosts:
            # Brokers get the controllers' addresses from their answers.
            advertised = {"advertised.listeners": f"CONTROLLER://{name}:{self.ports[node]}"}
        security = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
        if node in self.fetch_ports:
            port = self.fetch_ports[node]
            listeners.append(f"FETCH://127.0.0.1:{port}")
            told = self.told_addresses.get(node, f"127.0.0.1:{self.ports[node]}")
            fetched = f"FETCH://{self.fetch_hosts.get(node, '127.0.0.1')}:{port}"
            advertised = {
                "advertised.listeners": f"PLAINTEXT://{told},{fetched}",
                "inter.broker.listener.name": "FETCH",
            }
            security += ",FETCH:PLAINTEXT"
        lines = {
            "process.roles": _role(node),
            "node.id": str(node),
            "controller.quorum.voters": ",".join(
                f"{voter}@{name}:{port}"
                for voter, port in self.ports.items()
                if voter >= CONTROLLER
            ),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": security,
            "log.dirs": str(self.data(node)),
            **SMALL,
            **self.overrides,
            **advertised,
            **self.broker_overrides.get(node, {}),
        }
        return "".join(f"{key}={value}\n" for key, value in lines.items())

    def prepare(self, java: JavaHome, jars: Sequence[Path]) -> None:
        """Writes all files that the nodes need to start."""
        self.write(template(java, jars, self.version))

    def write_logging(self) -> None:
        """The logging of every version: each reads one of the two files."""
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        (self.directory / "log4j.properties").write_text(_LOGGING_BEFORE_4, encoding="utf-8")

    def write(self, template: Path) -> None:
        """Formats every node's data directory for one new cluster, writes all properties."""
        cluster = _uuid()
        self.write_logging()
        for node in self.ports:
            self.write_node(node, cluster, template)

    def write_node(self, node: int, cluster: str, template: Path) -> None:
        """Formats a node's data directory for the cluster of an id, writes its properties."""
        self.properties_file(node).write_text(self.properties(node), encoding="utf-8")
        for folder in self.log_dirs(node):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            directory = f"node.id={node}\ndirectory.id={_uuid()}\n"
            meta = f"version=1\ncluster.id={cluster}\n{directory}"
            (folder / "meta.properties").write_text(meta, encoding="utf-8")
        role = template / _role(node)
        shutil.copytree(role, self.log_dirs(node)[0], dirs_exist_ok=True)

    def command(self, node: int, java: JavaHome, jars: Sequence[Path]) -> list[str]:
        """The command that runs a node."""
        flags = [*self.jvm_flags.get(node, ())]
        if self.controller_hosts:
            hosts = self.directory / f"node-{node}.hosts"
            address = self.controller_hosts.get(node, "127.0.0.1")
            lines = f"{address} {CONTROLLER_NAME}\n127.0.0.1 localhost {socket.gethostname()}\n"
            hosts.write_text(lines, encoding="utf-8")
            flags.append(f"-Djdk.net.hosts.file={hosts}")
        return [*self.java(java, jars, *flags), "kafka.Kafka", str(self.properties_file(node))]

    def java(self, java: JavaHome, jars: Sequence[Path], *flags: str) -> list[str]:
        """A Java with these jars that logs to its output."""
        logging = (
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            f"-Dlog4j.configuration=file:{self.directory / 'log4j.properties'}",
        )
        return _java_command(java, jars, *JVM_FLAGS, *logging, *flags)


def _java_command(java: JavaHome, jars: Sequence[Path], *flags: str) -> list[str]:
    return [str(java.java), *flags, "-cp", ":".join(map(str, jars))]


def template(java: JavaHome, jars: Sequence[Path], version: str = KAFKA_VERSION) -> Path:
    """What StorageTool of a Kafka version wrote: a folder for each role of a node."""
    folder = cache_dir("templates", f"kafka-{version}")
    with cache_lock("template"):
        for node in (CONTROLLER, 1):
            if not (folder / _role(node)).exists():
                with tempfile.TemporaryDirectory(dir=folder) as work:
                    layout = Layout(Path(work), {CONTROLLER: 9093, 1: 9092})
                    _format(layout, node, java, jars, folder / _role(node))
    return folder


def _role(node: int) -> str:
    return "controller" if node >= CONTROLLER else "broker"


def _format(layout: Layout, node: int, java: JavaHome, jars: Sequence[Path], folder: Path) -> None:
    properties = layout.properties_file(node)
    properties.write_text(layout.properties(node), encoding="utf-8")
    tool = [*_java_command(java, jars), "kafka.tools.StorageTool", "format"]
    run = subprocess.run(
        [*tool, "-t", _uuid(), "-c", properties], capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        output = (run.stdout + run.stderr).strip()[-500:]
        raise TidemarkError(f"Kafka's StorageTool cannot format a directory: {output}")
    (layout.data(node) / "meta.properties").unlink()
    layout.data(node).replace(folder)


def _uuid() -> str:
    """A Kafka Uuid: 16 random bytes, base64url without padding.

    No leading dash: tools take it for an option.
    """
    while True:
        random_bytes = uuid.UUID(bytes=os.urandom(16), version=4).bytes
        text = base64.urlsafe_b64encode(random_bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text

"""jmx_exporter as the agent of a local node."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from tests.conftest import ROOT
from tidemark.settings import JmxEndpoint
from tidemark_lab.brokers.cluster import BROKERS
from tidemark_lab.brokers.jars import jmx_agent_jar
from tidemark_lab.brokers.layout import CONTROLLER
from tidemark_lab.brokers.ports import free_ports

RULES = ROOT / "deploy" / "jmx" / "tidemark-jmx-exporter.yaml"


def jmx_endpoints() -> list[JmxEndpoint]:
    """Where the agents of the nodes of a cluster may listen."""
    nodes = (*BROKERS, CONTROLLER)
    return [
        JmxEndpoint(broker=node, url=f"http://127.0.0.1:{port}/metrics")
        for node, port in zip(nodes, free_ports(len(nodes)), strict=True)
    ]


def jmx_agent(url: str, rules: Path = RULES) -> str:
    """The JVM flag of a node that serves its metrics at `url` by the rules of a file."""
    return f"-javaagent:{jmx_agent_jar()}={urlsplit(url).netloc}:{rules}"

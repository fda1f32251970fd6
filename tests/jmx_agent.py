"""jmx_exporter as the agent of a local node."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from tests.conftest import ROOT
from tidemark_lab.brokers.jars import jmx_agent_jar

RULES = ROOT / "deploy" / "jmx" / "tidemark-jmx-exporter.yaml"


def jmx_agent(url: str, rules: Path = RULES) -> str:
    """The JVM flag of a node that serves its metrics at `url` by the rules of a file."""
    return f"-javaagent:{jmx_agent_jar()}={urlsplit(url).netloc}:{rules}"

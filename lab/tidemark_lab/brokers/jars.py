"""The jars of local brokers: of each version of Kafka, and of jmx_exporter's agent."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidemark.jvm.jars import Coordinates, JarSet, fetch_jars
from tidemark.jvm.java import JavaHome

# The version of the demo, and of drills that name none.
KAFKA_VERSION: Final = "4.4.0"
SUMS: Final = Path(__file__).with_name("jars.sha256")
# The logging binding is for slf4j 1.7, which Kafka 4 uses; without one the broker logs nothing.
LOG4J_2: Final = Coordinates("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3")


def broker_jars(folder: str | Path | None = None, java: JavaHome | None = None) -> list[Path]:
    """The class path of a broker of KAFKA_VERSION. Raises TidemarkError when it cannot be had."""
    roots = (Coordinates("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), LOG4J_2)
    return fetch_jars(JarSet("broker", roots, SUMS), folder, java)


def jmx_agent_jar(folder: str | Path | None = None, java: JavaHome | None = None) -> Path:
    """The Java agent of jmx_exporter: one jar with everything in it."""
    roots = (Coordinates("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1"),)
    (jar,) = fetch_jars(JarSet("jmx-agent", roots, SUMS), folder, java)
    return jar

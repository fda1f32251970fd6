"""The versions of Kafka that a local cluster can run, each with its jars and its files.

Kafka before 2.8 needs ZooKeeper, Kafka 4.0 and later cannot use it. Versions before 1.0 need
javax.xml.bind, which Java 11 removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemark.core.errors import ConfigError
from tidemark.jvm.ivy import Coordinates
from tidemark.jvm.jars import JarSet, fetch_jars
from tidemark.jvm.java import JavaHome
from tidemark_lab.brokers.jars import KAFKA_VERSION, SUMS, broker_jars
from tidemark_lab.brokers.layout import Layout
from tidemark_lab.brokers.zookeeper_layout import ZooKeeperLayout

_JAXB: Final = Coordinates("javax.xml.bind", "jaxb-api", "2.3.1")
# Kafka 1.0 to 3.9 comes without a binding of slf4j; kafka.utils.Log4jController needs log4j 1.2.
_LOG4J: Final = Coordinates("org.slf4j", "slf4j-reload4j", "1.7.36")


@dataclass(frozen=True)
class KafkaVersion:
    """`scala` is the version of Scala that the jars were built for.

    `library` is what the class path needs besides Kafka and its dependencies.
    """

    number: str
    scala: str
    library: Coordinates
    layout: type[Layout] = ZooKeeperLayout

    def jars(self, folder: str | Path | None = None, java: JavaHome | None = None) -> list[Path]:
        """The class path of a node. Raises TidemarkError when it cannot be had.

        That of the demo's version are the jars that `tidemark demo` fetches.
        """
        if self.number == KAFKA_VERSION:
            return broker_jars(folder, java)
        kafka = Coordinates("org.apache.kafka", f"kafka_{self.scala}", self.number)
        return fetch_jars(JarSet(f"kafka-{self.number}", (kafka, self.library), SUMS), folder, java)


VERSIONS: Final = {
    version.number: version
    for version in (
        KafkaVersion("0.10.2.2", "2.11", _JAXB),
        KafkaVersion("0.11.0.3", "2.11", _JAXB),
        KafkaVersion("1.1.1", "2.11", _LOG4J),
        KafkaVersion("2.6.3", "2.13", _LOG4J),
        KafkaVersion("2.8.2", "2.13", _LOG4J),
        KafkaVersion("3.9.1", "2.13", _LOG4J, Layout),
        KafkaVersion(KAFKA_VERSION, "2.13", _LOG4J, Layout),
    )
}


def kafka_version(number: str) -> KafkaVersion:
    """Raises ConfigError for a version that is not in the table."""
    try:
        return VERSIONS[number]
    except KeyError:
        known = ", ".join(VERSIONS)
        raise ConfigError(f"a local cluster runs Kafka {known}, not {number}.") from None

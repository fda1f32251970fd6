"""The versions of Kafka that a local cluster can run, each with its jars and its files.

Kafka before 2.8 needs ZooKeeper, Kafka 4.0 and later cannot use it. Versions before 1.0 need
javax.xml.bind, which Java 11 removed. A new version is one entry of the table, and the SHA-256 sums
of its jars (`python -m tests.versions.sums VERSION`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemark.core.errors import ConfigError
from tidemark.jvm.jars import Coordinates, JarSet, fetch_jars
from tidemark.jvm.java import JavaHome
from tidemark_lab.brokers.jars import KAFKA_VERSION, LOG4J_2, SUMS, broker_jars
from tidemark_lab.brokers.layout import Layout
from tidemark_lab.brokers.zookeeper_layout import ZooKeeperLayout

_JAXB: Final = Coordinates("javax.xml.bind", "jaxb-api", "2.3.1")
# Kafka 1.0 to 3.9 comes without a binding of slf4j; kafka.utils.Log4jController needs log4j 1.2.
_LOG4J: Final = Coordinates("org.slf4j", "slf4j-reload4j", "1.7.36")
# Drills expect the same of all from here on: eligible leader replicas are on in a new cluster.
_OLDEST_CURRENT: Final = (4, 1)
_NUMBER: Final = re.compile(r"\d{1,3}(\.\d{1,3}){2,3}")


@dataclass(frozen=True)
class KafkaVersion:
    """`scala` is the version of Scala that the jars were built for.

    `library` is what the class path needs besides Kafka and its dependencies.
    """

    number: str
    scala: str = "2.13"
    library: Coordinates = LOG4J_2
    layout: type[Layout] = Layout

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
        KafkaVersion("0.10.2.2", "2.11", _JAXB, ZooKeeperLayout),
        KafkaVersion("0.11.0.3", "2.11", _JAXB, ZooKeeperLayout),
        KafkaVersion("1.1.1", "2.11", _LOG4J, ZooKeeperLayout),
        KafkaVersion("2.6.3", library=_LOG4J, layout=ZooKeeperLayout),
        KafkaVersion("2.8.2", library=_LOG4J, layout=ZooKeeperLayout),
        KafkaVersion("3.9.1", library=_LOG4J),
        KafkaVersion("4.1.2"),
        KafkaVersion("4.2.2"),
        KafkaVersion("4.3.1"),
        KafkaVersion("4.4.0"),
    )
}


def is_current(number: str) -> bool:
    """Whether brokers of this version do what those of KAFKA_VERSION do, in every drill."""
    return bool(_NUMBER.fullmatch(number)) and (
        tuple(map(int, number.split("."))) >= _OLDEST_CURRENT
    )


def kafka_version(number: str, *, unlisted: bool = True) -> KafkaVersion:
    """A version of the table, or a current one that is `unlisted` there. Raises ConfigError.

    The jars of one that is not listed are checked against the sums of their registry alone.
    """
    found = VERSIONS.get(number)
    if found is not None:
        return found
    known = ", ".join(VERSIONS)
    if not is_current(number):
        raise ConfigError(f"a local cluster runs Kafka {known}, not {number}.")
    if not unlisted:
        raise ConfigError(
            f"Kafka {number} is not one of {known}, so nothing but the registry says which bytes "
            "its jars have. --unlisted runs it."
        )
    return KafkaVersion(number)

"""Kafka's own ReplicaVerificationTool, which 4.0 removed: that of Kafka 2.8."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.processes import start_logged
from tidemark.jvm.jars import Coordinates, JarSet, fetch_jars
from tidemark.jvm.java import find_java
from tidemark_lab.brokers.jars import SUMS
from tidemark_lab.brokers.wait import wait_until

_UNMATCHED = re.compile(r"partition (\S+) has unmatched checksum at offset (\d+)")
_LAG = re.compile(r"max lag is 0 for partition")


def unmatched_partitions(
    servers: Sequence[str], topics: str, seconds: float, folder: Path
) -> dict[str, int]:
    """The first offset with other checksums of each partition, after it has read all offsets."""
    roots = (
        Coordinates("org.apache.kafka", "kafka_2.13", "2.8.2"),
        Coordinates("org.slf4j", "slf4j-nop", "1.7.36"),
    )
    jars = fetch_jars(JarSet("verification-tool", roots, SUMS))
    output = folder / "verification.txt"
    # It is called twice in one folder.
    output.unlink(missing_ok=True)
    tool = start_logged(
        [
            *(str(find_java().java), "-Xmx256m", "-cp", ":".join(map(str, jars))),
            *("kafka.tools.ReplicaVerificationTool", "--broker-list", ",".join(servers)),
            *("--topic-white-list", topics, "--time", "-2"),
            *("--report-interval-ms", "1000", "--fetch-size", "1048576"),
        ],
        output,
    )
    try:
        wait_until(
            lambda: len(_LAG.findall(output.read_text())) >= 3,
            seconds,
            "the tool has read everything",
            seen=lambda: f"exit code {tool.poll()}: {output.read_text()[-3000:]}",
        )
    finally:
        tool.kill()
        tool.wait(10)
    found: dict[str, int] = {}
    for name, offset in _UNMATCHED.findall(output.read_text()):
        found.setdefault(name, int(offset))
    return found

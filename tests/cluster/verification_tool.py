"""Kafka's own ReplicaVerificationTool, which 4.0 removed: that of Kafka 2.8."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tidemark.jvm.ivy import Coordinates
from tidemark.jvm.jars import JarSet, fetch_jars
from tidemark.jvm.java import find_java
from tidemark_lab.brokers.jars import SUMS

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
    with output.open("w") as out:
        tool = subprocess.Popen(
            [
                *(str(find_java().java), "-Xmx256m", "-cp", ":".join(map(str, jars))),
                *("kafka.tools.ReplicaVerificationTool", "--broker-list", ",".join(servers)),
                *("--topic-white-list", topics, "--time", "-2"),
                *("--report-interval-ms", "1000", "--fetch-size", "1048576"),
            ],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and tool.poll() is None:
                if len(_LAG.findall(output.read_text())) >= 3:
                    break
                time.sleep(0.5)
            else:
                raise AssertionError(f"it has not read everything:\n{output.read_text()[-3000:]}")
        finally:
            tool.kill()
            tool.wait(10)
    found: dict[str, int] = {}
    for name, offset in _UNMATCHED.findall(output.read_text()):
        found.setdefault(name, int(offset))
    return found

"""Kafka's own reading of the metadata log: DumpLogSegments with the cluster metadata decoder.

Since Kafka 4.3 it is not among the jars of a broker.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.collect.metadata_log.encoding import BY_TYPE
from tidemark.jvm.jars import Coordinates, JarSet, fetch_jars
from tidemark.jvm.java import find_java
from tidemark_lab.brokers.jars import KAFKA_VERSION, SUMS

_LINE: Final = re.compile(r"\| offset: (\d+) .*? payload: (\{.*\})$")
_TYPES: Final = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", make.__name__).upper(): schema
    for make, schema in BY_TYPE.items()
}
# Tagged fields that are read over; untagged ones have an entry in the table.
_READ_OVER: Final = frozenset({"cordoned_log_dirs", "directories", "log_dirs", "name", "reason"})
_TOOLS: Final = JarSet(
    "kafka-tools", (Coordinates("org.apache.kafka", "kafka-tools", KAFKA_VERSION),), SUMS
)


def dump(paths: Iterable[Path]) -> dict[Path, dict[int, Any]]:
    """By file: offset -> record, as one of our classes; None for a type that we do not decode."""
    files = [str(path) for path in paths]
    java = find_java()
    jars = ":".join(map(str, fetch_jars(_TOOLS, None, java)))
    tool = [str(java.java), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", jars]
    run = subprocess.run(
        [
            *tool,
            "org.apache.kafka.tools.DumpLogSegments",
            "--cluster-metadata-decoder",
            "--files",
            ",".join(files),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: dict[Path, dict[int, Any]] = {}
    for line in run.stdout.splitlines():
        if line.startswith("Dumping "):
            records = found[Path(line.removeprefix("Dumping "))] = {}
        elif (match := _LINE.match(line)) is not None:
            records[int(match[1])] = _record(json.loads(match[2]))
    return found


def _record(payload: dict[str, Any]) -> Any:
    schema = _TYPES.get(payload["type"])
    if schema is None:
        return None
    given = {re.sub(r"(?=[A-Z])", "_", key).lower(): v for key, v in payload["data"].items()}
    known = {field.name for field in schema.fields}
    assert set(given) <= known | _READ_OVER, (payload, known)
    values = {field.name: given.get(field.name, field.default) for field in schema.fields}
    return schema.make(*(values[name] for name in schema.make._fields))

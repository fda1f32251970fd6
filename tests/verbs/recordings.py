"""Recordings for the verbs, from scenario commands and recorded faults."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.conftest import ROOT
from tests.scenarios.scenario import Scenario
from tests.traces import batches
from tidemark.core.codec import encode_batch
from tidemark.core.records import Alert
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.recorded_lines import Line, LineReducer

TRACES = ROOT / "tests" / "testdata" / "traces"


def recording(*commands: str) -> list[bytes]:
    """The encoded batches of a scenario."""
    scenario = Scenario()
    for command in commands:
        scenario.run(command)
    return [encode_batch(batch) for batch in scenario.batches]


def trace(name: str) -> list[bytes]:
    """The encoded batches of a recorded fault."""
    return [
        encode_batch(batch)
        for batch in batches((TRACES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    ]


def alerts_of(lines: Iterable[bytes]) -> list[Alert]:
    """The records of the alerts that encoded batches lead to."""
    reducer = LineReducer(Detection())
    return [
        record
        for number, line in enumerate(lines, 1)
        for record in reducer.records(Line(0, number, line), "alerts")
        if isinstance(record, Alert)
    ]


def write(path: Path, lines: Iterable[bytes]) -> str:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)

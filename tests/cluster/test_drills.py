"""A few drills on real brokers; `make drills` runs all. A recording replays to the same alerts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import need_found
from tidemark.core.records import Record, decode_record
from tidemark_lab.brokers.versions import kafka_version
from tidemark_lab.drills.run import ALERTS, run_drill
from tidemark_lab.drills.schedules.table import DRILLS
from tidemark_lab.drills.set_up import EVENTS
from tidemark_lab.judge.replay import replay

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.mark.parametrize(
    "name", ["unclean-election", pytest.param("zombie-leader", marks=pytest.mark.soak)]
)
def test_a_drill_passes_and_its_recording_replays(name: str, tmp_path: Path) -> None:
    drill = DRILLS[name]
    version = drill.versions[0]
    need_found(kafka_version(version).jars)
    result = run_drill(drill, version, tmp_path, print)
    assert (result.verdict, result.findings) == ("PASSED", [])
    lines = (tmp_path / ALERTS).read_bytes().splitlines()
    assert _ids([decode_record(line) for line in lines]) == _ids(replay(tmp_path / EVENTS, 1))


def _ids(alerts: Sequence[Record]) -> set[str]:
    return {getattr(alert, "id", "") for alert in alerts}

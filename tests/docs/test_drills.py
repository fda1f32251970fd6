from __future__ import annotations

import pytest

from tests.docs.drills import read_mechanisms, read_rows
from tidemark_lab.drills.schedules.table import DRILLS


@pytest.mark.parametrize("drill", DRILLS.values(), ids=lambda drill: drill.name)
def test_every_drill_has_run_on_each_of_its_versions(drill: object) -> None:
    rows = read_rows()
    name, versions = drill.name, drill.versions  # type: ignore[attr-defined]
    assert {rows[f"{name} {version}"]["verdict"] for version in versions} == {"PASSED"}


def test_every_mechanism_has_a_drill_that_exists_or_a_reason() -> None:
    found = read_mechanisms()
    assert len({each["mechanism"] for each in found}) == len(found)
    for each in found:
        assert each["drill"] in DRILLS or (each["drill"] is None and each["why"]), each

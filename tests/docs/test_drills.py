from __future__ import annotations

import pytest

from tests.docs.drills import PAGE, page, read_rows
from tidemark.drill.drills.table import DRILLS


def test_the_page_has_the_tables_of_the_runs() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run `make docs`"


@pytest.mark.parametrize("drill", DRILLS.values(), ids=lambda drill: drill.name)
def test_every_drill_has_run_on_each_of_its_versions(drill: object) -> None:
    rows = read_rows()
    name, versions = drill.name, drill.versions  # type: ignore[attr-defined]
    assert {rows[f"{name} {version}"]["verdict"] for version in versions} == {"PASSED"}

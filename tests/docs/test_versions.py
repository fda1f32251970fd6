from __future__ import annotations

from tests.docs.versions import PAGE, page, read_rows
from tests.versions.features import FEATURES
from tidemark_lab.brokers.versions import VERSIONS


def test_the_page_has_the_table_of_the_runs() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run `make docs`"


def test_each_version_has_all_features() -> None:
    rows = read_rows()
    assert list(rows) == list(VERSIONS)
    assert {tuple(row) for row in rows.values()} == {tuple(FEATURES)}

from __future__ import annotations

from tests.docs.versions import read_rows
from tests.versions.features import FEATURES
from tidemark_lab.brokers.versions import VERSIONS


def test_each_version_has_all_features() -> None:
    rows = read_rows()
    assert list(rows) == list(VERSIONS)
    assert {tuple(row) for row in rows.values()} == {tuple(FEATURES)}

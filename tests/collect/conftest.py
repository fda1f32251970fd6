from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.collect.fake_cluster import FakeCluster


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    made = FakeCluster()
    yield made
    made.close()

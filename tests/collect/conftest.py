from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.collect.fake_cluster import FakeCluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[FakeCluster]:
    """`with_versions` replaces the versions that its brokers offer."""
    made = FakeCluster(getattr(request, "param", None))
    yield made
    made.close()


@pytest.fixture
def topic_t(cluster: FakeCluster) -> None:
    """A fully replicated partition, t-0, whose logs end at 7."""
    cluster.topic("t", 7)

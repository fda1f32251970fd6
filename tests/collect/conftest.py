from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.collect.fake_cluster import FakeCluster


@pytest.fixture(autouse=True)
def _logs(logs_as_before: None) -> None:
    """A verb configures logs for its process, here on the standard error of the test."""


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

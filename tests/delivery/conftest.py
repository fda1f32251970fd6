"""The tests of delivery share one local Kafka, and the two minutes without receivers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.delivery.outage import Outage
from tidemark.local.cluster import LocalCluster


@pytest.fixture(scope="package")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as running:
        yield running


@pytest.fixture(scope="package")
def outage(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    with Outage(cluster, tmp_path_factory.mktemp("outage")) as begun:
        yield begun


@pytest.fixture(scope="package", autouse=True)
def _outage_passes_beside_the_other_tests(request: pytest.FixtureRequest) -> None:
    """It is almost nothing but waiting: it begins with the section, and is judged at its end."""
    if any("outage" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("outage")

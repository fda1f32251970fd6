"""Shared by the tests of delivery: one local Kafka, and the two minutes without receivers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.delivery.outage import Outage
from tidemark_lab.brokers.cluster import LocalCluster


@pytest.fixture(scope="package")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as running:
        yield running


@pytest.fixture(scope="package")
def outage(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    with ExitStack() as stack:
        yield Outage(stack, cluster, tmp_path_factory.mktemp("outage"))


@pytest.fixture(scope="package", autouse=True)
def _outage_runs_beside_the_other_tests(request: pytest.FixtureRequest) -> None:
    """Starts the outage, which mostly waits, with the section. Its tests are the last."""
    if any("outage" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("outage")

"""A password that is replaced on real brokers, and then in its file: no restart is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from tests.cluster.secure_brokers import SECRET, SecureListeners, secure_cluster, secure_listeners
from tidemark.collect.collection_pass import PassRunner
from tidemark.core.events import AUTHENTICATION_FAILED, OK, TIMED_OUT
from tidemark.kafka.client import make_consumer
from tidemark.settings import Cluster, Collect
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureListeners]:
    with secure_listeners(tmp_path_factory.mktemp("secure")) as made:
        yield made


@pytest.fixture(scope="module")
def brokers(listeners: SecureListeners) -> Iterator[LocalCluster]:
    with secure_cluster(listeners) as cluster:
        yield cluster


def replace_password(brokers: LocalCluster, password: str) -> None:
    failed = brokers.administer(
        lambda admin: admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("scram", ScramMechanism.SCRAM_SHA_512, password)]
        ),
        "replace a password",
    )
    assert not any(failed.values()), failed


def until(passes: PassRunner, outcome: str) -> None:
    """Runs passes until the newest answer of all brokers has this outcome.

    No pass waits for a login, so on a busy machine some have none. A connection that logged in
    keeps its user, and a broker may read a replaced password later than the one that was asked to
    replace it: where the login should fail, one that did not is closed and tried again.
    """
    newest: dict[int, str] = {}

    def is_reached() -> bool:
        passes.loop.run(passes.run, set())
        passes.loop.run(passes.loop.sleep, 0.2)
        answers = {b: found for b, found in passes.outcomes.items() if found != TIMED_OUT}
        newest.update(answers)
        if outcome == AUTHENTICATION_FAILED and OK in answers.values():
            passes._connections.close()
        return set(newest.values()) == {outcome} and bool(answers)

    wait_until(is_reached, 120.0, outcome)


def test_a_password_that_is_replaced_needs_no_restart(
    listeners: SecureListeners, brokers: LocalCluster, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text(SECRET, encoding="utf-8")
    client = {**listeners.client("scram"), "sasl_plain_password_file": str(file)}
    client.pop("sasl_plain_password", None)
    cluster = Cluster(name="c", bootstrap_servers=listeners.servers("scram"), client=client)
    passes = PassRunner(cluster, Collect(metadata_seconds=1e-6), 1, 1_000)
    consumer = make_consumer(cluster)
    try:
        until(passes, OK)
        consumer.topics()
        replace_password(brokers, "another")
        until(passes, AUTHENTICATION_FAILED)
        assert AUTHENTICATION_FAILED in {finding.outcome for finding in passes.findings}
        file.write_text("another", encoding="utf-8")
        until(passes, OK)
        for broker in (1, 2, 3):
            # Its connections end.
            brokers.stop_broker(broker)
            brokers.start_broker(broker)
        until(passes, OK)
        consumer.topics()
    finally:
        consumer.close()
        passes.close()

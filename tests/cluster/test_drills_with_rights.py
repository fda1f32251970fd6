"""Drills watched over TLS by users with exactly the rights that docs/permissions.md lists.

All rights by SCRAM-SHA-512 and by a client certificate, and Describe on topics alone: what is lost
then is in the page's table "Alerts with Describe alone". DRILLS=all runs every drill.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.secure_brokers import (
    SecureListeners,
    create_users,
    grant,
    secure_listeners,
)
from tests.drills.rights import names, with_describe_alone
from tidemark.collect.metadata.refusals import TOPICS
from tidemark.core.codec import decode_batch
from tidemark.core.identity import alert_name
from tidemark.core.records import Alert, decode_record
from tidemark.settings import Cluster
from tidemark.verbs.check_config.acls import DESCRIBE_ONLY, FULL, Grant, command
from tidemark.verbs.check_config.rights import APIS, answered
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.drills import run, set_up
from tidemark_lab.drills.pipeline import CLUSTER_NAME, Pipeline
from tidemark_lab.drills.schedules.table import DRILLS
from tidemark_lab.judge.verdict import Result

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

# User -> its rights on the watched cluster.
PRINCIPALS: Final[Mapping[str, tuple[Grant, ...]]] = {
    "scram": FULL,
    "mtls": FULL,
    "describe": DESCRIBE_ONLY,
}
DESCRIBE: Final = "describe"
UNCLEAN: Final = alert_name("UNCLEAN_ELECTION")
# Claims need the rights that a user with Describe alone lacks, so some losses are not claimed.
COMPLETENESS: Final = "completeness"


@pytest.fixture
def watched_by(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The runner of drills starts brokers with these listeners, and collectors as this user."""
    user: str = request.param
    with secure_listeners(tmp_path / "secure") as made:

        class SecureCluster(LocalCluster):
            def __init__(
                self,
                directory: Path,
                overrides: Mapping[str, str],
                broker_overrides: Mapping[int, Mapping[str, str]],
                **options: Any,
            ) -> None:
                options |= {"listeners": made.listeners, "jvm_flags": made.jvm_flags}
                super().__init__(
                    directory, {**overrides, **made.overrides}, broker_overrides, **options
                )

            def start(self) -> None:
                super().start()
                create_users(self)
                cluster = connection(made, user)
                grant(self, user, [command(cluster, each) for each in PRINCIPALS[user]])

        class SecurePipeline(Pipeline):
            def watched_cluster(self) -> Cluster:
                return connection(made, user)

        monkeypatch.setattr(set_up, "LocalCluster", SecureCluster)
        monkeypatch.setattr(set_up, "Pipeline", SecurePipeline)
        yield user


def connection(listeners: SecureListeners, user: str) -> Cluster:
    return Cluster(
        name=CLUSTER_NAME,
        bootstrap_servers=listeners.servers(user),
        client=listeners.client(user),
    )


@pytest.mark.parametrize("watched_by", PRINCIPALS, indirect=True)
@pytest.mark.parametrize("name", names())
def test_a_drill_passes_with_the_documented_rights(
    name: str, watched_by: str, tmp_path: Path
) -> None:
    drill = DRILLS[name]
    if drill.small_disk_broker is not None and os.geteuid() != 0:
        pytest.skip("only root mounts a small disk")
    if watched_by == DESCRIBE:
        drill = with_describe_alone(drill)
    record = tmp_path / "record"
    result = run.run_drill(drill, KAFKA_VERSION, record, print)
    assert findings(result, watched_by) == []
    assert (result.lost > 0) == (drill.lost_on(KAFKA_VERSION) == "some")
    lines = (record / set_up.EVENTS).read_bytes().splitlines()
    shown = answered([decode_batch(line) for line in lines])
    assert shown == ({TOPICS} if watched_by == DESCRIBE else APIS.keys())
    if watched_by == DESCRIBE:
        check_elections(name, record)


def findings(result: Result, user: str) -> list[str]:
    """What is no part of the documented losses. An error that ended the drill is one, too."""
    bad = [
        f"{check.name}: {check.text}"
        for check in result.checks
        if check.verdict != "PASSED" and (user != DESCRIBE or check.name != COMPLETENESS)
    ]
    return bad if result.error is None else [*bad, result.error]


def check_elections(name: str, record: Path) -> None:
    """The metadata shows a real unclean election, a clean one is suspected at most."""
    lines = (record / run.ALERTS).read_bytes().splitlines()
    labels = [found.labels for line in lines if isinstance(found := decode_record(line), Alert)]
    seen = {each["severity"] for each in labels if each["alertname"] == UNCLEAN}
    if name == "unclean-election":
        assert "critical" in seen
    elif "UNCLEAN_ELECTION" in DRILLS[name].forbidden:
        assert "critical" not in seen

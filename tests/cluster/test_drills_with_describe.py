"""Drills watched by a user who may only Describe topics, over SASL_SSL with SCRAM-SHA-512.

docs/permissions.md says what is unknown then: followers' high watermarks and lineages, so no loss
and no truncation is proven, and the topics' configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.secure_brokers import (
    SecureListeners,
    create_users,
    grant,
    secure_listeners,
)
from tidemark.collect.collector import Collector
from tidemark.collect.metrics import CollectMetrics
from tidemark.core.identity import alert_name
from tidemark.core.records import Alert, decode_record
from tidemark.drill import run
from tidemark.drill.drill import Drill
from tidemark.drill.drills.table import DRILLS
from tidemark.drill.pipeline import CLUSTER_NAME, Pipeline
from tidemark.drill.steps import alert
from tidemark.local.cluster import LocalCluster
from tidemark.settings import Cluster, Collect, Settings

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

USER = "describe"
LOST = ("COMMITTED_DATA_LOSS", "LOG_TRUNCATION")
UNCLEAN = "UNCLEAN_ELECTION"
# A suspicion at most.
ROLLING = ("rolling-restart", "warning")
COMMAND = "kafka-acls.sh --add --operation Describe --topic '*'"


@pytest.fixture
def listeners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecureListeners]:
    """The runner of drills starts brokers with these listeners, and collectors as USER."""
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
                grant(self, USER, [COMMAND])

        class DescribingPipeline(Pipeline):
            def start_collector(self, name: str, clock_offset_seconds: float = 0.0) -> None:
                assert clock_offset_seconds == 0.0
                cluster = Cluster(
                    name=CLUSTER_NAME,
                    bootstrap_servers=made.servers(USER),
                    client=made.client(USER),
                )
                settings = Settings(clusters=[cluster], collect=Collect(collector=name))
                collector = Collector(cluster, settings, self, CollectMetrics(), 1)
                collector.start()
                self._collectors[name] = collector

        monkeypatch.setattr(run, "LocalCluster", SecureCluster)
        monkeypatch.setattr(run, "Pipeline", DescribingPipeline)
        yield made


def as_documented(drill: Drill) -> Drill:
    """Without the alerts that docs/permissions.md lists as lost without Read on topics."""
    names = [alert(detector).text for detector in LOST]
    return replace(
        drill,
        steps=tuple(step for step in drill.steps if step.text not in names),
        expected=tuple(each for each in drill.expected if each.detector not in LOST),
        # The leader may have joined the in-sync set between two passes.
        forbidden=tuple(each for each in drill.forbidden if each != UNCLEAN),
        allowed=(*drill.allowed, UNCLEAN),
    )


@pytest.mark.usefixtures("listeners")
@pytest.mark.parametrize(("name", "severity"), [("unclean-election", "critical"), ROLLING])
def test_a_drill_passes_but_for_what_is_documented_as_lost(
    name: str, severity: str, tmp_path: Path
) -> None:
    drill = as_documented(DRILLS[name])
    result = run.run_drill(drill, drill.versions[0], tmp_path / "record", print)
    assert (result.verdict, result.findings) == ("PASSED", [])
    assert (result.proven, result.lost > 0) == (0, name == "unclean-election")
    lines = (tmp_path / "record" / run.ALERTS).read_bytes().splitlines()
    labels = [record.labels for line in lines if isinstance(record := decode_record(line), Alert)]
    seen = {each["severity"] for each in labels if each["alertname"] == alert_name(UNCLEAN)}
    assert seen <= {severity}

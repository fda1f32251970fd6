"""Real brokers of each version: what the collector sees of them, and what the reducer proves.

`REWRITE=1` writes the rows of the versions that ran (tests/testdata/versions.json), from which
`python -m tests.docs.versions` writes docs/versions.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import need_found
from tests.docs.versions import ROWS, read_rows
from tests.versions.features import NO, PROVEN, SUSPECTED, YES, row_of
from tests.versions.verbs import Ran, check_verbs, run_verbs
from tidemark.core.records import Alert
from tidemark_lab.brokers.broker_socket import BrokerSocket
from tidemark_lab.brokers.versions import VERSIONS, kafka_version
from tidemark_lab.drills.drill import Step
from tidemark_lab.drills.run import run_drill
from tidemark_lab.drills.schedules.every_version import EVERY_VERSION, SHORT
from tidemark_lab.drills.set_up import EVENTS
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.judge.needless import is_untrue
from tidemark_lab.judge.replay import replay
from tidemark_lab.judge.samples import batches_of

NEWEST_SHORT = "0.11.0.3"
CERTAINTY = (NO, SUSPECTED, PROVEN)

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.mark.parametrize(
    ("version", "short"),
    [
        (NEWEST_SHORT, True),
        *(pytest.param(number, False, marks=pytest.mark.soak) for number in VERSIONS),
    ],
)
def test_a_version_shows_what_the_table_says_and_nothing_false(
    version: str, short: bool, tmp_path: Path
) -> None:
    need_found(kafka_version(version).jars)
    apis: set[int] = set()
    verbs: dict[str, Ran] = {}

    def ask(stage: Stage) -> None:
        """Of the healthy cluster under load."""
        with BrokerSocket(stage.cluster.address(1), 5.0) as broker:
            apis.update(broker.versions)
        if not short:
            verbs.update(run_verbs(stage.cluster.bootstrap_servers, stage.topics))

    drill = SHORT if short else EVERY_VERSION
    drill = replace(drill, steps=(Step("ask the brokers", ask), *drill.steps))
    result = run_drill(drill, version, tmp_path, print)
    # Among its checks: what was observed is on the disks, every claim is true and whole.
    assert (result.verdict, result.findings) == ("PASSED", [])
    alerts = replay(tmp_path / EVENTS)
    _nothing_is_claimed_before(alerts, next(m.at for m in result.marks if "last" in m.key))
    events = [event for batch in batches_of(tmp_path / EVENTS) for event in batch.events]
    row = row_of(events, alerts, apis)
    if not short:
        check_verbs(
            verbs,
            has_minimum=row["min_in_sync_replicas"] == YES,
            has_lineages=row["lineage"] == "every replica",
        )
    if os.environ.get("REWRITE") == "1":
        rows = {**read_rows(), version: row}
        ordered = {number: rows[number] for number in VERSIONS if number in rows}
        ROWS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    documented = read_rows()[version]
    for feature in ("unclean_election", "loss"):
        # A suspicion is certain where the passes fall well.
        assert CERTAINTY.index(row[feature]) >= CERTAINTY.index(documented[feature])
        row[feature] = documented[feature]
    assert row == documented


def _nothing_is_claimed_before(alerts: Sequence[Alert], killed_at: float) -> None:
    """Of another topic, or before the leader was killed that was alone in sync."""
    for alert in filter(is_untrue, alerts):
        assert (alert.at > killed_at, alert.labels["topic"]) == (True, TOPIC), alert

"""Real brokers of each version: what the collector sees of them, and what the reducer proves.

`REWRITE=1` writes the rows of the versions that ran (tests/testdata/versions.json), from which
`python -m tests.docs.versions` writes docs/versions.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.judge import is_untrue
from tests.chaos.replay import replay
from tests.conftest import missing
from tests.docs.versions import ROWS, read_rows
from tests.versions.features import (
    NO,
    PROVEN,
    SUSPECTED,
    YES,
    events_of,
    firing,
    last_observations,
    row_of,
)
from tests.versions.schedule import PAIR, Run, run_schedule
from tests.versions.verbs import check_verbs
from tidemark.core.errors import TidemarkError
from tidemark.core.events import Event, Pass
from tidemark.core.records import Alert
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.versions import VERSIONS, kafka_version

SHORT = "0.11.0.3"
CERTAINTY = (NO, SUSPECTED, PROVEN)

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.mark.parametrize(
    ("version", "short"),
    [
        (SHORT, True),
        *(pytest.param(number, False, marks=pytest.mark.soak) for number in VERSIONS),
    ],
)
def test_a_version_shows_what_the_table_says_and_nothing_false(
    version: str, short: bool, tmp_path: Path
) -> None:
    try:
        kafka_version(version).jars()
    except TidemarkError as error:
        missing(str(error))
    run = run_schedule(version, tmp_path, short=short)
    events, alerts = events_of(run), replay(run.events)
    _offsets_are_those_on_disk(run, events)
    lost, kept = acknowledged_offsets(run)
    assert set(lost) == {("pair", number) for number in PAIR}
    _claims_are_true(run, alerts, kept)
    _ranges_are_whole(run, events, alerts, lost)
    row = row_of(run, events, alerts)
    if not short:
        check_verbs(
            run.verbs,
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


def _offsets_are_those_on_disk(run: Run, events: Sequence[Event]) -> None:
    for at, replicas in run.quiet:
        for place, seen in last_observations(run, events, at).items():
            shown = {s.broker: (s.log_end_offset, s.high_watermark, s.error) for s in seen.samples}
            stored = {
                broker: (replica.log_end_offset, replica.high_watermark, None)
                for (broker, its_place), replica in replicas.items()
                if its_place == place
            }
            assert shown == stored, (run.version, place, at)


Offsets = dict[Place, set[int]]


def acknowledged_offsets(run: Run) -> tuple[Offsets, Offsets]:
    """Offsets acknowledged before the leader was killed: without their record, and with it.

    A record may be acknowledged later at the offset of one that is lost.
    """
    lost: Offsets = {}
    kept: Offsets = {}
    killed_at, _ = run.leaderless
    for record in run.acknowledged:
        place = (record.topic, record.partition)
        is_kept = run.stored[place].record_ids.get(record.offset) == record.id
        if is_kept and record.acked_at > killed_at:
            continue
        (kept if is_kept else lost).setdefault(place, set()).add(record.offset)
    return lost, kept


def _claims_are_true(run: Run, alerts: Sequence[Alert], kept: Offsets) -> None:
    """No range that is claimed lost has a record which survived; nothing was lost before."""
    killed_at, _ = run.leaderless
    for alert in filter(is_untrue, alerts):
        assert (alert.at > killed_at, alert.labels["topic"]) == (True, "pair"), alert
    for alert in firing(alerts, "KafkaCommittedDataLoss"):
        start, end = alert.evidence["proven"]
        place = (alert.labels["topic"], int(alert.labels["partition"]))
        assert not kept[place].intersection(range(start, end)), (place, start, end)


def _ranges_are_whole(
    run: Run, events: Sequence[Event], alerts: Sequence[Alert], lost: Offsets
) -> None:
    """A proven range has each lost record acknowledged before the leader was last asked.

    An observation has the time at which its pass was read whole: the brokers answered since the
    start of that pass. A range may begin below the lost records: a record is committed also where
    its acknowledgement never arrived.
    """
    passes = [event for event in events if isinstance(event, Pass)]
    newest = {int(a.labels["partition"]): a for a in firing(alerts, "KafkaCommittedDataLoss")}
    for number, alert in newest.items():
        place = ("pair", number)
        start, end = alert.evidence["proven"]
        seen_at = alert.evidence["committed_seen_at"]
        asked_at = max(p.started_at for p in passes if p.started_at <= seen_at)
        read_before = {
            record.offset
            for record in run.acknowledged
            if (record.topic, record.partition) == place and record.acked_at < asked_at
        }
        assert lost[place] & read_before <= set(range(start, end)), (place, start, end)

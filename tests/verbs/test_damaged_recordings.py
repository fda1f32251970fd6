"""Damaged recordings, with impossible numbers and in any order: every verb reads to the end."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.event_strategies import batches
from tests.fuzz.mutate import places, replaced
from tests.verbs.recordings import recording, trace
from tidemark.assess.losses import read_losses
from tidemark.core.alert_records import decode_alerts
from tidemark.core.codec import encode_batch, salvage_batch
from tidemark.core.errors import WireError
from tidemark.core.events import Observation
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark.verbs.inspect.losses import as_csv, as_table
from tidemark.verbs.replay.timeline import TimeLine
from tidemark.verbs.safe_to_stop.verdict import as_text, judge
from tidemark.verbs.timeline.report import Subject, as_json, as_markdown
from tidemark.verbs.timeline.report import as_text as as_lines
from tidemark.verbs.timeline.source import TimeLines, Wanted

LINES = [
    json.loads(line)
    for line in (
        *trace("unclean"),
        *recording("partition trace-0 replicas=1,2,3", "pass 6 add=9 lineage=0:9,2:40"),
    )
]
extremes: st.SearchStrategy[Any] = st.sampled_from(
    [
        0,
        1,
        5,
        7,
        12,
        2**31 - 1,
        2**63 - 1,
        2**63,
        -1,
        1e10,
        9.9e10,
        None,
        True,
        "1",
        [],
        [1],
        [2, 2, 2],
        {},
    ]
)


def leaves(line: Any) -> list[tuple[Any, ...]]:
    """The paths to all values that are no parent of others."""
    paths = set(places(line))
    return sorted(paths - {path[:-1] for path in paths if path}, key=str)


@st.composite
def damaged(draw: st.DrawFn) -> list[bytes]:
    """Some lines of a recording, each with a few leaves replaced, shuffled a little."""
    lines = []
    for index in draw(st.lists(st.integers(0, len(LINES) - 1), min_size=5, max_size=25)):
        line = LINES[index]
        for _ in range(draw(st.integers(0, 3))):
            path = draw(st.sampled_from(leaves(line)))
            line = replaced(line, path, draw(extremes))
        lines.append(json.dumps(line).encode())
    return lines


def read_whole(lines: list[bytes]) -> None:
    reducer, timeline = LineReducer(Detection()), TimeLine(["file"])
    views = ClusterViews(Detection())
    alerts = []
    for number, line in enumerate(lines, 1):
        rows = reducer.reduce(Line(0, number, line))
        assert all(shown for row in rows for shown in timeline.lines(row))
        alerts += [
            row.value for row in rows if row.destination == "alerts" and row.value is not None
        ]
        with suppress(WireError):
            views.add(salvage_batch(line)[0])
    read_timelines(lines)
    losses = read_losses(decode_alerts(alerts))
    assert len(as_csv(losses).splitlines()) == len(as_table(losses)) == len(losses) + 1
    for cluster in views.clusters:
        for broker in (1, 2**31 - 1):
            verdict = judge(views, cluster, broker)
            assert as_text(verdict)
            assert verdict.document()["safe"] is (
                not verdict.impacts and not verdict.not_shown and verdict.partitions > 0
            )


def read_timelines(lines: list[bytes]) -> None:
    """The time lines of the first partitions, in every form."""
    places = {("trace", 0)}
    batches = []
    for line in lines:
        with suppress(WireError):
            batches.append(salvage_batch(line)[0])
    for batch in batches:
        places |= {(e.topic, e.partition) for e in batch.events if isinstance(e, Observation)}
    for topic, partition in sorted(places)[:3]:
        found = TimeLines(Wanted(topic, partition))
        for batch in batches:
            found.batch(batch)
        for cluster, steps in found.by_cluster.items():
            steps.end()
            if steps.steps:
                subject = Subject(cluster, topic, partition, "file")
                assert all(text.isprintable() for text in as_lines(subject, steps, 80))
                assert as_markdown(subject, steps)
                assert as_json(subject, steps)["steps"]


@settings(max_examples=60)
@given(damaged())
def test_damaged_recordings_are_read_to_the_end(lines: list[bytes]) -> None:
    read_whole(lines)


@settings(max_examples=30)
@given(st.lists(batches, max_size=4))
def test_anything_that_the_schema_allows_is_read(found: list[Any]) -> None:
    read_whole([encode_batch(batch) for batch in found])

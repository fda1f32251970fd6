"""`--from`: the end of a recording in place of a live cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tidemark.command_line.output import echo
from tidemark.detect.thresholds import Detection
from tidemark.observations.recorded_lines import check_sources, read_lines
from tidemark.observations.recorded_views import choose_recorded
from tidemark.verbs.top.reducer import TopReducer
from tidemark.verbs.top.snapshot import Snapshot


class RecordedCluster(NamedTuple):
    """Has one snapshot, which never changes."""

    snapshot: Snapshot
    is_running: bool = True


def read_recording(source: str, detection: Detection, cluster: str | None) -> RecordedCluster:
    """The cluster of a recording at its end, with all elections on the way.

    Raises ConfigError for a file without a pass, or with several clusters and none chosen.
    """
    check_sources([source])
    reducer = TopReducer(detection)
    ended: dict[str, float] = {}
    for line in read_lines([source], lambda text: echo(f"top: {text}", err=True)):
        reducer.record(line.data if line.fault is None else b"", line.number)
        for name in reducer.clusters:
            at = reducer.ended_at(name)
            if ended.get(name) != at:
                ended[name] = at
                reducer.note_elections(name)
    snapshot = reducer.snapshot(choose_recorded(reducer.clusters, cluster, source))
    assert snapshot is not None, "a pass over it"
    return RecordedCluster(replace(snapshot, is_recorded=True))

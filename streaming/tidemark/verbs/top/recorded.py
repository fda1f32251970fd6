"""`--from`: the end of a recording in place of a live cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import click

from tidemark.command_line.options import require_one
from tidemark.core.errors import ConfigError
from tidemark.detect.thresholds import Detection
from tidemark.observations.recorded_lines import check_sources, read_lines
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
    for line in read_lines([source], lambda text: click.echo(f"top: {text}", err=True)):
        reducer.record(line.data if line.fault is None else b"", line.number)
        for name in reducer.clusters:
            at = reducer.ended_at(name)
            if ended.get(name) != at:
                ended[name] = at
                reducer.note_elections(name)
    if cluster is None:
        require_one(reducer.clusters)
    snapshot = next(
        (reducer.snapshot(name) for name in reducer.clusters if cluster in (None, name)), None
    )
    if snapshot is None:
        raise ConfigError(
            f"{source} holds no pass over {'a cluster' if cluster is None else cluster}; "
            "record one with `tidemark top --record FILE`."
        )
    return RecordedCluster(replace(snapshot, is_recorded=True))

"""The views at the end of a recording, for verbs that judge one instead of a live cluster."""

from __future__ import annotations

import click

from tidemark.command_line.options import require_one
from tidemark.core.errors import ConfigError
from tidemark.core.records import DeadLetter
from tidemark.detect.thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.line_reducer import LineReducer, unreadable_letter
from tidemark.observations.recorded_lines import check_sources, read_lines


def read_recording(source: str, detection: Detection, verb: str) -> ClusterViews:
    """The views at the end of a recording. Reports unreadable lines on standard error.

    Raises ConfigError where the file has no pass at all.
    """
    check_sources([source])
    found = ClusterViews(detection)
    reducer = LineReducer(detection, found.fold)
    for line in read_lines([source]):
        for letter in reducer.records(line, "dead_letters"):
            if isinstance(letter, DeadLetter):
                click.echo(f"{verb}: {unreadable_letter(letter, [source])}", err=True)
    if not found.clusters:
        raise ConfigError(
            f"{source} holds no pass over a cluster; "
            "record one with `tidemark collect --to - --passes 3`."
        )
    return found


def choose_recorded(clusters: list[str], name: str | None) -> str:
    """The cluster with this name, or the only one. Raises ConfigError."""
    if name is not None and name not in clusters:
        raise ConfigError(f"no cluster is called `{name}`; there are {', '.join(clusters)}.")
    if name is None:
        require_one(clusters)
    return name or clusters[0]

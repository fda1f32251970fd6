"""The views at the end of a recording, for verbs that judge one instead of a live cluster."""

from __future__ import annotations

from tidemark.command_line.options import require_one
from tidemark.command_line.output import echo
from tidemark.core.errors import ConfigError
from tidemark.detect.thresholds import Detection
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.recorded_lines import RECORD, LineReducer, check_sources, read_lines


def read_recording(
    source: str, detection: Detection, verb: str, name: str | None = None
) -> tuple[ClusterViews, str]:
    """The views at the end of a recording, and the cluster with this name, or the only one.

    Reports unreadable lines on standard error. Raises ConfigError where it has no such cluster.
    """
    check_sources([source])
    found = ClusterViews(detection)
    reducer = LineReducer(detection, found.fold)
    for line in read_lines([source]):
        reducer.alerts(line, [source], lambda text: echo(f"{verb}: {text}", err=True))
    return found, choose_recorded(found.clusters, name, source)


def choose_recorded(clusters: list[str], name: str | None, source: str) -> str:
    """The cluster with this name, or the only one. Raises ConfigError."""
    if not clusters:
        raise ConfigError(f"{source} holds no pass over a cluster; record one with `{RECORD}`.")
    if name is not None and name not in clusters:
        raise ConfigError(f"no cluster is called `{name}`; there are {', '.join(clusters)}.")
    if name is None:
        require_one(clusters)
    return name or clusters[0]

"""`tidemark safe-to-stop`: the partitions that stopping a broker now would affect."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
import msgspec

from tidemark.assess.candidates import LAG_LIMIT_MS
from tidemark.collect.refusals import REASSIGNMENTS, TOPIC_CONFIGURATION, TOPICS
from tidemark.core.codec import salvage_batch
from tidemark.core.errors import ClusterError, ConfigError, WireError
from tidemark.core.records import View
from tidemark.detect.thresholds import Detection
from tidemark.settings import Cluster, Collect, load_settings
from tidemark.verbs.few_passes import (
    MIN_PASSES,
    few_passes,
    live_cluster,
    refusal_lines,
    require_one,
)
from tidemark.verbs.options import bootstrap_option, cluster_option, config_option
from tidemark.verbs.recording import check_sources, read_lines, unreadable
from tidemark.verbs.safe_to_stop.cluster_views import ClusterViews
from tidemark.verbs.safe_to_stop.verdict import as_text, judge

FINDING: Final = 3
# min.insync.replicas may be unreadable for lack of a permission: stop waiting for it.
MAX_SECONDS: Final = 10.0
# An in-sync follower with less lag is fetching. One with more gets time to catch up.
CATCHING_UP_MS: Final = 100.0


@click.command("safe-to-stop")
@click.argument("broker", type=click.IntRange(min=0))
@config_option
@bootstrap_option
@cluster_option
@click.option("--from", "source", metavar="FILE|-", help="Judge the end of a recording instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with all impacts.")
def safe_to_stop(
    broker: int,
    config: Path | None,
    bootstrap: str | None,
    name: str | None,
    source: str | None,
    as_json: bool,
) -> int:
    """List the partitions that stopping BROKER now would affect.

    They would go offline, under min ISR or down to a last copy, or their state is unknown.

    Exit status: 0 safe to stop, 3 not safe, 2 no such broker.
    """
    settings = load_settings(config)
    if source is not None:
        found = read_recording(source, settings.detect)
        cluster = _choose(found.clusters, name)
    else:
        live = live_cluster(settings, bootstrap, name)
        found = observe_cluster(live, settings.collect, settings.detect)
        cluster = live.name
    _check_broker(found, cluster, broker)
    verdict = judge(found, cluster, broker)
    click.echo(msgspec.json.encode(verdict.document()) if as_json else "\n".join(as_text(verdict)))
    return 0 if verdict.safe else FINDING


def read_recording(source: str, detection: Detection) -> ClusterViews:
    """The views at the end of a recording. Reports unreadable lines on standard error.

    Raises ConfigError where the file has no pass at all.
    """
    check_sources([source])
    found = ClusterViews(detection)
    for line in read_lines([source]):
        try:
            if line.fault is not None:
                raise WireError(line.fault)
            batch, bad = salvage_batch(line.data)
            found.add(batch)
            errors = [event.error for event in bad]
        except WireError as unreadable_line:
            errors = [unreadable_line]
        for error in errors:
            text = unreadable(source, line.number, error.field, error)
            click.echo(f"safe-to-stop: {text}", err=True)
    if not found.clusters:
        raise ConfigError(
            f"{source} holds no pass over a cluster; "
            "record one with `tidemark collect --to - --passes 3`."
        )
    return found


def observe_cluster(cluster: Cluster, settings: Collect, detection: Detection) -> ClusterViews:
    """The views of every topic, whatever the cluster's topic filters and shard.

    Takes two passes, or up to MAX_SECONDS while minimums are unread or an in-sync follower is
    behind.
    """
    found = ClusterViews(detection)
    for done in few_passes(cluster, settings, [".*"]):
        for batch in done.batches:
            found.add(batch)
        if done.seconds > MAX_SECONDS or (
            done.number >= MIN_PASSES and _is_enough(found.views(cluster.name), done.seconds)
        ):
            break
    for line in refusal_lines(done.refused, (TOPICS, TOPIC_CONFIGURATION, REASSIGNMENTS)):
        click.echo(line, err=True)
    return found


def _is_enough(views: list[View], seconds: float) -> bool:
    if any(view.effective_min_in_sync_replicas is None for view in views):
        return False
    return seconds * 1000 > LAG_LIMIT_MS + 500 or not any(
        replica.in_sync and not replica.inferred and (replica.lag_ms or 0.0) > CATCHING_UP_MS
        for view in views
        for replica in view.replicas
    )


def _choose(clusters: list[str], name: str | None) -> str:
    """The cluster with this name, or the only one."""
    if name is not None and name not in clusters:
        raise ConfigError(f"no cluster is called `{name}`; there are {', '.join(clusters)}.")
    if name is None:
        require_one(clusters)
    return name or clusters[0]


def _check_broker(found: ClusterViews, cluster: str, broker: int) -> None:
    assigned = {replica for view in found.views(cluster) for replica in view.assigned}
    known = sorted({*found.outcomes(cluster), *assigned})
    if not known:
        raise ClusterError(f"no broker of cluster {cluster} answered in time.")
    if broker not in known:
        raise ConfigError(
            f"cluster {cluster} has no broker {broker}; it has {', '.join(map(str, known))}."
        )

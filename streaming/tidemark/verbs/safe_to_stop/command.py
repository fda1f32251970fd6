"""`tidemark safe-to-stop`: the partitions that stopping brokers now would affect."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
import msgspec

from tidemark.assess.leader_death import LeaderDeath, with_escrow
from tidemark.assess.losses import open_losses
from tidemark.assess.safe_to_stop import MAX_MARGIN, LagThreshold
from tidemark.collect.metadata.refusals import REASSIGNMENTS, TOPIC_CONFIGURATION, TOPICS
from tidemark.command_line.completion import complete_brokers
from tidemark.command_line.options import (
    FINDING,
    FiniteRange,
    bootstrap_option,
    cluster_option,
    command_config_option,
    config_option,
    load_with,
    refuse_both,
)
from tidemark.command_line.output import echo
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.records import View
from tidemark.core.text import duration
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.few_passes import (
    MIN_PASSES,
    FinishedPass,
    live_cluster,
    observe_views,
)
from tidemark.observations.recorded_lines import read_recording
from tidemark.observations.stored_view import read_stored_view
from tidemark.settings import Cluster, Settings
from tidemark.verbs.safe_to_stop.verdict import StopVerdict, as_text, conclusion, judge

VERB: Final = "safe-to-stop"
# min.insync.replicas may be unreadable for lack of a permission: stop waiting for it.
MAX_SECONDS: Final = 10.0
# An in-sync follower with less lag is fetching. One with more gets time to catch up.
CATCHING_UP_MS: Final = 100.0
# With --wait: how often progress is shown.
PROGRESS_SECONDS: Final = 5.0


@click.command("safe-to-stop")
@click.argument(
    "brokers",
    type=click.IntRange(min=0),
    nargs=-1,
    metavar="BROKER…",
    shell_complete=complete_brokers,
)
@config_option
@command_config_option
@bootstrap_option
@cluster_option
@click.option("--rack", "racks", multiple=True, help="Also all brokers of this rack.")
@click.option(
    "--margin",
    type=click.IntRange(0, MAX_MARGIN),
    default=0,
    show_default=True,
    metavar="N",
    help="In-sync replicas to keep above min ISR.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=FiniteRange(0, 86_400),
    metavar="SECONDS",
    help="Wait up to so long until the stop is safe.",
)
@click.option("--from", "source", metavar="FILE|-", help="Judge the end of a recording instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object with all impacts.")
def safe_to_stop(
    brokers: tuple[int, ...],
    config: Path | None,
    command_config: Path | None,
    bootstrap: str | None,
    name: str | None,
    racks: tuple[str, ...],
    margin: int,
    wait_seconds: float | None,
    source: str | None,
    as_json: bool,
) -> int:
    """List the partitions that stopping these BROKERs together now would affect.

    They would go offline, under min ISR or down to a last copy, or their state is unknown; with
    --margin also where fewer than N in-sync replicas would be left above min ISR. Also shows what
    would be lost if the brokers died instead.

    Exit status: 0 safe to stop, 3 not safe, 2 no such broker.
    """
    if not brokers and not racks:
        raise ConfigError("give a broker or --rack.")
    if not all(rack.strip() for rack in racks):
        raise ConfigError("--rack needs the name of a rack.")
    settings = load_with(config, command_config)
    refuse_both(source, bootstrap)
    if source is not None:
        if wait_seconds is not None:
            raise ConfigError("--wait needs a live cluster; leave out --from.")
        found, cluster = read_recording(source, settings.detect, VERB, name)
        verdict = _judge(found, cluster, brokers, racks, margin)
    else:
        live = live_cluster(settings, bootstrap, name)
        verdict = judge_live(live, settings, brokers, racks, wait_seconds, margin)
        if settings.escrow.topics:
            verdict.at_risk = [_with_escrow(settings, *each) for each in verdict.at_risk]
    echo(msgspec.json.encode(verdict.document()) if as_json else "\n".join(as_text(verdict)))
    return 0 if verdict.safe else FINDING


def _with_escrow(settings: Settings, view: View, death: LeaderDeath) -> tuple[View, LeaderDeath]:
    """What the escrow holds is in the stored views; it is left out where these cannot be read."""
    topic, place = settings.topics.partition_views, (view.topic or "", view.partition or 0)
    try:
        stored = read_stored_view(settings.kafka, topic, view.kafka_cluster, *place)
    except ClusterError as error:
        echo(f"{VERB}: what is in escrow is not known: {error}", err=True)
        return view, death
    if stored is not None and stored.topic_id == view.topic_id:
        view.escrow = stored.escrow
    return view, with_escrow(view, death)


def judge_live(
    cluster: Cluster,
    settings: Settings,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    wait_seconds: float | None,
    margin: int = 0,
) -> StopVerdict:
    """The verdict on a live cluster; with `wait_seconds`, after as long as it is not safe."""
    shown_at = time.monotonic()

    def is_done(found: ClusterViews, seconds: float) -> bool:
        nonlocal shown_at
        if seconds >= (wait_seconds or 0.0):
            return True
        verdict = _judge(found, cluster.name, brokers, racks, margin)
        if not verdict.safe and time.monotonic() - shown_at >= PROGRESS_SECONDS:
            shown_at = time.monotonic()
            waited = duration(seconds * 1000)
            echo(f"{VERB}: after {waited}: {conclusion(verdict)}", err=True)
        return verdict.safe

    found = observe_cluster(cluster, settings, is_done)
    return _judge(found, cluster.name, brokers, racks, margin)


def observe_cluster(
    cluster: Cluster,
    settings: Settings,
    is_done: Callable[[ClusterViews, float], bool] = lambda _found, _seconds: True,
) -> ClusterViews:
    """The views of every topic, whatever the cluster's topic filters and shard.

    Takes two passes, or up to MAX_SECONDS while minimums are unread or an in-sync follower is
    behind; then as many as it takes until `is_done`, which gets the seconds since the start.
    """

    def is_enough(done: FinishedPass, found: ClusterViews) -> bool:
        views = found.views(cluster.name)
        return _is_enough(done, views, found.lag_threshold) and is_done(found, done.seconds)

    asked = (TOPICS, TOPIC_CONFIGURATION, REASSIGNMENTS)
    return observe_views(cluster, settings, ".*", asked, is_enough)


def _is_enough(done: FinishedPass, views: list[View], lag_threshold: LagThreshold) -> bool:
    """Whether the passes so far show what can be known."""
    if done.seconds > MAX_SECONDS:
        return True
    if done.number < MIN_PASSES or any(v.effective_min_in_sync_replicas is None for v in views):
        return False
    return not any(
        replica.in_sync and not replica.inferred and (replica.lag_ms or 0.0) > CATCHING_UP_MS
        for view in views
        if done.seconds * 1000 <= lag_threshold(view.topic) + 500
        for replica in view.replicas
    )


def _judge(
    found: ClusterViews,
    cluster: str,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    margin: int,
) -> StopVerdict:
    chosen = set(brokers)
    for rack in racks:
        chosen |= _brokers_of(found, cluster, rack)
    views = found.views(cluster)
    assigned = {replica for view in views for replica in view.assigned}
    # Also one that has lost records on its disk, though it is no replica any more.
    holders = {each for view in views for loss in open_losses(view) for each in loss.holders}
    known = sorted({*found.outcomes(cluster), *assigned, *holders})
    if not known:
        raise ClusterError(f"no broker of cluster {cluster} answered in time.")
    for broker in sorted(chosen.difference(known)):
        raise ConfigError(
            f"cluster {cluster} has no broker {broker}; it has {', '.join(map(str, known))}."
        )
    return judge(found, cluster, *chosen, margin=margin)


def _brokers_of(found: ClusterViews, cluster: str, rack: str) -> set[int]:
    """The brokers of a rack. Raises ConfigError where it has none."""
    racks: dict[str, set[int]] = {}
    for event in found.passes(cluster):
        for answer in event.brokers:
            if answer.rack is not None:
                racks.setdefault(answer.rack, set()).add(answer.broker)
    if rack not in racks:
        shown = ", ".join(sorted(racks)) or "no broker with a rack"
        raise ConfigError(f"cluster {cluster} has no rack {rack}; it has {shown}.")
    return racks[rack]

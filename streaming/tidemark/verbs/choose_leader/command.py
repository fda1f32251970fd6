"""`tidemark choose-leader`: what electing each replica of a partition would lose."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click
import msgspec

from tidemark.assess import leader_choice
from tidemark.assess.election_commands import election_commands
from tidemark.assess.losses import open_losses
from tidemark.collect.metadata.refusals import RECORDS, TOPIC_CONFIGURATION, TOPICS
from tidemark.command_line.options import (
    FINDING,
    bootstrap_option,
    cluster_option,
    command_config_option,
    config_option,
    load_with,
    refuse_both,
)
from tidemark.command_line.output import echo
from tidemark.command_line.places import NamedPlace, choose_cluster_name, place_argument
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.records import View
from tidemark.kafka.client import choose_connection
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.few_passes import MIN_PASSES, FinishedPass, live_cluster, observe_views
from tidemark.observations.recorded_lines import read_recording
from tidemark.observations.stored_view import read_stored_view, with_earlier_samples
from tidemark.settings import Cluster, Settings
from tidemark.verbs.choose_leader.report import as_text, document

# The lineages of replicas and min.insync.replicas take a few passes, or cannot be read.
MAX_SECONDS: Final = 6.0


@click.command("choose-leader")
@place_argument(partition=True)
@config_option
@command_config_option
@bootstrap_option
@cluster_option
@click.option("--from", "source", metavar="FILE|-", help="Judge the end of a recording instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def choose_leader(
    place: NamedPlace,
    config: Path | None,
    command_config: Path | None,
    bootstrap: str | None,
    name: str | None,
    source: str | None,
    as_json: bool,
) -> int:
    """Show what electing each replica of a partition would lose, and how to elect it.

    Replicas that answer are sampled now. What Tidemark saw of silent ones, and open losses, come
    from its topic of views. Nothing is elected.

    Exit status: 0 a choice loses no committed record, 3 none is proven to, or a loss is open.
    """
    settings = load_with(config, command_config)
    name = choose_cluster_name([place], name)
    topic, partition, servers = place.topic, place.partition or 0, None
    refuse_both(source, bootstrap)
    if source is not None:
        found, chosen = read_recording(source, settings.detect, "choose-leader", name)
        view = find_view(found, chosen, topic, partition)
    else:
        cluster = live_cluster(settings, bootstrap, name)
        live = observe_topic(cluster, settings, topic)
        view = find_view(live, cluster.name, topic, partition)
        view = with_earlier_samples(view, _stored(settings, bootstrap, view))
        servers = ",".join(cluster.bootstrap_servers)
    made = leader_choice.choose_leader(view)
    commands = [] if made.best is None else election_commands(view, made.best, servers)
    if as_json:
        echo(msgspec.json.encode(document(view, made, commands)))
    else:
        echo("\n".join(as_text(view, made, commands)))
    is_kept = made.best is not None and made.best.loses_nothing and not open_losses(view)
    return 0 if is_kept else FINDING


def observe_topic(cluster: Cluster, settings: Settings, topic: str) -> ClusterViews:
    """The views of a topic's partitions now."""

    def is_enough(done: FinishedPass, found: ClusterViews) -> bool:
        return done.seconds > MAX_SECONDS or (
            done.number > MIN_PASSES and all(map(_is_complete, found.views(cluster.name)))
        )

    asked = (TOPICS, RECORDS, TOPIC_CONFIGURATION)
    return observe_views(cluster, settings, re.escape(topic), asked, is_enough)


def find_view(found: ClusterViews, cluster: str, topic: str, partition: int) -> View:
    """Raises ClusterError where the topic or the partition is not there."""
    topics = sorted({view.topic for view in found.views(cluster) if view.topic})
    views = [view for view in found.views(cluster) if view.topic == topic]
    if not views:
        # Others are known in a recording; of a live cluster only this one is asked for.
        known = f"; it has {', '.join(topics[:5])}" if topics else ""
        raise ClusterError(
            f"cluster {cluster} shows no topic {topic}"
            f"{known or ', or this user may not describe it'}."
        )
    for view in views:
        if view.partition == partition:
            return view
    shown = ", ".join(str(view.partition) for view in views[:5])
    raise ClusterError(
        f"topic {topic} shows no partition {partition}, but {shown}: it has none, or none of its "
        "brokers answered."
    )


def _is_complete(view: View) -> bool:
    return view.effective_min_in_sync_replicas is not None and all(
        replica.lineage is not None or replica.error is not None or replica.broker == view.leader
        for replica in view.replicas
    )


def _stored(settings: Settings, bootstrap: str | None, view: View) -> View | None:
    """What Tidemark saw before; None, and a line on standard error, where nothing can be read."""
    assert view.topic is not None and view.partition is not None, "a partition's view"
    try:
        found = read_stored_view(
            choose_connection(settings, bootstrap),
            settings.topics.partition_views,
            view.kafka_cluster,
            view.topic,
            view.partition,
        )
    except (ClusterError, ConfigError) as error:
        echo(f"choose-leader: earlier samples and open losses are not known: {error}", err=True)
        return None
    if found is None:
        echo(
            f"choose-leader: {settings.topics.partition_views} has no view of this partition: "
            "earlier samples and open losses are not known.",
            err=True,
        )
    return found

"""`tidemark inspect`: one look at a topic's or a partition's replicas, straight from the brokers; or the list of what was lost."""

from __future__ import annotations

import difflib
import re
import time
from pathlib import Path

import click
import msgspec

from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.command import select_clusters
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.events import Observation
from tidemark.kafka.client import check_reachable, quiet_client_logs
from tidemark.kafka.topic_reader import kafka_at
from tidemark.settings import Cluster, Collect, Settings, load_settings
from tidemark.verbs.inspect.coordinated import coordinated
from tidemark.verbs.inspect.drawing import drawing, heading, table
from tidemark.verbs.inspect.losses_command import show_losses

# A later pass has what the first one started to read aside: minimum in-sync replicas, eligible leaders, reassignments.
# A configuration that may not be read is not waited for longer than this.
MIN_PASSES = 2
MAX_PASSES = 8
PAUSE_SECONDS = 0.2


@click.command(
    "inspect",
    help="Show a topic's or partition's replicas, straight from the brokers; or what was lost.",
)
@click.argument("topic", required=False)
@click.argument("partition", type=click.IntRange(min=0), required=False)
@click.option(
    "--config", type=click.Path(path_type=Path), envvar="TIDEMARK_CONFIG", help="The YAML file."
)
@click.option("--bootstrap", metavar="HOST:PORT,…", help="Ask this cluster, without a file.")
@click.option("--cluster", "name", help="The cluster of the file to ask.")
@click.option(
    "--json", "as_json", is_flag=True, help="Observations (or losses) as JSON, one a line."
)
@click.option(
    "--losses",
    is_flag=True,
    help="List committed records that are gone, from the topic of alerts; exit 3 when there are any.",
)
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="Losses as CSV; `to` is the first offset that is not lost.",
)
@click.option(
    "--from", "source", metavar="FILE|-", help="Losses from a file of events or alerts instead."
)
@click.option(
    "--since", metavar="TIME|AGE", help="Losses found since then: 24h, 7d, 2026-11-21T14:00:00Z."
)
def inspect(
    topic: str | None,
    partition: int | None,
    config: Path | None,
    bootstrap: str | None,
    name: str | None,
    as_json: bool,
    losses: bool,
    as_csv: bool,
    source: str | None,
    since: str | None,
) -> int:
    settings = load_settings(config)
    if losses:
        if as_csv and as_json:
            raise ConfigError("--csv and --json are two forms: give one of them.")
        settings.kafka = kafka_at(settings, bootstrap)
        return show_losses(
            settings,
            (topic, partition, name),
            source,
            since,
            "csv" if as_csv else "json" if as_json else "table",
        )
    if as_csv or source is not None or since is not None:
        raise ConfigError("--csv, --from and --since belong to --losses.")
    if topic is None:
        raise ConfigError("name a topic, or ask for --losses.")
    show_replicas(select_clusters(settings, bootstrap, name), topic, partition, as_json=as_json)
    return 0


def show_replicas(settings: Settings, topic: str, partition: int | None, *, as_json: bool) -> None:
    """Looks at the brokers and prints a table of each partition's replicas; of a single partition the logs drawn too."""
    quiet_client_logs()
    if len(settings.clusters) > 1:
        raise ConfigError(
            f"several clusters are configured; name one by --cluster: {', '.join(c.name for c in settings.clusters)}."
        )
    cluster = settings.clusters[0]
    check_reachable(cluster)
    found = look(cluster, settings.collect, topic)
    partitions = len(found)
    if partition is not None:
        found = [observation for observation in found if observation.partition == partition]
        if not found:
            raise ClusterError(f"topic {topic} has no partition {partition}.")
    for observation in found:
        if as_json:
            click.echo(msgspec.json.encode(observation))
            continue
        click.echo(heading(observation))
        lines = table(observation) + (["", *drawing(observation)] if partition is not None else [])
        if partition is not None:
            whose = coordinated(cluster, topic, partition, partitions, observation.leader)
            lines += [] if whose is None else ["", whose]
        click.echo("\n".join(f"  {line}".rstrip() for line in lines) + "\n")


def look(cluster: Cluster, settings: Collect, topic: str) -> list[Observation]:
    """The observations of a topic's partitions, ascending. Raises ClusterError when no broker knows the topic."""
    watched = msgspec.structs.replace(
        cluster, topics_allow=[re.escape(topic)], topics_deny=[], shard=0, shards=1
    )
    passes = PassRunner(watched, settings, 1, int(time.time() * 1000))
    observations: list[Observation] = []

    async def run() -> None:
        for number in range(MAX_PASSES):
            if number:
                await passes.loop.sleep(PAUSE_SECONDS)
            if number >= MIN_PASSES and all(
                o.effective_min_in_sync_replicas is not None for o in observations
            ):
                return
            records = await passes.run(set())
            observations[:] = [
                e
                for r in records
                for e in decode_batch(r.payload).events
                if isinstance(e, Observation)
            ]

    try:
        passes.loop.run(run)
    finally:
        passes.close()
    if not observations:
        close = difflib.get_close_matches(topic, passes.inventory.listed, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ClusterError(
            f"cluster {cluster.name} shows no topic {topic}, or this user may not describe it.{hint}"
        )
    return sorted(observations, key=lambda observation: observation.partition)

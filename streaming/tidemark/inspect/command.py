"""`tidemark inspect`: one look at a topic's or a partition's replicas, straight from the brokers."""

from __future__ import annotations

import difflib
import re
import time
from pathlib import Path

import click
import msgspec

from tidemark.collect.command import chosen_settings
from tidemark.collect.loop import Loop
from tidemark.collect.passes import Passes
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.events import Observation
from tidemark.core.wire import decode_batch
from tidemark.inspect.drawing import drawing, heading, table
from tidemark.kafka import check_reachable, checked_options, quiet_client_logs
from tidemark.settings import Cluster, Collect, load_settings

# A later pass has what the first one started to read aside: minimum in-sync replicas, eligible leaders, reassignments.
# A configuration that may not be read is not waited for longer than this.
MIN_PASSES = 2
MAX_PASSES = 8
PAUSE_SECONDS = 0.2


@click.command("inspect", help="Show a topic's or partition's replicas, straight from the brokers.")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0), required=False)
@click.option("--config", type=click.Path(path_type=Path), envvar="TIDEMARK_CONFIG", help="The YAML file.")
@click.option("--bootstrap", metavar="HOST:PORT,…", help="Ask this cluster, without a file.")
@click.option("--cluster", "name", help="The cluster of the file to ask.")
@click.option("--json", "as_json", is_flag=True, help="Observations as JSON, one a line.")
def inspect(topic: str, partition: int | None, config: Path | None, bootstrap: str | None, name: str | None, as_json: bool) -> None:
    quiet_client_logs()
    settings = chosen_settings(load_settings(config), bootstrap, name)
    if len(settings.clusters) > 1:
        raise ConfigError(f"several clusters are configured; name one by --cluster: {', '.join(c.name for c in settings.clusters)}.")
    cluster = settings.clusters[0]
    check_reachable(cluster)
    found = look(cluster, settings.collect, topic)
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
        click.echo("\n".join(f"  {line}" for line in lines) + "\n")


def look(cluster: Cluster, settings: Collect, topic: str) -> list[Observation]:
    """The observations of a topic's partitions, ascending. Raises ClusterError when no broker knows the topic."""
    watched = msgspec.structs.replace(cluster, topics_allow=[re.escape(topic)], topics_deny=[], shard=0, shards=1)
    options = checked_options(cluster)
    loop = Loop(**options)
    passes = Passes(loop, options, watched, settings, 1, int(time.time() * 1000))
    observations: list[Observation] = []

    async def run() -> None:
        for number in range(MAX_PASSES):
            if number:
                await loop.sleep(PAUSE_SECONDS)
            if number >= MIN_PASSES and all(o.effective_min_in_sync_replicas is not None for o in observations):
                return
            records = await passes.run(set())
            observations[:] = [e for r in records for e in decode_batch(r.payload).events if isinstance(e, Observation)]

    try:
        loop.run(run)
    finally:
        passes.close()
        loop.close()
    if not observations:
        close = difflib.get_close_matches(topic, passes.inventory.listed, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ClusterError(f"cluster {cluster.name} shows no topic {topic}, or this user may not describe it.{hint}")
    return sorted(observations, key=lambda observation: observation.partition)

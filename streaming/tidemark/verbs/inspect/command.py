"""`tidemark inspect`: a topic's replicas as the brokers report them, or the list of losses."""

from __future__ import annotations

import difflib
import re
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from kafka import errors as kafka_errors

from tidemark.assess.losses import LossFilter
from tidemark.collect.codecs.metadata_image import BrokerAddress
from tidemark.collect.connect.connection import Network, NoAnswerError
from tidemark.collect.metadata.read_offsets import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    read_offset,
)
from tidemark.collect.metadata.refusals import REASSIGNMENTS, RECORDS, TOPIC_CONFIGURATION
from tidemark.collect.sources.log_directories.sidecar import parse_log_dirs
from tidemark.command_line.log_drawing import draw_logs
from tidemark.command_line.options import (
    bootstrap_option,
    cluster_option,
    command_config_option,
    config_option,
    load_with,
    parse_since,
)
from tidemark.command_line.output import echo
from tidemark.command_line.places import NamedPlace, choose_cluster_name, place_argument
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.events import Observation
from tidemark.detect.internal_topics import (
    AT_RISK,
    GROUPS,
    LISTED,
    coordinating_partition,
)
from tidemark.kafka.client import checked_options, choose_connection, make_admin
from tidemark.observations.few_passes import MIN_PASSES, few_passes, live_cluster, report_problems
from tidemark.observations.loss_groups import groups_of
from tidemark.settings import Cluster, Collect, Connection
from tidemark.verbs.inspect.log_directories import show_log_directories
from tidemark.verbs.inspect.losses import show_losses
from tidemark.verbs.inspect.replica_table import heading, is_held, replica_table, stable_lines

# min.insync.replicas may be unreadable for lack of a permission, and who holds a last stable offset
# unknown to old brokers: stop waiting for it.
MAX_PASSES: Final = 8
ANSWER_SECONDS: Final = 5.0
ASKED: Final = {
    EARLIEST_LOCAL: "on its disk from {} on",
    LATEST_TIERED: "in remote storage up to {}",
    EARLIEST_PENDING_UPLOAD: "not uploaded from {} on",
}
# A partition may coordinate thousands.
MAX_NAMES: Final = 50


@click.command("inspect")
@place_argument()
@config_option
@command_config_option
@bootstrap_option
@cluster_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("--losses", is_flag=True, help="List lost committed records.")
@click.option(
    "--groups",
    is_flag=True,
    help="With --losses: which consumer groups read lost records, by their commits now.",
)
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="Losses as CSV. `to` is the first offset that is not lost.",
)
@click.option("--from", "source", metavar="FILE|-", help="Losses in a file of events or alerts.")
@click.option(
    "--since", metavar="TIME|AGE", help="Losses found since: 24h, 7d, 2026-11-21T14:00:00Z."
)
@click.option(
    "--log-dirs", metavar="DIR,…", help="Checkpoints in a broker's log.dirs, or in a copy."
)
def inspect(
    place: NamedPlace | None,
    config: Path | None,
    command_config: Path | None,
    bootstrap: str | None,
    name: str | None,
    as_json: bool,
    losses: bool,
    groups: bool,
    as_csv: bool,
    source: str | None,
    since: str | None,
    log_dirs: str | None,
) -> int:
    """Show the replicas of TOPIC as the brokers report them now.

    Of one partition, also draw each replica's log and compare it with the leader's.

    With --losses, list the committed records that are lost, from Tidemark's topic of alerts.
    TOPIC-PARTITION and --cluster then narrow the list. Exit status: 0 none, 3 losses found.

    With --log-dirs, show what a broker would start from, by the files of its log directories.
    Exit status: 3 when a file cannot be used.
    """
    if log_dirs is not None:
        if losses or bootstrap is not None:
            raise ConfigError("--log-dirs reads files; leave out --losses and --bootstrap.")
        return show_log_directories(parse_log_dirs(log_dirs), place, as_json=as_json)
    settings = load_with(config, command_config)
    name = choose_cluster_name([] if place is None else [place], name)
    if losses:
        if as_csv and as_json:
            raise ConfigError("--csv and --json exclude each other.")
        if groups and as_csv:
            raise ConfigError("--csv has no groups; use --json.")
        settings.kafka = choose_connection(settings, bootstrap)
        found_since = None if since is None else parse_since(since, time.time())
        wanted = LossFilter(None if place is None else place.covers, name, found_since)
        form = "csv" if as_csv else "json" if as_json else "table"
        reaches = partial(groups_of, settings=settings, bootstrap=bootstrap) if groups else None
        return show_losses(settings, wanted, source, form, reaches)
    if as_csv or groups or source is not None or since is not None:
        raise ConfigError("--csv, --groups, --from and --since need --losses.")
    if place is None:
        raise ConfigError("give a topic or --losses.")
    cluster = live_cluster(settings, bootstrap, name)
    show_replicas(cluster, settings.collect, place, as_json=as_json)
    return 0


def show_replicas(cluster: Cluster, settings: Collect, named: NamedPlace, *, as_json: bool) -> None:
    """Prints each partition's replicas, and of a single partition also the logs."""
    observations, brokers = observe_topics(cluster, settings, named.names)
    topic, partition, *_ = named.one_of({o.topic for o in observations})
    observations = [o for o in observations if o.topic == topic]
    selected = [o for o in observations if partition in (None, o.partition)]
    if not selected:
        raise ClusterError(f"topic {topic} has no partition {partition}.")
    for observation in selected:
        if as_json:
            echo(msgspec.json.encode(observation))
            continue
        lines = [*replica_table(observation), *stable_lines(observation)]
        if partition is not None:
            lines += tiered_lines(cluster, observation, brokers)
            lines += ["", *draw_logs(observation, observation.samples)]
            coordinated = list_coordinated(
                cluster, topic, partition, len(observations), observation.leader
            )
            lines += [] if coordinated is None else ["", coordinated]
        echo(heading(observation))
        echo("\n".join(f"  {line}".rstrip() for line in lines) + "\n")


def observe_topics(
    cluster: Cluster, settings: Collect, topics: list[str]
) -> tuple[list[Observation], dict[int, BrokerAddress]]:
    """The observations of the topics' partitions, ascending, and the brokers' addresses.

    Raises ClusterError without any.
    """
    found: dict[tuple[str, int], Observation] = {}
    for done in few_passes(cluster, settings, [re.escape(topic) for topic in topics]):
        for event in (event for batch in done.batches for event in batch.events):
            # A later pass leaves out a partition that did not change.
            if isinstance(event, Observation):
                before = found.get((event.topic, event.partition))
                found[event.topic, event.partition] = (
                    event if before is None else _with_lineages(event, before)
                )
        complete = all(
            o.effective_min_in_sync_replicas is not None
            and (o.open_transaction is not None or not is_held(o))
            for o in found.values()
        )
        if done.number >= (MIN_PASSES if complete else MAX_PASSES):
            break
    report_problems(done, (RECORDS, TOPIC_CONFIGURATION, REASSIGNMENTS))
    if not found:
        close = difflib.get_close_matches(topics[0], done.topics, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ClusterError(
            f"cluster {cluster.name} shows no topic {topics[0]}, "
            f"or this user may not describe it.{hint}"
        )
    return [found[key] for key in sorted(found)], done.brokers


def _with_lineages(observation: Observation, before: Observation) -> Observation:
    """With the lineages of an earlier pass under the same leader: a pass reads them only when due.

    A log that became shorter meanwhile keeps none.
    """
    leadership = (observation.leader, observation.leader_epoch)
    if leadership != (before.leader, before.leader_epoch):
        return observation
    earlier = {sample.broker: sample for sample in before.samples}
    for sample in observation.samples:
        known = earlier.get(sample.broker)
        if known is not None and (sample.log_end_offset or 0) >= (known.log_end_offset or 0):
            sample.lineage = sample.lineage or known.lineage
    newest = observation.lineage or []
    # Most passes read the newest epoch alone.
    if before.lineage and [epoch for epoch, _ in newest] in ([], [before.lineage[-1][0]]):
        observation.lineage = [*before.lineage[:-1], *(newest or before.lineage[-1:])]
        observation.lineage_complete_from = before.lineage_complete_from
    return observation


def tiered_lines(
    cluster: Cluster, observation: Observation, brokers: dict[int, BrokerAddress]
) -> list[str]:
    """What the leader says of its log; none where all of it is on its disk, or that is unknown."""
    found = _read_of_leader(cluster, observation, brokers)
    starts = [s.log_start_offset for s in observation.samples if s.broker == observation.leader]
    if LATEST_TIERED not in found and found.get(EARLIEST_LOCAL) in (None, *starts):
        return []
    parts = [ASKED[what].format(offset) for what, offset in found.items()]
    return ["", f"log of leader {observation.leader}: {', '.join(parts)}"]


def _read_of_leader(
    cluster: Cluster, observation: Observation, brokers: dict[int, BrokerAddress]
) -> dict[int, int]:
    leader, found = observation.leader, dict[int, int]()
    if leader is None or leader not in brokers:
        return found
    network, place = Network(checked_options(cluster)), (observation.topic, observation.partition)
    connection = network.pool().get(leader, brokers[leader].host, brokers[leader].port)

    async def read() -> None:
        with suppress(NoAnswerError):
            await connection.ready(ANSWER_SECONDS)
            for what in ASKED:
                answer = await read_offset(connection, place, what, ANSWER_SECONDS)
                if not isinstance(answer, str) and answer[0] >= 0:
                    found[what] = answer[0]

    network.loop.run(read)
    connection.close()
    network.loop.close()
    return found


def list_coordinated(
    connection: Connection, topic: str, partition: int, partitions: int, leader: int | None
) -> str | None:
    """A line with their names; null for other topics. `partitions` is the topic's number.

    The broker that leads the partition is their coordinator. It does not know, and cannot list,
    names with lost records.
    """
    if topic not in LISTED:
        return None
    subject = f"{AT_RISK[topic].owners} coordinated here"
    if leader is None:
        return f"{subject}: unknown, the partition has no leader"
    admin = make_admin(connection)
    try:
        names = set(_ask(admin, topic, leader))
    except (kafka_errors.KafkaError, KeyError) as error:
        return f"{subject}: cannot be listed ({type(error).__name__}); this needs DESCRIBE on them"
    finally:
        admin.close()
    found = sorted(name for name in names if coordinating_partition(name, partitions) == partition)
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    return f"{subject}: {', '.join(found[:MAX_NAMES]) or 'none now'}{more}"


def _ask(admin: Any, topic: str, broker: int) -> list[str]:
    if topic == GROUPS:
        return [group["group_id"] for group in admin.list_groups([broker])]
    listings = admin.list_transactions([broker]).values()
    return [listing.transactional_id for found in listings for listing in found]

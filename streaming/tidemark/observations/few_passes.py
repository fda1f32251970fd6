"""A few collection passes over a live cluster, for verbs that report its state once and exit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from tidemark.collect.cluster_choice import select_clusters
from tidemark.collect.codecs.metadata_image import BrokerAddress
from tidemark.collect.collection_pass import PassRunner
from tidemark.collect.metadata.refusals import ASKED, refusal_line
from tidemark.command_line.options import require_one
from tidemark.command_line.output import echo
from tidemark.core.broker_outcome_texts import BrokerFinding
from tidemark.core.codec import decode_batch
from tidemark.core.events import Batch
from tidemark.kafka.client import check_reachable
from tidemark.kafka.client_log import quiet_client_logs
from tidemark.observations.cluster_views import ClusterViews
from tidemark.settings import Cluster, Collect, Settings

# The first pass starts reads that only a later pass reports: minimum in-sync replicas, eligible
# leader replicas, reassignments.
MIN_PASSES: Final = 2
MAX_SILENT_PASSES: Final = 4
PAUSE_SECONDS: Final = 0.2


class FinishedPass(NamedTuple):
    """What a pass observed. `seconds` have passed since the start of the first one."""

    number: int
    seconds: float
    batches: list[Batch]
    # All topics of the cluster, whether they are observed or not.
    topics: set[str]
    # What brokers refuse to answer: `tidemark.collect.metadata.refusals.ASKED`.
    refused: dict[str, tuple[str, ...]]
    # What is wrong with brokers, or with the bootstrap servers where no broker is known.
    findings: list[BrokerFinding]
    brokers: dict[int, BrokerAddress]


def live_cluster(settings: Settings, bootstrap: str | None, name: str | None) -> Cluster:
    """The one cluster that the flags choose. Raises ClusterError where it does not answer."""
    quiet_client_logs()
    clusters = select_clusters(settings, bootstrap, name).clusters
    require_one([cluster.name for cluster in clusters])
    if sys.stderr.isatty():
        servers = ", ".join(clusters[0].bootstrap_servers)
        echo(f"connecting to {clusters[0].name} ({servers})", err=True)
    check_reachable(clusters[0])
    return clusters[0]


def few_passes(
    cluster: Cluster, settings: Collect, topics: list[str], without: Sequence[str] = ()
) -> Iterator[FinishedPass]:
    """Passes without end over all topics that match, in all shards. Leave the loop to stop.

    The first ones in which no broker answers are left out: an address may be one of several
    backends, of which one is dead.
    """
    watched = msgspec.structs.replace(
        cluster, topics_allow=topics, topics_deny=list(without), shard=0, shards=1
    )
    passes = PassRunner(watched, settings, 1, int(time.time() * 1000), keeps_pace=False)
    started, silent = time.monotonic(), 0
    try:
        while True:
            records = passes.loop.run(passes.run, set())
            if not passes.inventory.brokers and silent < MAX_SILENT_PASSES:
                silent += 1
            else:
                yield FinishedPass(
                    passes.number - silent,
                    time.monotonic() - started,
                    [decode_batch(record.payload) for record in records],
                    passes.inventory.listed,
                    passes.refused(),
                    passes.findings,
                    passes.inventory.brokers,
                )
            passes.loop.run(passes.loop.sleep, PAUSE_SECONDS)
    finally:
        passes.close()


def observe_views(
    cluster: Cluster,
    settings: Settings,
    topics: str,
    whats: Collection[str],
    is_enough: Callable[[FinishedPass, ClusterViews], bool],
) -> ClusterViews:
    """The views of all topics that match, after as many passes as it takes until `is_enough`.

    Reports on standard error what brokers refuse of `whats`.
    """
    found = ClusterViews(settings.detect)
    for done in few_passes(cluster, settings.collect, [topics]):
        for batch in done.batches:
            found.add(batch)
        if is_enough(done, found):
            break
    report_problems(done, whats)
    return found


def report_problems(done: FinishedPass, whats: Collection[str]) -> None:
    """Brokers that cannot be relied on, and what a verb cannot know for want of a right.

    On standard error.
    """
    for finding in done.findings:
        echo(str(finding), err=True)
    for what in ASKED:
        if what in whats and what in done.refused:
            echo(refusal_line(what, done.refused[what]), err=True)

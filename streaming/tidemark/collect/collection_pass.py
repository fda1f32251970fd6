"""Collection passes over one cluster. An observation takes six steps:

1. `MetadataReader` reads the images of two brokers; `Inventory` merges them into watched
   partitions.
2. `BrokerPlan` encodes the requests to each broker.
3. `Sampler` asks each broker: its leaders, its followers, its leaders again, and lineages that may
   have changed.
4. `Observer` makes one `Observation` of all answers for a partition, or none while the partition is
   quiet.
5. `Packer` packs the observations and ends the pass with its record in every Kafka partition of the
   event topic.
6. `Publisher` sends the records (by the caller of `PassRunner.run`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import structlog

from tidemark.collect.codecs.metadata_image import TopicPartition
from tidemark.collect.connect.connection import BrokerConnection, Network
from tidemark.collect.metadata.broker_queries import identify
from tidemark.collect.metadata.broker_reports import BrokerReports
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.metadata.metadata_reader import MetadataReader
from tidemark.collect.metadata.open_transactions import STUCK_SECONDS
from tidemark.collect.metadata.quorum_nodes import QuorumNodes
from tidemark.collect.metadata.refusals import NO_TOPIC, RECORDS, TOPICS, denied_topics
from tidemark.collect.observe.broker_outcomes import broker_answers
from tidemark.collect.observe.observer import Observer
from tidemark.collect.publish.pack import EventRecord, Packer
from tidemark.collect.sample.fast_high_watermarks import FastHighWatermarks
from tidemark.collect.sample.sampling_round import sample_brokers
from tidemark.collect.sources.source import Source, add_source_events
from tidemark.collect.watched.request_plan import BrokerPlan
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.broker_outcome_texts import NOT_CHECKED, BrokerFinding, broker_findings
from tidemark.core.events import (
    OK,
    REFUSED,
    TIMED_OUT,
    BrokerState,
    PartitionDeleted,
    Pass,
)
from tidemark.core.fetch_links import LinkCounter
from tidemark.garbage_collector import collection_paused
from tidemark.kafka.client import checked_options
from tidemark.settings import Cluster, Collect

log = structlog.get_logger()

SMALL_CLUSTER: Final = 2_000
# How long a pass waits for a slow broker: this share of its period, at least so many time-outs.
# More than one: a request that was sent when the other brokers ended still times out by itself.
# Each so many passes wait in full, so that a slow broker is sampled in full now and then.
LATE_SHARE: Final = 0.5
LATE_TIMEOUTS: Final = 1.25
PASSES_PER_FULL_WAIT: Final = 10
# A barrier waits twice as long as the slowest broker took recently, and at least this long. A
# broker that failed before has this long to reconnect.
PATIENCE_SECONDS: Final = 0.05


class PassRunner:
    """Runs passes over one cluster. `groups`: the number of Kafka partitions of the event topic.

    `keeps_pace`: a pass goes on without a slow broker. Otherwise it waits as long as the time-outs
    allow, for callers who need all answers of a few passes: also who holds a last stable offset
    that may move yet. `network`: how to reach the brokers, by
    default by the options of the cluster.

    Raises ConfigError for options of the cluster that kafka-python does not take.
    """

    # Of the pass under way: its start (monotonic), its records, and how long a barrier waits.
    _started: float
    _packer: Packer
    _patience_seconds: float

    def __init__(
        self,
        cluster: Cluster,
        settings: Collect,
        groups: int,
        epoch: int,
        sources: Sequence[Source] = (),
        clock: Callable[[], float] = time.time,
        *,
        keeps_pace: bool = True,
        network: Network | None = None,
    ) -> None:
        network = network or Network(checked_options(cluster))
        self.cluster = cluster
        self.loop = network.loop
        self.inventory = Inventory(cluster, groups)
        self.number = 0
        # The next pass follows at once: an answer contradicted the metadata, or a broker just
        # failed.
        self.immediate_next_pass = False
        # The pass had no news: all answered, all replicas are in sync and had what their leader had
        # in the pass before, and only offsets differ from it.
        self.is_steady = False
        # When a broker last answered (monotonic); the start counts as an answer.
        self.answered_at = time.monotonic()
        self.observed = self.thinned = self.missed = 0
        self.outcomes: dict[int, str] = {}
        # Of the brokers in the last pass; of the bootstrap servers, where none is known.
        self.findings: list[BrokerFinding] = []
        self._links = LinkCounter()
        # Brokers that are in `outcomes`; each answered since the start.
        self._have_answered: set[int] = set()
        self._settings = settings
        self._timeout = settings.broker_timeout_seconds
        self._keeps_pace = keeps_pace
        self._groups = groups
        self._epoch = epoch
        self._wall_offset = clock() - time.monotonic()
        stuck_seconds = STUCK_SECONDS if keeps_pace else 0.0
        self._reader = MetadataReader(network, self.inventory, cluster, settings, stuck_seconds)
        self._connections = network.pool(self._identify)
        self.reports = BrokerReports(network, settings.configuration_seconds)
        self._plans: dict[int, BrokerPlan] = {}
        self._must_plan = True
        self._quorum_nodes = QuorumNodes()
        self._sources = sources
        self.fast = FastHighWatermarks(self.loop, settings.fast_high_watermark_topics, self._wall)
        # How long the slowest broker that answered took for its first answers; it rises at once and
        # falls slowly.
        self._slowest_seconds = self._timeout

    @property
    def period_seconds(self) -> float:
        small = len(self.inventory.partitions) <= SMALL_CLUSTER
        return self._settings.pass_seconds or (1.0 if small else 5.0)

    async def run(self, missed_elsewhere: set[TopicPartition]) -> list[EventRecord]:
        """One pass. Returns its records, with the pass records last. Broker failures never raise.

        `missed_elsewhere`: partitions whose earlier observations were lost before they were
        published.
        """
        with collection_paused():
            return await self._run(missed_elsewhere)

    async def _run(self, missed_elsewhere: set[TopicPartition]) -> list[EventRecord]:
        self.number += 1
        self.is_steady = True
        self._started = time.monotonic()
        self._packer = Packer(
            self.cluster.name, self._settings.collector, self._epoch, self.number, self._groups
        )
        patience = max(2 * self._slowest_seconds, PATIENCE_SECONDS)
        self._patience_seconds = min(patience, self._timeout)

        await self._read_metadata()
        self._apply_metadata()
        self._plan_requests()
        await self._connect_new_brokers()
        await self._sample()
        await self._confirm_leaders()
        add_source_events(self._sources, self.inventory, self._packer, self._broker_events())
        missed = self._observe(missed_elsewhere)
        self._reader.transactions.start(self._live(), self._started)
        places = [(watched.group, (watched.topic, watched.number)) for watched in missed]
        records = self._packer.finish(self._pass_record(), places)
        self.is_steady &= (
            not missed
            and not self.immediate_next_pass
            and all(finding.outcome == NOT_CHECKED for finding in self.findings)
            and not self._reader.reassigning
            and self.inventory.all_in_sync
            and all(outcome == OK for outcome in self.outcomes.values())
        )
        return records

    async def rest(self, over: Any, seconds: float, *, may_end_early: bool) -> bool:
        """Waits for the next pass, or until the Future `over` is completed.

        True: that pass is due at once, because a leader went away.
        """
        connections = self._connections.by_broker
        is_early = await self.fast.rest(connections, over, seconds, may_end_early=may_end_early)
        # Then it reads the metadata.
        self.immediate_next_pass |= is_early
        return is_early

    async def _read_metadata(self) -> None:
        """Connects, and starts the reads that are due. Waits for images, and for no other read."""
        attempts = [(c, c.connect(self._timeout)) for c in self._unconnected()]
        images_due = self._images_due()
        self.immediate_next_pass = False
        live = self._live()
        images = self._reader.start_images(live) if images_due else []
        self._reader.start_queries(live, self._started, images_due=images_due)
        self.reports.start(live, self._started)
        await self.loop.wait([attempt for c, attempt in attempts if not c.failures], self._timeout)
        await self.loop.wait(
            images, 5 * self._timeout if self.number == 1 else self._patience_seconds
        )
        await self.loop.wait([attempt for _, attempt in attempts], PATIENCE_SECONDS)

    def _images_due(self) -> bool:
        return (
            self.immediate_next_pass
            or not self.inventory.brokers
            or self._reader.are_images_due(self._started)
            or any(outcome != OK for outcome in self.outcomes.values())
            or not self.inventory.all_in_sync
        )

    async def _identify(self, connection: BrokerConnection, seconds: float) -> str:
        """Where who answers cannot be asked, the address alone is no proof of every broker."""
        found = await identify(connection, seconds, self.inventory.cluster_id)
        return self.inventory.judge_address(connection.broker) if found == NOT_CHECKED else found

    def _live(self) -> dict[int, BrokerConnection]:
        return {b: c for b, c in self._connections.by_broker.items() if c.connected}

    def _unconnected(self) -> list[BrokerConnection]:
        return [c for c in self._connections.by_broker.values() if not c.connected]

    def _apply_metadata(self) -> None:
        """Merges the images that were read, and adds the partitions that are gone."""
        reader, inventory, connections = self._reader, self.inventory, self._connections
        if reader.deleted:
            self._add_gone(inventory.remove(reader.deleted))
            reader.deleted = set()
            self._must_plan = True
        images, reader.images = reader.images, []
        if not images:
            return
        live = self._live()
        silent = self._have_answered - live.keys()
        stopped = {broker for broker in silent if self.outcomes.get(broker) == REFUSED}
        known = inventory.cluster_id
        changes = inventory.apply(images, reader.only_current_broker(live), stopped)
        if known not in (None, inventory.cluster_id):
            log.warning("another cluster answers", known=known, found=inventory.cluster_id)
        self._add_gone(changes.recreated)
        # A broker that just started may show none.
        if inventory.listed or len(images) > 1 or not inventory.partitions:
            reader.refusals.note(TOPICS, None if inventory.listed else NO_TOPIC)
        if changes.added:
            reader.read_configurations_again()
        if changes.reassigned:
            reader.list_reassignments(live)
        if changes.absent:
            reader.confirm_deleted(live, changes.absent)
        for broker, place in inventory.brokers.items():
            connections.get(broker, place.host, place.port)
        for broker in connections.by_broker.keys() - inventory.brokers.keys():
            connections.drop(broker)
            self.outcomes.pop(broker, None)
            self._have_answered.discard(broker)
        self._must_plan |= changes.replan or not inventory.brokers.keys() <= self._plans.keys()

    def _add_gone(self, gone: list[WatchedPartition]) -> None:
        at = self._wall(time.monotonic())
        for w in gone:
            event = PartitionDeleted(
                topic=w.topic, partition=w.number, observed_at=at, topic_id=w.topic_id
            )
            self._packer.add(w.group, event)

    def _plan_requests(self) -> None:
        """Encodes the requests again after a change of leaders, epochs, replicas or brokers."""
        if not self._must_plan:
            return
        self._must_plan = self.is_steady = False
        hosted: dict[int, list[WatchedPartition]] = {b: [] for b in self.inventory.brokers}
        for watched in self.inventory.partitions.values():
            watched.slots, watched.is_settled = {}, False
            for broker in watched.metadata.replicas:
                hosted.setdefault(broker, []).append(watched)
        self._plans = {broker: BrokerPlan(broker, found) for broker, found in hosted.items()}
        self.fast.plan(self._plans.values())

    async def _connect_new_brokers(self) -> None:
        new = [c.connect(self._timeout) for c in self._unconnected() if not c.failures]
        await self.loop.wait(new, self._timeout)

    @property
    def _late_seconds(self) -> float:
        """How long a pass waits for slow brokers once half of the brokers have ended."""
        if not self._keeps_pace or self.number % PASSES_PER_FULL_WAIT == 1:
            return math.inf
        return max(LATE_TIMEOUTS * self._timeout, LATE_SHARE * self.period_seconds)

    async def _sample(self) -> None:
        """All brokers at once. Sets their answers and outcomes."""
        live, begun = self._live(), time.monotonic()
        # A settled partition has none due.
        watched = self.inventory.partitions.values()
        lineage_due = [w for w in watched if not w.is_settled and w.lineage.reads_left]
        sampled = await sample_brokers(
            self.loop,
            live,
            self._plans,
            lineage_due,
            self._timeout,
            self._patience_seconds,
            self._late_seconds,
        )
        for plan in self._plans.values():
            plan.note_answers()
        took = [
            answers.latest_times.answered_at - begun
            for answers in sampled.values()
            if answers.outcome == OK and answers.latest_times and not answers.is_late
        ]
        self._slowest_seconds = max([0.8 * self._slowest_seconds, *took])
        for broker, connection in self._connections.by_broker.items():
            # Without a failure the attempt to connect is under way, longer than a time-out.
            failure = connection.outcome if connection.failures else TIMED_OUT
            outcome = (sampled[broker].outcome if broker in sampled else failure) or TIMED_OUT
            self.immediate_next_pass |= outcome != OK and self.outcomes.get(broker) == OK
            self.outcomes[broker] = outcome
            if outcome == OK:
                self._have_answered.add(broker)
        self._note_unreadable({broker: self._plans[broker] for broker in sampled})
        if OK in self.outcomes.values():
            self.answered_at = time.monotonic()

    def _note_unreadable(self, sampled: dict[int, BrokerPlan]) -> None:
        """The topics that may not be read, by the brokers that answered."""
        names: dict[int, set[str]] = {
            broker: {plan.slots[i].topic for i in plan.answers.unreadable}
            for broker, plan in sampled.items()
            if plan.answers.outcome == OK and not plan.answers.is_late
        }
        if names:
            # Brokers answer alike: each has the ACLs of the cluster.
            self._reader.refusals.note(RECORDS, denied_topics(set().union(*names.values())))

    def refused(self) -> dict[str, tuple[str, ...]]:
        """What brokers refuse to answer (`refusals.ASKED`) -> Kafka's errors."""
        return {**self._reader.refusals.reasons(), **self.reports.refused()}

    async def _confirm_leaders(self) -> None:
        """Reads metadata again where a broker has no fences: see `Observer`."""
        if any(not plan.answers.fenced for plan in self._plans.values()):
            images = self._reader.start_images(self._live())
            await self.loop.wait(images, self._timeout)
            self._apply_metadata()

    def _observe(self, missed_elsewhere: set[TopicPartition]) -> set[WatchedPartition]:
        """Adds the observations. Returns the missed partitions."""
        partitions = self.inventory.partitions
        missed = {partitions[place] for place in missed_elsewhere if place in partitions}
        for watched in missed:
            watched.forget_quiet_state()
        observer = Observer(
            self.outcomes,
            self._wall,
            self._started,
            self._settings.thin_seconds,
            self._links,
            self._reader.transactions,
        )
        now = time.monotonic()
        self.observed = 0
        for watched in partitions.values():
            # As `Observer.observe`, without a call for each quiet partition.
            if watched.is_settled and now < watched.due_at and not watched.fast_high_watermarks:
                observer.thinned += 1
                continue
            observation = observer.observe(watched, now)
            if observation is not None:
                self.observed += 1
                self._packer.add(watched.group, observation)
        missed |= observer.missed
        self.thinned, self.missed = observer.thinned, len(missed)
        self.immediate_next_pass |= observer.found_stale
        self.is_steady &= not observer.found_news
        return missed

    def _wall(self, monotonic: float) -> float:
        """Wall time that never runs backward: that of the start, plus monotonic time since."""
        return monotonic + self._wall_offset

    def _broker_events(self) -> Iterator[BrokerState]:
        """What brokers report of themselves, and changed nodes of the metadata quorum.

        Sizes of replicas go with observations.
        """
        for report in self.reports.take():
            yield report.event(self._wall(report.at))
            if report.log_directories is not None:
                self.inventory.set_sizes(report.broker, report.log_directories.sizes)
        if self._reader.quorum is not None:
            at = self._wall(self._reader.quorum_at)
            yield from self._quorum_nodes.changes(self._reader.quorum, self._reader.fenced, at)

    def _pass_record(self) -> Pass:
        cluster, quorum, ended = self.cluster, self._reader.quorum, time.monotonic()
        self.inventory.left_replicas.led_shrinks.settle(self.outcomes, ended)
        answers = broker_answers(
            self.inventory,
            self._plans,
            self.outcomes,
            {b: c.identity_checked for b, c in self._connections.by_broker.items()},
            self._started,
            self._reader.fenced,
        )
        self.findings = [*broker_findings(answers)] or self._reader.silent_bootstrap()
        return Pass(
            number=self.number,
            started_at=self._wall(self._started),
            ended_at=self._wall(ended),
            monotonic=ended,
            period_ms=self.period_seconds * 1000,
            brokers=answers,
            cluster_id=self.inventory.cluster_id,
            partitions=len(self.inventory.partitions),
            quorum_leader=quorum.leader if quorum else None,
            quorum_epoch=quorum.epoch if quorum else None,
            reassigning=self._reader.reassigning,
            shard=f"{cluster.shard}/{cluster.shards}" if cluster.shards > 1 else None,
            links=self._links.take(self._wall(ended)),
        )

    def close(self) -> None:
        for source in self._sources:
            source.close()
        self._reader.close()
        self.reports.close()
        self._connections.close()
        self.loop.close()

"""A collection pass over one cluster: metadata when due, samples of every broker, one observation per partition, a pass record."""

from __future__ import annotations

import time
from typing import Any, Final

from tidemark.collect.control import Control
from tidemark.collect.inventory import Applied, Inventory, Watched
from tidemark.collect.links import Link
from tidemark.collect.loop import Gate, Loop
from tidemark.collect.metadata import View
from tidemark.collect.observe import MISSED, THINNED, Clock, Observer
from tidemark.collect.pack import Packer, Place, Record
from tidemark.collect.plan import BrokerPlan
from tidemark.collect.sample import Sampler
from tidemark.core.events import OK, TIMED_OUT, BrokerAnswer, BrokerState, Gone, Pass
from tidemark.settings import Cluster, Collect, parse_address

SMALL_CLUSTER: Final = 2_000
# A sampler has this many time-outs in all; one that trickles is cut off.
SAMPLER_TIMEOUTS: Final = 4
# How long brokers that do answer are waited for at a gate: twice what the slowest took lately, but this at least. One
# that failed before has this long to be back.
PATIENCE_SECONDS: Final = 0.05
# How far a node of the quorum is behind is told anew when it passes one of these: at first by what matters, then by doubling.
LAG_BANDS_MS: Final = (1_000, *(10_000 * 2**step for step in range(10)))


class Passes:
    """The passes of one collector over one cluster. `missed_elsewhere` are partitions whose observations were lost later."""

    def __init__(
        self,
        loop: Loop,
        options: dict[str, Any],
        cluster: Cluster,
        settings: Collect,
        groups: int,
        epoch: int,
    ) -> None:
        self.cluster = cluster
        self.inventory = Inventory(cluster, groups)
        bootstrap = [parse_address(server) for server in cluster.bootstrap_servers]
        self.control = Control(loop, options, self.inventory, bootstrap)
        self.links: dict[int, Link] = {}
        self.plans: dict[int, BrokerPlan] = {}
        self.number = 0
        # The next pass should follow at once: an answer contradicted the metadata, or a broker just went away.
        self.hurry = False
        self.answered_at: float | None = None
        self.observed = self.thinned = self.missed = 0
        self._loop = loop
        self._options = options
        self._settings = settings
        self._groups = groups
        self._epoch = epoch
        self._clock = Clock()
        self._metadata_at = self._side_at = self._configurations_at = -1e9
        # How long the slowest broker that answered took for its first look; it rises at once and falls slowly.
        self._slowest = settings.broker_timeout_seconds
        self._replan = True
        self.outcomes: dict[int, str] = {}
        self._broker_states: dict[int, object] = {}

    @property
    def period_seconds(self) -> float:
        small = len(self.inventory.partitions) <= SMALL_CLUSTER
        return self._settings.pass_seconds or (1.0 if small else 5.0)

    async def run(self, missed_elsewhere: set[Place]) -> list[Record]:
        """One pass. Gives the records to publish, observations before pass records. Never raises for what a broker does."""
        started = time.monotonic()
        self.number += 1
        timeout = self._settings.broker_timeout_seconds
        patience = min(max(2 * self._slowest, PATIENCE_SECONDS), timeout)
        packer = Packer(
            self.cluster.name, self._settings.collector, self._epoch, self.number, self._groups
        )
        await self._prepare(packer, started, timeout, patience)
        await self._sample(timeout, patience)
        if any(not plan.fenced for plan in self.plans.values()):
            # Brokers without fences: their high watermarks count only if metadata names the same leader afterwards.
            await self._loop.wait(self._read_views(), timeout)
            self._apply(packer, replan=False)
        missed = self._observe(packer, started, missed_elsewhere)
        self._add_broker_states(packer)
        return packer.finish(self._pass_record(started), missed)

    async def _prepare(
        self, packer: Packer, started: float, seconds: float, patience: float
    ) -> None:
        """Connects, reads metadata when it is due, and plans the requests."""
        first = self.number == 1
        attempts = [
            (link, link.connect(seconds)) for link in self.links.values() if not link.connected
        ]
        due = self._metadata_due(started)
        self.hurry = False
        views = self._read_views() if due else []
        self._read_aside(started, due)
        # One that failed before may take its time; it is hardly waited for.
        await self._loop.wait([future for link, future in attempts if link.failures == 0], seconds)
        await self._loop.wait(views, 5 * seconds if first else patience)
        await self._loop.wait([future for _, future in attempts], PATIENCE_SECONDS)
        self._apply(packer)
        fresh = [
            link.connect(seconds)
            for link in self.links.values()
            if not link.connected and link.failures == 0
        ]
        await self._loop.wait(fresh, seconds)

    def _metadata_due(self, now: float) -> bool:
        trouble = any(outcome != OK for outcome in self.outcomes.values())
        trouble = trouble or any(
            not watched.all_in_sync for watched in self.inventory.partitions.values()
        )
        return (
            self.hurry
            or trouble
            or now - self._metadata_at >= self._settings.metadata_seconds
            or not self.inventory.brokers
        )

    def live(self) -> dict[int, Link]:
        return {broker: link for broker, link in self.links.items() if link.connected}

    def _read_views(self) -> list[Any]:
        self._metadata_at = time.monotonic()
        return [
            self.control.start(f"view {link.broker}", self.control.read_view, link)
            for link in self.control.chosen(self.live())
        ]

    def _read_aside(self, now: float, metadata_due: bool) -> None:
        """Starts the other reads that are due; they end when they end."""
        live = self.live()
        if not live:
            return
        control = self.control
        chosen = control.chosen(live)
        link = chosen[0]
        if metadata_due:
            control.start("quorum", control.read_quorum, link)
        if now - self._side_at >= self._settings.metadata_seconds or self.number == 1:
            self._side_at = now
            control.start(
                "reassignments", control.read_reassignments, control.chosen_controller(live) or link
            )
            control.start("eligible", control.read_eligible, link, sorted(self.inventory.topics()))
        elif metadata_due:
            changing = sorted(
                {w.topic for w in self.inventory.partitions.values() if not w.all_in_sync}
            )
            control.start("eligible", control.read_eligible, link, changing)
        if (
            now - self._configurations_at >= self._settings.configuration_seconds
            and self.inventory.partitions
        ):
            self._configurations_at = now
            control.start(
                "configurations", control.read_configurations, link, sorted(self.inventory.topics())
            )

    def _apply(self, packer: Packer, replan: bool = True) -> None:
        """Takes in the metadata that came; tells of what is gone. Without `replan` the requests stay for this pass."""
        views, self.control.views = self.control.views, []
        now = time.monotonic()
        if self.control.gone:
            self._tell_gone(packer, self.inventory.remove(self.control.gone), now)
            self.control.gone = set()
            self._replan = True
        if views:
            self._merge(packer, views, now)
        if replan and self._replan:
            self._plan()

    def _merge(self, packer: Packer, views: list[View], now: float) -> None:
        applied: Applied = self.inventory.apply(views, self.control.sole_witness(self.live(), now))
        self._tell_gone(packer, applied.recreated, now)
        if applied.new_topics:
            self._configurations_at = -1e9
        if applied.absent:
            self.control.start(
                "gone", self.control.confirm_gone, self.control.chosen(self.live()), applied.absent
            )
        self._sync_links()
        self._replan |= applied.replan or set(self.plans) != set(self.inventory.brokers)

    def _tell_gone(self, packer: Packer, gone: list[Watched], now: float) -> None:
        for w in gone:
            packer.add(
                w.group,
                Gone(
                    topic=w.topic,
                    partition=w.number,
                    observed_at=self._clock.wall(now),
                    topic_id=w.topic_id,
                ),
            )

    def _sync_links(self) -> None:
        for broker, place in self.inventory.brokers.items():
            link = self.links.get(broker)
            if link is None or (link.host, link.port) != (place.host, place.port):
                if link is not None:
                    link.close()
                self.links[broker] = Link(self._loop, self._options, broker, *place)
        for broker in set(self.links) - set(self.inventory.brokers):
            self.links.pop(broker).close()
            self.outcomes.pop(broker, None)

    def _plan(self) -> None:
        self._replan = False
        hosted: dict[int, list[Watched]] = {broker: [] for broker in self.inventory.brokers}
        for watched in self.inventory.partitions.values():
            for broker in watched.seat.replicas:
                hosted.setdefault(broker, []).append(watched)
        self.plans = {broker: BrokerPlan(broker, slots) for broker, slots in hosted.items()}
        for watched in self.inventory.partitions.values():
            found = [
                (plan, plan.place(watched))
                for broker in watched.seat.replicas
                if (plan := self.plans.get(broker))
            ]
            places = [(plan, index) for plan, index in found if index is not None]
            watched.places = places if len(places) == len(watched.seat.replicas) else None
            watched.raw = None

    async def _sample(self, seconds: float, patience: float) -> None:
        live = self.live()
        begun = time.monotonic()
        gates = (Gate(self._loop, len(live), patience), Gate(self._loop, len(live), 2 * patience))
        for every in self.plans.values():
            every.begin()
        futures = [
            self._loop.spawn(self._sample_one, link, self.plans[b], gates, seconds)
            for b, link in live.items()
            if b in self.plans
        ]
        await self._loop.wait(futures, (SAMPLER_TIMEOUTS + 1) * seconds)
        took = [
            p.latest_asked.answered_at - begun
            for p in self.plans.values()
            if p.outcome == OK and p.latest_asked
        ]
        self._slowest = max([0.8 * self._slowest, *took])
        for broker, link in self.links.items():
            before = self.outcomes.get(broker)
            plan = self.plans.get(broker)
            asked = broker in live and plan is not None
            self.outcomes[broker] = (
                plan.outcome if asked and plan is not None else link.outcome
            ) or TIMED_OUT
            self.hurry |= before == OK and self.outcomes[broker] != OK
        if OK in self.outcomes.values():
            self.answered_at = time.monotonic()

    async def _sample_one(
        self, link: Link, plan: BrokerPlan, gates: tuple[Gate, Gate], seconds: float
    ) -> None:
        try:
            await self._loop.within(
                SAMPLER_TIMEOUTS * seconds, Sampler(link, plan, gates, seconds).run
            )
        except TimeoutError:
            plan.outcome = TIMED_OUT
            link.close()

    def _observe(
        self, packer: Packer, started: float, missed_elsewhere: set[Place]
    ) -> list[tuple[int, Place]]:
        observer = Observer(
            self.plans, self.outcomes, self._clock, started, self._settings.thin_seconds
        )
        missed: list[tuple[int, Place]] = []
        self.observed = self.thinned = 0
        now = time.monotonic()
        for place, watched in self.inventory.partitions.items():
            if place in missed_elsewhere:
                missed.append((watched.group, place))
                watched.signature = watched.raw = None
            found = observer.observe(watched, now)
            if found is THINNED:
                self.thinned += 1
            elif found is MISSED:
                if place not in missed_elsewhere:
                    missed.append((watched.group, place))
            else:
                self.observed += 1
                packer.add(watched.group, found)
        self.missed = len(missed)
        self.hurry |= observer.stale
        return missed

    def _add_broker_states(self, packer: Packer) -> None:
        """Each node of the quorum whose standing changed."""
        quorum = self.control.quorum
        if quorum is None:
            return
        for node, state in quorum.replicas.items():
            behind = (
                None
                if state.lag_ms is None
                else sum(state.lag_ms >= limit for limit in LAG_BANDS_MS)
            )
            standing = (self.control.fenced.get(node), state.is_voter, behind)
            if self._broker_states.get(node) != standing:
                self._broker_states[node] = standing
                packer.broadcast(
                    BrokerState(
                        broker=node,
                        observed_at=self._clock.wall(self.control.quorum_at),
                        fenced=standing[0],
                        is_voter=state.is_voter,
                        metadata_log_end_offset=state.log_end_offset,
                        metadata_lag_ms=state.lag_ms,
                    )
                )
        for node in self._broker_states.keys() - quorum.replicas.keys():
            # A voter that was taken out of the quorum counts no longer.
            del self._broker_states[node]
            packer.broadcast(
                BrokerState(
                    broker=node,
                    observed_at=self._clock.wall(self.control.quorum_at),
                    is_voter=False,
                )
            )

    def _pass_record(self, started: float) -> Pass:
        quorum = self.control.quorum
        ended = time.monotonic()
        brokers = []
        for broker, place in self.inventory.brokers.items():
            plan = self.plans.get(broker)
            tally = self.inventory.tally(broker)
            asked = (
                plan.leaders_asked or plan.followers_asked or plan.latest_asked if plan else None
            )
            took = round((asked.answered_at - started) * 1000, 3) if asked else None
            brokers.append(
                BrokerAnswer(
                    broker=broker,
                    outcome=self.outcomes.get(broker, TIMED_OUT),
                    host=place.host,
                    port=place.port,
                    rack=place.rack,
                    answered_ms=took,
                    preferred=tally.preferred,
                    preferred_led=tally.preferred_led,
                    in_sync=tally.in_sync,
                )
            )
        return Pass(
            number=self.number,
            started_at=self._clock.wall(started),
            ended_at=self._clock.wall(ended),
            monotonic=ended,
            period_ms=self.period_seconds * 1000,
            brokers=brokers,
            cluster_id=self.inventory.cluster_id,
            partitions=len(self.inventory.partitions),
            quorum_leader=quorum.leader if quorum else None,
            quorum_epoch=quorum.epoch if quorum else None,
            shard=f"{self.cluster.shard}/{self.cluster.shards}"
            if self.cluster.shards > 1
            else None,
        )

    def close(self) -> None:
        self.control.close()
        for link in self.links.values():
            link.close()

"""Reads metadata and the other slow answers beside the samples, over connections of its own.

A broker answers one request per connection at a time; a read of configurations must not delay a
sample.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from tidemark.collect.codecs.metadata import MetadataDecoder
from tidemark.collect.codecs.metadata_image import (
    UNKNOWN_TOPIC_OR_PARTITION,
    MetadataImage,
    Reassignment,
    TopicPartition,
)
from tidemark.collect.connect.connection import BrokerConnection, Network, NoAnswerError
from tidemark.collect.metadata.admin_queries import (
    Quorum,
    read_configurations,
    read_fenced,
    read_quorum,
    read_reassignments,
)
from tidemark.collect.metadata.broker_queries import identify
from tidemark.collect.metadata.eligible_replicas import read_eligible_replicas
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.metadata.open_transactions import STUCK_SECONDS, OpenTransactions
from tidemark.collect.metadata.read_metadata import read_metadata, read_metadata_of
from tidemark.collect.metadata.refusals import (
    QUORUM,
    REASSIGNMENTS,
    TOPIC_CONFIGURATION,
    Refusals,
    RefusedError,
    denied_topics,
)
from tidemark.core.broker_outcome_texts import BrokerFinding, meaning_of
from tidemark.settings import Cluster, Collect, parse_address

# A broker that just came back may show an old image (for some 100 ms after a pause).
SETTLING_SECONDS: Final = 2.0
# A request may be forwarded to the controller.
ANSWER_SECONDS: Final = 2.0
# An image is current when the quorum saw the broker caught up this recently.
CURRENT_MS: Final = 2_000.0
# Controllers elect a leader within a few seconds (controller.quorum.election.timeout.ms and
# backoff).
QUORUM_SILENT_SECONDS: Final = 10.0

# A list of reassignments counts this long, or three reads of the metadata.
LISTED_SECONDS: Final = 30.0

T = TypeVar("T")
Connections = dict[int, BrokerConnection]


class MetadataReader:
    """The reads of one cluster that are not samples. Results go to `inventory` and attributes."""

    def __init__(
        self,
        network: Network,
        inventory: Inventory,
        cluster: Cluster,
        settings: Collect,
        stuck_seconds: float = STUCK_SECONDS,
    ) -> None:
        self.images: list[MetadataImage] = []
        self.quorum: Quorum | None = None
        self.quorum_at = 0.0
        # broker -> whether it is fenced
        self.fenced: dict[int, bool] = {}
        # Topics that two brokers, asked by name, do not know.
        self.deleted: set[str] = set()
        self.refusals = Refusals()
        self._decoder = MetadataDecoder()
        self._loop = network.loop
        self._inventory = inventory
        self._settings = settings
        self._connections = network.pool(identify)
        # DescribeQuorum has connections of its own: a broker without a controller delays it and all
        # behind it.
        self._quorum_connections = network.pool()
        self._bootstrap = [
            self._connections.get(-1 - i, *parse_address(server))
            for i, server in enumerate(cluster.bootstrap_servers)
        ]
        self._images_at = self._queries_at = self._configurations_at = -math.inf
        # Brokers through which the quorum gave no answer since its last answer.
        self._silent_to: set[int] = set()
        # The newest list of reassignments: its length, and when it was read.
        self._reassigning, self._reassigning_at = 0, -math.inf
        # By what was asked: how often. One count would give some reads the same broker each time.
        self._turns = Counter[str]()
        self._running: dict[str, Any] = {}
        self.transactions = OpenTransactions(network.loop, self._beside, stuck_seconds)

    def choose(self, live: Connections, what: str = "image") -> list[BrokerConnection]:
        """Two brokers, in turn, of those that answer; the bootstrap servers when none does.

        Last come those that just came back, and those with an old image by the report of the
        quorum's leader. `what`: what they are asked for.
        """
        now = time.monotonic()
        settled = [
            broker
            for broker, connection in sorted(live.items())
            if now - (connection.connected_at or now) >= SETTLING_SECONDS
            and (self._lag_ms(broker) or 0.0) <= CURRENT_MS
        ]
        self._turns[what] += 1
        turn = self._turns[what] % max(len(settled), 1)
        brokers = [*settled[turn:], *settled[:turn], *sorted(set(live) - set(settled))]
        return [self._beside(live[broker]) for broker in brokers[:2]] or self._bootstrap

    def _lag_ms(self, broker: int) -> float | None:
        """How far the broker's image is behind, as the quorum's leader reports it.

        Unknown since a read of the quorum had no answer: the broker that was behind may be the one
        that is not cut off from the controllers now.
        """
        if self.quorum is None or self._silent_to:
            return None
        seen = self.quorum.replicas.get(broker)
        return None if seen is None else seen.lag_ms

    def _beside(self, connection: BrokerConnection) -> BrokerConnection:
        return self._connections.get(connection.broker, connection.host, connection.port)

    def only_current_broker(self, live: Connections) -> int | None:
        """The only live broker, when the quorum's leader just reported its image as current."""
        if len(live) != 1 or time.monotonic() - self.quorum_at > CURRENT_MS / 1000:
            return None
        (broker,) = live
        lag_ms = self._lag_ms(broker)
        return broker if lag_ms is not None and lag_ms <= CURRENT_MS else None

    def silent_bootstrap(self) -> list[BrokerFinding]:
        """The bootstrap servers whose last attempt failed, where no broker is known yet."""
        return [
            BrokerFinding(
                "bootstrap server", f"{c.host}:{c.port}", c.outcome, meaning_of(c.outcome)
            )
            for c in self._bootstrap
            if c.failures and not self._inventory.brokers
        ]

    def are_images_due(self, now: float) -> bool:
        return now - self._images_at >= self._settings.metadata_seconds

    def start_images(self, live: Connections) -> list[Any]:
        """Starts to read two images. The Futures end with the reads."""
        self._images_at = time.monotonic()
        return [
            self._query(
                f"image {c.broker}", c, read_metadata, partial(self._add_image, c), self._decoder
            )
            for c in self.choose(live)
        ]

    def start_queries(self, live: Connections, now: float, *, images_due: bool) -> None:
        """Starts the other reads that are due. No pass waits for them."""
        if not live:
            return
        inventory, settings = self._inventory, self._settings
        topics: set[str] = set()
        if images_due:
            self._start(QUORUM, self._read_quorum, self._next(live, QUORUM))
            topics = {w.topic for w in inventory.partitions.values() if not w.metadata.all_in_sync}
        if now - self._queries_at >= settings.metadata_seconds:
            self._queries_at = now
            self.list_reassignments(live)
            topics = {w.topic for w in inventory.partitions.values() if w.eligible_is_due}
        if topics:
            asked = self._next(live, "eligible")
            self._query("eligible", asked, read_eligible_replicas, inventory.set_eligible, topics)
        if inventory.partitions and now - self._configurations_at >= settings.configuration_seconds:
            self._configurations_at = now
            asked = self._next(live, "configurations")
            self._start("configurations", self._read_configurations, asked, inventory.topics())

    def _next(self, live: Connections, what: str) -> BrokerConnection:
        return self.choose(live, what)[0]

    def list_reassignments(self, live: Connections) -> None:
        """Starts to list them, also before the next list is due: replicas have changed."""
        # With ZooKeeper, only the controller lists reassignments; with KRaft, any broker forwards.
        controller = live.get(self._inventory.controller)
        if live:
            next_one = self._next(live, REASSIGNMENTS)
            lister = next_one if controller is None else self._beside(controller)
            self._query(REASSIGNMENTS, lister, read_reassignments, self._set_reassignments)

    def _set_reassignments(self, found: dict[TopicPartition, Reassignment]) -> None:
        self.refusals.note(REASSIGNMENTS, None)
        self._reassigning, self._reassigning_at = len(found), time.monotonic()
        self._inventory.set_reassignments(found)

    async def _read_configurations(
        self, connection: BrokerConnection, topics: Iterable[str]
    ) -> None:
        """Without an answer another broker is asked in the next pass.

        Detectors that need min.insync.replicas are blind until then.
        """
        try:
            read = await read_configurations(
                await connection.ready(ANSWER_SECONDS), topics, ANSWER_SECONDS
            )
        except NoAnswerError:
            self.read_configurations_again()
            raise
        self.refusals.note(TOPIC_CONFIGURATION, denied_topics(read.denied))
        self._inventory.set_configurations(read.found)

    @property
    def reassigning(self) -> int | None:
        """Partitions of the cluster under reassignment; null where they were not listed lately."""
        lasts = max(LISTED_SECONDS, 3 * self._settings.metadata_seconds)
        is_recent = time.monotonic() - self._reassigning_at <= lasts
        return self._reassigning if is_recent else None

    def read_configurations_again(self) -> None:
        """In the next pass, for new partitions or for want of an answer."""
        self._configurations_at = -math.inf

    def confirm_deleted(self, live: Connections, topics: set[str]) -> None:
        """Starts to ask two brokers for these topics by name.

        An image also omits topics that may not be described.
        """
        self._start("deleted", self._read_deleted, self.choose(live), topics)

    def _query(
        self,
        name: str,
        connection: BrokerConnection,
        read: Callable[..., Coroutine[Any, Any, T | None]],
        take: Callable[[T], None],
        *arguments: Any,
    ) -> Any:
        """Starts `read` and gives its result to `take`."""

        async def work() -> None:
            found = await read(await connection.ready(ANSWER_SECONDS), *arguments, ANSWER_SECONDS)
            if found is not None:
                take(found)

        return self._start(name, work)

    def _start(
        self, name: str, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any
    ) -> Any:
        """Starts a read unless one of that name is under way. No answer is no failure."""
        before = self._running.get(name)
        if before is not None and not before.is_done:
            return before

        async def guarded() -> None:
            try:
                await work(*arguments)
            except NoAnswerError:
                pass
            except RefusedError as error:
                self.refusals.note(name, str(error))

        self._running[name] = self._loop.spawn(guarded)
        return self._running[name]

    def _add_image(self, connection: BrokerConnection, image: MetadataImage) -> None:
        """A bootstrap server is the broker that its own list shows at the same address."""
        place = (connection.host, connection.port)
        same = [broker for broker, a in image.brokers.items() if (a.host, a.port) == place]
        if connection.broker < 0 and len(same) == 1:
            image = image._replace(broker=same[0])
        self.images.append(image)

    async def _read_quorum(self, connection: BrokerConnection) -> None:
        broker, host, port = connection.broker, connection.host, connection.port
        asker = await self._quorum_connections.get(broker, host, port).ready(ANSWER_SECONDS)
        try:
            found = await read_quorum(asker, ANSWER_SECONDS)
        except NoAnswerError:
            self._note_silent_quorum(broker)
            raise
        if found is None and self.quorum is not None:
            self._note_silent_quorum(broker)
            return
        self.refusals.note(QUORUM, None)
        self.quorum, self.quorum_at = found, time.monotonic()
        self._silent_to.clear()
        self.fenced = await read_fenced(asker, ANSWER_SECONDS)

    def _note_silent_quorum(self, broker: int) -> None:
        """A quorum that gives no answer through two brokers for a while has no leader.

        DescribeQuorum never reports that: only a leader answers it.
        """
        self._silent_to.add(broker)
        silent_seconds = time.monotonic() - self.quorum_at
        if (
            self.quorum is not None
            and len(self._silent_to) >= 2
            and silent_seconds >= QUORUM_SILENT_SECONDS
        ):
            self.quorum = self.quorum._replace(leader=None)

    async def _read_deleted(self, connections: list[BrokerConnection], topics: set[str]) -> None:
        missing = set(topics)
        for connection in connections[:2]:
            ready = await connection.ready(ANSWER_SECONDS)
            image = await read_metadata_of(ready, sorted(topics), ANSWER_SECONDS)
            missing = {
                name
                for name in missing
                if name in image.topics and image.topics[name].error == UNKNOWN_TOPIC_OR_PARTITION
            }
        if len(connections) >= 2:
            self.deleted |= missing

    def close(self) -> None:
        self._connections.close()
        self._quorum_connections.close()

"""Metadata and the other slow questions: asked beside the samples, over connections of their own.

A broker answers one request per connection at a time; a configuration read must not stand before a sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tidemark.collect.inventory import Inventory
from tidemark.collect.links import Link, LinkError
from tidemark.collect.loop import Loop
from tidemark.collect.metadata import UNKNOWN_TOPIC_OR_PARTITION, View, read_eligible, read_metadata
from tidemark.collect.side import (
    Quorum,
    read_configurations,
    read_fenced,
    read_quorum,
    read_reassignments,
)

# A broker that just came back may still show what it knew before (some 100 ms after a pause).
SETTLING_SECONDS: Final = 2.0
# A request here may be forwarded to the controller.
ANSWER_SECONDS: Final = 2.0
# An image is current when the quorum saw it caught up so lately.
CURRENT_MS: Final = 2_000.0
# Controllers elect a leader within a few seconds (controller.quorum.election.timeout.ms and backoff).
QUORUM_SILENT_SECONDS: Final = 10.0


class Control:
    """Reads of one cluster that are not samples; results go to `inventory` and the attributes here."""

    def __init__(
        self,
        loop: Loop,
        options: dict[str, Any],
        inventory: Inventory,
        bootstrap: list[tuple[str, int]],
    ) -> None:
        self.views: list[View] = []
        self.quorum: Quorum | None = None
        self.quorum_at = 0.0
        self.fenced: dict[int, bool] = {}
        # Topics that two brokers, asked by name, do not know.
        self.gone: set[str] = set()
        self._loop = loop
        self._options = options
        self._inventory = inventory
        self._bootstrap = [
            Link(loop, options, -1 - i, host, port) for i, (host, port) in enumerate(bootstrap)
        ]
        self._links: dict[int, Link] = {}
        self._forwards: dict[int, Link] = {}
        # Brokers through which the quorum gave no answer since it last gave one.
        self._silent_to: set[int] = set()
        self._turn = 0
        self._running: dict[str, Any] = {}

    def chosen(self, live: dict[int, Link]) -> list[Link]:
        """Two brokers, in turn, of those that answer; the bootstrap servers when none does.

        Last those that came back just now, and those whose image is old by the word of the quorum's leader.
        """
        now = time.monotonic()
        settled = sorted(
            b
            for b, link in live.items()
            if now - (link.connected_at or now) >= SETTLING_SECONDS and not self._is_outdated(b)
        )
        others = sorted(set(live) - set(settled))
        self._turn += 1
        if settled:
            turn = self._turn % len(settled)
            settled = settled[turn:] + settled[:turn]
        brokers = (settled + others)[:2]
        return [self._link(live[broker]) for broker in brokers] or self._bootstrap

    def _is_outdated(self, broker: int) -> bool:
        seen = self.quorum.replicas.get(broker) if self.quorum is not None else None
        return seen is not None and seen.lag_ms is not None and seen.lag_ms > CURRENT_MS

    def _link(self, sample_link: Link) -> Link:
        link = self._links.get(sample_link.broker)
        if link is None or (link.host, link.port) != (sample_link.host, sample_link.port):
            if link is not None:
                link.close()
            link = Link(
                self._loop, self._options, sample_link.broker, sample_link.host, sample_link.port
            )
            self._links[sample_link.broker] = link
        return link

    def chosen_controller(self, live: dict[int, Link]) -> Link | None:
        """The controller, which alone lists reassignments under ZooKeeper; under KRaft any broker, which forwards."""
        link = live.get(self._inventory.controller)
        return None if link is None else self._link(link)

    def start(
        self, name: str, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any
    ) -> Any:
        """Starts a read unless the one before is still under way; its Future ends with it and a LinkError ends it quietly."""
        before = self._running.get(name)
        if before is not None and not before.is_done:
            return before

        async def guarded() -> None:
            try:
                await work(*arguments)
            except LinkError:
                return

        self._running[name] = self._loop.spawn(guarded)
        return self._running[name]

    async def _ready(self, link: Link) -> Link:
        if not link.connected:
            await self._loop.wait([link.connect(ANSWER_SECONDS)], ANSWER_SECONDS + 0.1)
        if not link.connected:
            raise LinkError(link.outcome)
        return link

    async def read_view(self, link: Link) -> None:
        view = await read_metadata(await self._ready(link), ANSWER_SECONDS)
        if link.broker < 0:
            # A bootstrap server: which broker it is shows in its own list, if it is listed under the same name.
            same = [
                broker
                for broker, address in view.brokers.items()
                if address[:2] == (link.host, link.port)
            ]
            view = view._replace(broker=same[0] if same else link.broker)
        self.views.append(view)

    async def read_eligible(self, link: Link, names: list[str]) -> None:
        self._inventory.take_eligible(
            await read_eligible(await self._ready(link), names, ANSWER_SECONDS)
        )

    async def read_quorum(self, link: Link) -> None:
        """Asked over a connection of its own: a broker whose controllers are gone keeps the question, and all behind it, waiting."""
        asker = await self._ready(self._forwarding(link))
        try:
            found = await read_quorum(asker, ANSWER_SECONDS)
        except LinkError:
            self._note_silence(link.broker)
            raise
        if found is None and self.quorum is not None:
            self._note_silence(link.broker)
            return
        self.quorum, self.quorum_at = found, time.monotonic()
        self._silent_to.clear()
        self.fenced = await read_fenced(asker, ANSWER_SECONDS)

    def _note_silence(self, broker: int) -> None:
        """The quorum answered before; when it gives no answer through two brokers for a while, it has no leader that answers.

        DescribeQuorum never says so itself: only a leader answers it.
        """
        self._silent_to.add(broker)
        if (
            self.quorum is None
            or len(self._silent_to) < 2
            or time.monotonic() - self.quorum_at < QUORUM_SILENT_SECONDS
        ):
            return
        self.quorum = self.quorum._replace(leader=None)

    def _forwarding(self, link: Link) -> Link:
        known = self._forwards.get(link.broker)
        if known is None or (known.host, known.port) != (link.host, link.port):
            if known is not None:
                known.close()
            known = self._forwards[link.broker] = Link(
                self._loop, self._options, link.broker, link.host, link.port
            )
        return known

    async def read_reassignments(self, link: Link) -> None:
        found = await read_reassignments(await self._ready(link), ANSWER_SECONDS)
        if found is not None:
            self._inventory.take_reassignments(found)

    async def read_configurations(self, link: Link, names: list[str]) -> None:
        self._inventory.take_configurations(
            await read_configurations(await self._ready(link), names, ANSWER_SECONDS)
        )

    async def confirm_gone(self, links: list[Link], names: set[str]) -> None:
        """A topic is deleted when two brokers, asked by name, do not know it: an image leaves out what one may not describe."""
        missing = set(names)
        for link in links[:2]:
            view = await read_metadata(await self._ready(link), ANSWER_SECONDS, sorted(names))
            missing = {
                name
                for name in missing
                if name in view.topics and view.topics[name].error == UNKNOWN_TOPIC_OR_PARTITION
            }
        if len(links) >= 2:
            self.gone |= missing

    def sole_witness(self, live: dict[int, Link], now: float) -> int | None:
        """The only broker that answers, when the quorum's leader itself says that its image is current."""
        if len(live) != 1 or self.quorum is None or now - self.quorum_at > CURRENT_MS / 1000:
            return None
        broker = next(iter(live))
        seen = self.quorum.replicas.get(broker)
        return (
            broker
            if seen is not None and seen.lag_ms is not None and seen.lag_ms <= CURRENT_MS
            else None
        )

    def close(self) -> None:
        for link in [*self._links.values(), *self._forwards.values(), *self._bootstrap]:
            link.close()

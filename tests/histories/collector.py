"""A collector: one pass over the brokers, with steps of the world between its requests."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

from tests.histories.broker import Broker
from tests.histories.inventory import Eligible, Image, Inventory, Watched, read_image
from tests.histories.observe import observe
from tests.histories.pass_record import pass_record
from tests.histories.requests import (
    OUT_OF_RANGE,
    UNANSWERED,
    Answers,
    Fetched,
    failure,
    fetch_epoch,
    list_committed,
    list_epochs,
    list_latest,
)
from tests.histories.world import World
from tidemark.collect.codecs.fetch import FetchEntry
from tidemark.collect.sample.lineage import walk_epochs
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.core.events import OK, Event, PartitionDeleted

# The true time of the beginning, in Unix seconds.
ORIGIN = 1_790_000_000.0
TOPIC, PARTITION = "orders", 0
METADATA_SECONDS = 5.0
STALE_SECONDS = 2.0


class Collector:
    """One process. `ahead`: how far its clock is ahead of the true time.

    `old`: it merges eligible leader replicas unchecked, as version 2c8b888 did.
    """

    def __init__(self, name: str, world: World, rng: Random, *, ahead: float, old: bool) -> None:
        self.name, self.world, self.rng, self.old = name, world, rng, old
        self.offset = ORIGIN + ahead
        self.epoch = round((world.now + self.offset) * 1000)
        self.number = 0
        self.inventory = Inventory()
        self.outcomes: dict[int, str] = {}
        self.immediate = False
        self.images_at = self.queries_at = -1e9
        self.late_images: list[Image] = []
        self.late_eligible: Eligible | None = None
        self.turn = 0
        self.started = 0.0

    def wall(self) -> float:
        return self.world.now + self.offset

    def tick(self) -> None:
        """A request takes a moment, in which things may happen."""
        world = self.world
        world.at(world.now + 0.002)
        if self.rng.random() < 0.35:
            world.step(self.rng)

    def run(self) -> list[Event]:
        """The events of one pass, with the pass record last."""
        self.number += 1
        world, inventory = self.world, self.inventory
        self.started = world.now
        events: list[Event] = []
        due = self._images_due()
        self.immediate = False
        if due:
            self._read_images()
        self._query(images_due=due)
        self._apply(events)
        watched = inventory.watched
        answers = self._sample(watched)
        missed = False
        if watched is not None:
            if not world.mode.fenced:
                self._read_images()
                self._apply(events)
                watched = inventory.watched or watched
            seen = observe(self, watched, answers)
            missed = seen.missed
            self.immediate |= seen.stale
            if seen.observation is not None:
                events.append(seen.observation)
        world.at(world.now + 0.001)
        events.append(pass_record(self, watched, missed=missed))
        return events

    def read_fast(self) -> None:
        """The high watermark between passes, under the fence of the leader epoch that is known."""
        watched = self.inventory.watched
        leader = None if watched is None or watched.leader is None else watched.leader
        broker = None if leader is None else self.world.brokers.get(leader)
        if watched is None or broker is None or failure(broker) is not None:
            return
        error, offset = list_committed(broker, watched.image.epoch)
        if not error:
            watched.add_fast(self.wall(), offset)

    # Metadata.

    def _images_due(self) -> bool:
        watched = self.inventory.watched
        return (
            self.immediate
            or watched is None
            or self.world.now - self.images_at >= METADATA_SECONDS
            or any(outcome != OK for outcome in self.outcomes.values())
            or len(watched.image.in_sync) != len(watched.image.replicas)
        )

    def _choose(self) -> list[Broker]:
        """Two brokers that answer, in turn; last those that a quorum reports as behind."""
        world = self.world
        live = [b for b in world.brokers.values() if failure(b) is None]
        settled = [
            b for b in live if not world.mode.quorum or world.now - b.image_at <= STALE_SECONDS
        ]
        self.turn += 1
        turn = self.turn % max(len(settled), 1)
        rest = [b for b in live if b not in settled]
        return [*settled[turn:], *settled[:turn], *rest][:2]

    def _read_images(self) -> None:
        self.images_at = self.world.now
        for broker in self._choose():
            self.tick()
            if failure(broker) is None:
                image = read_image(broker, self.world.now)
                if self.rng.random() < 0.03:
                    self.late_images.append(image)
                else:
                    self.pending_images().append(image)

    def pending_images(self) -> list[Image]:
        if not hasattr(self, "_images"):
            self._images: list[Image] = []
        return self._images

    def _apply(self, events: list[Event]) -> None:
        inventory, images = self.inventory, self.pending_images()
        self._images = []
        if not images:
            self._images, self.late_images = self.late_images, []
            return
        live = [b for b in self.world.brokers.values() if failure(b) is None]
        only = live[0].number if len(live) == 1 and self.world.mode.quorum else None
        if only is not None and self.world.now - live[0].image_at > STALE_SECONDS:
            only = None
        inventory.apply(sorted(images, key=lambda image: image.at), only)
        self._images, self.late_images = self.late_images, []
        if inventory.absent and inventory.watched is not None:
            chosen = self._choose()
            if len(chosen) == 2 and not any(b.view.exists for b in chosen):
                inventory.gone.append(inventory.watched.image.topic_id)
                inventory.watched = None
        events += [
            PartitionDeleted(
                topic=TOPIC, partition=PARTITION, observed_at=self.wall(), topic_id=topic_id
            )
            for topic_id in inventory.gone
        ]
        inventory.gone = []

    def _query(self, *, images_due: bool) -> None:
        """Reassignments, configuration and eligible leader replicas; no pass waits for them."""
        watched, world = self.inventory.watched, self.world
        if watched is None:
            return
        state = world.state
        due = world.now - self.queries_at >= METADATA_SECONDS
        if due:
            self.queries_at = world.now
            watched.adding, watched.removing = state.adding, state.removing
            if self.number > 1:
                watched.configured_min = world.controller.min_in_sync
        whole = len(watched.image.in_sync) == len(watched.image.replicas)
        if world.mode.elr and (due or (images_due and not whole)):
            brokers = self._choose()
            self.tick()
            if brokers and failure(brokers[0]) is None:
                view = brokers[0].view
                if view.exists:
                    found = Eligible(
                        view.eligible, view.last_known, view.leader_epoch, view.in_sync
                    )
                    self.late_eligible = found

    def _arrive(self, watched: Watched) -> None:
        """The answer about eligible leader replicas arrives at any time."""
        if self.late_eligible is not None and self.rng.random() < 0.3:
            watched.eligible, self.late_eligible = self.late_eligible, None

    # Samples.

    def _sample(self, watched: Watched | None) -> dict[int, Answers]:
        """All leaders, all followers, the leaders again, lineages."""
        world, answers = self.world, {}
        for broker in world.brokers.values():
            led = watched is not None and watched.leader == broker.number
            answers[broker.number] = Answers(led, failure(broker))
        if watched is None:
            self._note_outcomes(answers)
            return answers
        order = [world.brokers[n] for n in watched.image.replicas]
        self.rng.shuffle(order)
        for broker in order:
            self._list_offsets(broker, watched, answers[broker.number])
        self._arrive(watched)
        for led in (False, True):
            for broker in order:
                if answers[broker.number].led is led:
                    self._fetch(broker, watched, answers[broker.number])
        for broker in order:
            if world.mode.fenced:
                self._ask_suspected(broker, watched, answers[broker.number])
            if world.mode.lineages and broker.number in watched.reads_left:
                self._read_lineage(broker, watched, answers[broker.number])
        self._arrive(watched)
        self._note_outcomes(answers)
        return answers

    def _note_outcomes(self, answers: dict[int, Answers]) -> None:
        for number, found in answers.items():
            outcome = found.outcome or OK
            self.immediate |= outcome != OK and self.outcomes.get(number) == OK
            self.outcomes[number] = outcome

    def _ms(self) -> float:
        return round((self.world.now - self.started) * 1000, 3)

    def _answers(self, broker: Broker, found: Answers) -> bool:
        if found.outcome is None:
            self.tick()
            found.outcome = failure(broker)
        return found.outcome is None

    def _list_offsets(self, broker: Broker, watched: Watched, found: Answers) -> None:
        fenced = broker.mode.fenced
        before = self.rng.random() < 0.5
        if before:
            self._list_epochs(broker, found)
        if found.led and self._answers(broker, found):
            fence = watched.image.epoch if fenced else -1
            found.committed = list_committed(broker, fence)
        if not before:
            self._list_epochs(broker, found)
        found.requested_ms = self._ms()
        if self._answers(broker, found):
            found.latest, found.latest_ms = list_latest(broker), self._ms()

    def _list_epochs(self, broker: Broker, found: Answers) -> None:
        """OffsetForLeaderEpoch, which only a leader answers: whole, the newest epoch, or not."""
        if not broker.mode.leader_lineages or not found.led or not self._answers(broker, found):
            return
        dice = self.rng.random()
        if dice < 0.4 and broker.log is not None and broker.leads:
            lineage = list_epochs(broker.log)
            if dice < 0.2 and lineage.entries:
                lineage = Lineage(lineage.entries[-1:], lineage.entries[-1][0])
            found.lineage = lineage

    def _fetch(self, broker: Broker, watched: Watched, found: Answers) -> None:
        found.asked_ms = self._ms()
        if not self._answers(broker, found):
            return
        latest = found.latest
        error, end, epoch = latest if latest is not None else (UNANSWERED, -1, -1)
        if not broker.mode.lineages:
            found.fetched = fetch_epoch(broker, -1, -1, 0 if error else max(end, 0))
            found.epochless = True
            found.answered_ms = self._ms()
            return
        number = broker.number
        if error:
            end = epoch = -1
        if end >= 0 and (epoch < 0 or watched.without_newest.get(number) == (epoch, end)):
            found.epochless = True
            found.fetched = fetch_epoch(broker, -1, epoch, end)
        else:
            found.fetched = fetch_epoch(broker, max(epoch, 0), epoch, None)
            if found.fetched.error == OUT_OF_RANGE and end >= 0:
                found.answered_ms = self._ms()
                if self._answers(broker, found):
                    found.fetched = fetch_epoch(broker, -1, epoch, end)
                    found.epochless = True
                    watched.without_newest[number] = (epoch, end)
                return
        found.answered_ms = self._ms()

    def _ask_suspected(self, broker: Broker, watched: Watched, found: Answers) -> None:
        """Whether a replica that should not lead considers itself leader."""
        number, latest = broker.number, found.latest
        if found.led or latest is None or latest.error or latest.epoch < 0:
            return
        behind = latest.epoch < watched.image.epoch
        former = watched.former_leader == number and number in watched.reads_left
        if (behind or former) and self._answers(broker, found):
            found.claim, _ = list_committed(broker, latest.epoch)

    def _read_lineage(self, broker: Broker, watched: Watched, found: Answers) -> None:
        latest, fetched = found.latest, found.fetched
        if found.outcome is not None or latest is None or fetched is None:
            return
        if latest.error or fetched.error or latest.epoch < 0:
            return
        has_newest = fetched.epoch >= 0 and not found.epochless
        newest = (fetched.epoch, fetched.end) if has_newest else None
        epochs = [epoch for epoch, _ in watched.leader_lineage.entries]
        steps = walk_epochs(newest, latest.epoch, latest.end, epochs)
        found.lineage = self._walk(broker, found, steps, latest.epoch)

    def _walk(
        self,
        broker: Broker,
        found: Answers,
        steps: Generator[int, FetchEntry | None, Lineage | None],
        fence: int,
    ) -> Lineage | None:
        entry: FetchEntry | None = None
        while True:
            try:
                asked = next(steps) if entry is None else steps.send(entry)
            except StopIteration as over:
                lineage: Lineage | None = over.value
                return lineage
            if self.rng.random() < 0.05 and not self._answers(broker, found):
                return None
            entry = _entry(fetch_epoch(broker, asked, fence, None))


def _entry(answer: Fetched) -> FetchEntry:
    """An answer as the decoder of Fetch gives it, of partition 0."""
    error, high_watermark, start, epoch, end = answer
    return 0, error, high_watermark, -1, start, epoch, end

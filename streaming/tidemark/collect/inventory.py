"""The partitions that are watched, as the brokers' images of the metadata agree on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple
from zlib import crc32

from tidemark.collect.metadata import LEADER_NOT_AVAILABLE, Address, Eligible, Seat, TopicView, View
from tidemark.collect.walks import Doubt, after_change
from tidemark.core.identity import group_of
from tidemark.settings import Cluster


class Watched:
    """One watched partition: the newest metadata, and what earlier passes left behind for the next."""

    __slots__ = (
        "adding", "compacted", "doubt", "due_at", "eligible", "ends", "former_leader", "group", "last_known", "leader", "leader_epoch", "leaderless",
        "lineage", "lineage_complete_from", "metadata_at", "metadata_from", "min_in_sync", "number", "places", "raw", "removing", "seat", "signature",
        "topic", "topic_id", "walks",
    )  # fmt: skip

    def __init__(
        self, topic: str, number: int, topic_id: str | None, group: int, seat: Seat
    ) -> None:
        self.topic, self.number, self.topic_id, self.group, self.seat = (
            topic,
            number,
            topic_id,
            group,
            seat,
        )
        self.leader: int | None = None
        self.leader_epoch: int | None = None
        self.leaderless = False
        self.eligible: tuple[int, ...] | None = None
        self.last_known: tuple[int, ...] | None = None
        self.adding: tuple[int, ...] = ()
        self.removing: tuple[int, ...] = ()
        # min.insync.replicas of the topic; null until it was read.
        self.min_in_sync: int | None = None
        # Whether cleanup.policy compacts the topic; null until it was read.
        self.compacted: bool | None = None
        self.metadata_from: tuple[int, ...] = ()
        self.metadata_at = 0.0
        # broker -> its last log end offset.
        self.ends: dict[int, int] = {}
        # The leader's last walk: ascending (epoch, end offset).
        self.lineage: list[tuple[int, int]] = []
        self.lineage_complete_from: int | None = None
        # Whose lineage is still to be read: broker -> in how many passes; and what is read on after that.
        self.walks: dict[int, int] = after_change(seat.replicas)
        self.doubt: Doubt | None = None
        # Who led before the newest change of the leader.
        self.former_leader: int | None = None
        # Where its replicas' answers lie: (plan of the broker, slot), in the order of the assignment; null: not all are planned.
        self.places: list[tuple[Any, int]] | None = None
        # The answers, undigested, that gave `signature`.
        self.raw: object = None
        # What the last published observation of a quiet partition showed, and when the next is due (monotonic).
        self.signature: object = None
        self.due_at = 0.0

    def take(self, seat: Seat) -> bool:
        """Lays newer metadata over the old. Tells whether leader, replicas or epoch changed (requests must be planned anew)."""
        changed = (seat.leader, seat.leader_epoch, seat.replicas) != (
            self.seat.leader,
            self.seat.leader_epoch,
            self.seat.replicas,
        )
        if seat.leader_epoch != self.seat.leader_epoch:
            self.walks, self.doubt = after_change(seat.replicas), None
        elif seat.replicas != self.seat.replicas:
            self.walks = {
                broker: left for broker, left in self.walks.items() if broker in seat.replicas
            }
        leader = seat.leader if seat.leader >= 0 else None
        if leader != self.leader and self.leader is not None:
            self.former_leader = self.leader
        self.seat = seat
        self.leader = leader
        self.leader_epoch = seat.leader_epoch if seat.leader_epoch >= 0 else None
        return changed

    @property
    def all_in_sync(self) -> bool:
        return len(self.seat.in_sync) == len(self.seat.replicas)


class TopicConfiguration(NamedTuple):
    """What is asked of a topic's configuration; null where the broker did not tell."""

    min_in_sync: int | None
    compacted: bool | None


class Applied(NamedTuple):
    """What new metadata changed."""

    # Requests must be planned anew.
    replan: bool
    epoch_changed: bool
    new_topics: set[str]
    # Deleted, or recreated under another id: to be confirmed unless `recreated`.
    absent: set[str]
    recreated: list[Watched]


class Tally(NamedTuple):
    """What a broker is to the watched partitions: how many it should lead, leads of those, and is in sync with."""

    preferred: int
    preferred_led: int
    in_sync: int


class Inventory:
    """Watched partitions by topic and number. `groups` is the number of Kafka partitions of the event topic."""

    def __init__(self, cluster: Cluster, groups: int) -> None:
        self.partitions: dict[tuple[str, int], Watched] = {}
        self.brokers: dict[int, Address] = {}
        self.cluster_id: str | None = None
        self.controller = -1
        # All topics in the newest images, watched or not.
        self.listed: set[str] = set()
        self._cluster = cluster
        self._groups = groups
        self._allow = [re.compile(pattern) for pattern in cluster.topics_allow]
        self._deny = [re.compile(pattern) for pattern in cluster.topics_deny]
        self._verdicts: dict[str, bool] = {}
        self._tallies: dict[int, Tally] | None = None

    def wants(self, topic: str) -> bool:
        verdict = self._verdicts.get(topic)
        if verdict is None:
            denied = any(pattern.fullmatch(topic) for pattern in self._deny)
            verdict = not denied and any(pattern.fullmatch(topic) for pattern in self._allow)
            self._verdicts[topic] = verdict
        return verdict

    def topics(self) -> set[str]:
        return {topic for topic, _ in self.partitions}

    def apply(self, views: list[View], sole_witness: int | None = None) -> Applied:
        """Merges images read in one round. `sole_witness`: the only live broker, when the quorum calls its image current."""
        self._tallies = None
        replan = epoch_changed = False
        new_topics: set[str] = set()
        recreated: list[Watched] = []
        known = self.topics()
        self.listed = {name for view in views for name in view.topics}
        for view in sorted(views, key=lambda v: v.at):
            self.brokers.update(view.brokers)
            self.cluster_id = view.cluster_id or self.cluster_id
            self.controller = view.controller
        self._forget_brokers(views)
        believed = [view for view in views if not self._is_behind(view, views)] or views
        seen = {
            name
            for view in believed
            for name, topic in view.topics.items()
            if topic.partitions and self.wants(name)
        }
        for name in seen:
            about = [
                (view, view.topics[name])
                for view in believed
                if name in view.topics and not view.topics[name].error
            ]
            for number in {n for _, topic in about for n in topic.partitions}:
                if (
                    group_of(self._cluster.name, name, number, self._cluster.shards)
                    != self._cluster.shard
                ):
                    continue
                one = self._partition(name, number, about, sole_witness)
                replan |= one.replan
                epoch_changed |= one.epoch_changed
                recreated += one.recreated
            if name not in known:
                new_topics.add(name)
            elif len(about) >= 2:
                recreated += self._dropped(
                    name, {n for _, topic in about for n in topic.partitions}
                )
        absent = {
            name
            for name in known
            if len({v.broker for v in views if v.broker >= 0}) >= 2
            and all(name not in view.topics for view in views)
        }
        return Applied(replan or bool(recreated), epoch_changed, new_topics, absent, recreated)

    def _is_behind(self, view: View, views: list[View]) -> bool:
        """Whether an image is older than another, or than what is known, by the leader epoch of any partition.

        Then it is older in all the rest too: what it shows of in-sync replicas, which change within an epoch, may be over.
        """
        for name, topic in view.topics.items():
            if not self.wants(name):
                continue
            same = [
                t.partitions
                for v in views
                if v is not view and (t := v.topics.get(name)) and t.topic_id == topic.topic_id
            ]
            for number, seat in topic.partitions.items():
                known = self.partitions.get((name, number))
                if (
                    known is not None
                    and known.topic_id == topic.topic_id
                    and seat.leader_epoch < known.seat.leader_epoch
                ):
                    return True
                if any(
                    number in other and seat.leader_epoch < other[number].leader_epoch
                    for other in same
                ):
                    return True
        return False

    def _dropped(self, name: str, numbers: set[int]) -> list[Watched]:
        """Partitions that a topic made anew with fewer of them no longer has."""
        gone = [
            w
            for (topic, number), w in self.partitions.items()
            if topic == name and number not in numbers
        ]
        for watched in gone:
            del self.partitions[watched.topic, watched.number]
        return gone

    def _forget_brokers(self, views: list[View]) -> None:
        """A broker that no image lists any more stays only while a watched partition is assigned to it."""
        listed = {broker for view in views for broker in view.brokers}
        assigned = {
            broker for watched in self.partitions.values() for broker in watched.seat.replicas
        }
        for broker in set(self.brokers) - listed - assigned:
            del self.brokers[broker]

    def _partition(
        self, name: str, number: int, about: list[tuple[View, TopicView]], sole_witness: int | None
    ) -> Applied:
        seats = [
            (view, topic, topic.partitions[number])
            for view, topic in about
            if number in topic.partitions
        ]
        watched = self.partitions.get((name, number))
        recreated: list[Watched] = []
        if watched is not None and watched.topic_id is not None:
            same = [entry for entry in seats if entry[1].topic_id == watched.topic_id]
            if not same:
                # Another id: the topic was deleted and made again, once a second broker says so too.
                if len(seats) < 2 or len({topic.topic_id for _, topic, _ in seats}) > 1:
                    return Applied(False, False, set(), set(), [])
                recreated.append(watched)
                watched = None
            else:
                seats = same
        view, topic, seat = max(
            seats,
            key=lambda entry: (
                entry[2].leader_epoch,
                entry[0].broker == entry[2].leader,
                entry[0].at,
            ),
        )
        fresh = watched is None
        if watched is None:
            group = group_of(self._cluster.name, name, number, self._groups)
            watched = self.partitions[name, number] = Watched(
                name, number, topic.topic_id, group, seat
            )
        elif seat.leader_epoch < watched.seat.leader_epoch:
            # A broker that is behind all we know; an epoch never goes back for one topic id.
            return Applied(False, False, set(), set(), recreated)
        bumped = not fresh and seat.leader_epoch != watched.seat.leader_epoch
        replan = watched.take(seat) or fresh
        agreeing = [v.broker for v, _, other in seats if v.broker >= 0 and other[:4] == seat[:4]]
        watched.metadata_from = tuple(sorted(set(agreeing)))
        watched.metadata_at = view.at
        none = (-1, seat.leader_epoch, LEADER_NOT_AVAILABLE)
        saying_none = {
            v.broker
            for v, _, s in seats
            if v.broker >= 0 and (s.leader, s.leader_epoch, s.error) == none
        }
        watched.leaderless = len(saying_none) >= 2 or (
            sole_witness is not None and saying_none == {sole_witness}
        )
        return Applied(replan, bumped, set(), set(), recreated)

    def take_eligible(self, found: dict[tuple[str, int], Eligible]) -> None:
        for place, eligible in found.items():
            watched = self.partitions.get(place)
            if watched is not None:
                watched.eligible, watched.last_known = eligible

    def take_reassignments(
        self, found: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]
    ) -> None:
        """(adding, removing) of the partitions under reassignment; all others have none."""
        for place, watched in self.partitions.items():
            watched.adding, watched.removing = found.get(place, ((), ()))

    def take_configurations(self, found: dict[str, TopicConfiguration]) -> None:
        for (topic, _), watched in self.partitions.items():
            if topic in found:
                watched.min_in_sync, watched.compacted = found[topic]

    def remove(self, topics: Iterable[str]) -> list[Watched]:
        """Forgets deleted topics; gives their partitions."""
        names = set(topics)
        gone = [watched for (topic, _), watched in self.partitions.items() if topic in names]
        for watched in gone:
            del self.partitions[watched.topic, watched.number]
        for name in names:
            self._verdicts.pop(name, None)
        self._tallies = None
        return gone

    def tally(self, broker: int) -> Tally:
        """Counted once after each change of the metadata. A broker's preferred partitions are those that list it first."""
        if self._tallies is None:
            preferred: Counter[int] = Counter()
            led: Counter[int] = Counter()
            in_sync: Counter[int] = Counter()
            for watched in self.partitions.values():
                seat = watched.seat
                if seat.replicas:
                    preferred[seat.replicas[0]] += 1
                    led[seat.replicas[0]] += seat.leader == seat.replicas[0]
                in_sync.update(seat.in_sync)
            everyone = {*preferred, *in_sync}
            self._tallies = {
                number: Tally(preferred[number], led[number], in_sync[number])
                for number in everyone
            }
        return self._tallies.get(broker, Tally(0, 0, 0))


def spread(topic: str, number: int) -> float:
    """A fraction in [0, 1) that differs between partitions, to spread what is due at intervals."""
    return (crc32(f"{topic}/{number}".encode()) & 0xFFFF) / 0x10000

"""Rounds of real followers, one answer at a time: a proxy before their leader holds the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple

from kafka import TopicPartition

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import Producer, close_producer
from tidemark_lab.brokers.link import Link
from tidemark_lab.brokers.replica_logs import CHECKPOINT, read_checkpoint, read_log
from tidemark_lab.brokers.wait import comes_true, wait_until
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.wire import Wire

PLACE: Final = (TOPIC, 0)
# How long a leader lets an idle follower's fetch wait, and how soon it must answer a woken one.
FETCH_WAIT_MS: Final = 8_000
# A part of the client ids of all fetchers.
FETCHERS: Final = b"-fetcher-"
_WOKEN_SECONDS: Final = 4.0
_SECONDS: Final = 60.0
# A record that can move, has moved long before.
_HELD_SECONDS: Final = 1.0


class Values(NamedTuple):
    """Log end offset and high watermark of the leader, then of each follower."""

    leader: tuple[int, int]
    second: tuple[int, int]
    third: tuple[int, int]


def link_of(stage: Stage) -> Link:
    """The link before the leader."""
    if stage.link is None:
        raise ClusterError("the drill has no link that can hold answers.")
    return stage.link


@contextmanager
def held(stage: Stage) -> Iterator[Link]:
    """The link before the leader, while it holds the answers to all followers' fetches."""
    link = link_of(stage)
    link.hold(FETCHERS)
    try:
        yield link
    finally:
        link.let_go()


def send(stage: Stage, acks: int | str, *values: bytes) -> None:
    """Sends records to the leader, broker 1, each once and after the one before."""
    servers = stage.cluster.bootstrap_servers[0]
    producer = Producer(
        bootstrap_servers=servers, acks=acks, retries=0, enable_idempotence=False, linger_ms=0
    )
    try:
        for value in values:
            producer.send(TOPIC, value=value, partition=0).get(_SECONDS)
    finally:
        close_producer(producer, 1.0)


def play_real_rounds(stage: Stage) -> None:
    """Brokers 2 and 3 follow broker 1; the load is idle."""
    with Wire(stage, 1, PLACE) as one, Wire(stage, 2, PLACE) as two, Wire(stage, 3, PLACE) as three:
        start = one.log_end_offset()
        rounds = _Rounds(stage, one, (two, three), start)
        wait_until(
            lambda: rounds.values() == Values(*[(start, start)] * 3), _SECONDS, "all values equal"
        )
        with held(stage) as link:
            rounds.play(link)


class _Rounds:
    def __init__(self, stage: Stage, leader: Wire, followers: tuple[Wire, Wire], at: int) -> None:
        self._stage, self._leader, self._followers, self._at = stage, leader, followers, at

    def values(self) -> Values:
        """Followers answer a consumer with their own high watermarks."""
        leader = (self._leader.log_end_offset(), self._leader.high_watermark())
        ends = [
            (each.log_end_offset(), each.fetch(self._at).high_watermark) for each in self._followers
        ]
        return Values(leader, *ends)

    def play(self, link: Link) -> None:
        n, show = self._at, self._stage.show
        send(self._stage, 1, b"r0")
        text, holds = self._compare((n + 1, n), (n, n), (n, n))
        show("append at the leader", f"a write moves the leader's log end alone{text}", holds=holds)
        began = time.monotonic()
        self._answer(link, 2, n + 1)
        woken = time.monotonic() - began
        text = f"the append answers a fetch that waits up to {FETCH_WAIT_MS / 1000:.0f} s at once"
        show("append wakes the fetch", text, holds=woken < _WOKEN_SECONDS)
        text, holds = self._compare((n + 1, n), (n + 1, n), (n, n))
        show("append at a follower", f"the first answer moves its log end{text}", holds=holds)
        self._answer(link, 3, n + 1)
        text, holds = self._compare((n + 1, n + 1), (n + 1, n), (n + 1, n))
        text = f"all logs are equal; the fetch that says so commits at the leader alone{text}"
        show("equal logs", text, holds=holds)
        send(self._stage, 1, b"r1", b"r2")
        self._answer(link, 2, n + 3)
        text, holds = self._compare((n + 3, n + 1), (n + 3, n + 1), (n + 1, n))
        show("one more round", f"the next answer has the high watermark{text}", holds=holds)
        self._answer(link, 3, n + 3)
        text, holds = self._compare((n + 3, n + 3), (n + 3, n + 1), (n + 3, n + 1))
        text = f"2 fetched at {n + 3} while 3 was at {n + 1}: the least counts{text}"
        show("uneven followers", text, holds=holds)
        self._delete(link, n + 2)
        self._checkpoints(n + 3)
        log = read_log(self._stage.cluster.log_directory(1), PLACE) or {}
        sent = [stored.id for _, stored in sorted(log.items())]
        text = f"{len(sent):,} records are in the log in the order in which they were sent"
        show("order", text, holds=bool(sent) and sent == sorted(sent))

    def _compare(self, *expected: tuple[int, int]) -> tuple[str, bool]:
        """The values, where they are not these within the time of a round."""
        wanted = Values(*expected)
        if comes_true(lambda: self.values() == wanted, _WOKEN_SECONDS):
            return "", True
        return f": {self.values()}, not {wanted}", False

    def _answer(self, link: Link, broker: int, log_end_offset: int) -> None:
        """Lets answers through to one follower, one by one, until its log ends there.

        An answer from before the write moves nothing.
        """
        follower, name = self._followers[broker - 2], f"broker-{broker}-fetcher-".encode()

        def has() -> bool:
            return follower.log_end_offset() >= log_end_offset

        def arrived() -> bool:
            return has() or (link.release(name) and comes_true(has, 0.3))

        wait_until(arrived, _SECONDS, f"broker {broker} has appended")

    def _delete(self, link: Link, offset: int) -> None:
        """A deletion is answered once every follower has moved its log start, too."""
        places = {TopicPartition(*PLACE): offset}
        with ThreadPoolExecutor(1) as pool:
            asked: Future[object] = pool.submit(
                self._stage.cluster.administer,
                lambda admin: admin.delete_records(places, timeout_ms=60_000),
                "delete records",
            )
            time.sleep(_HELD_SECONDS)
            waited = not asked.done()

            def answered() -> bool:
                for broker in (2, 3):
                    link.release(f"broker-{broker}-fetcher-".encode())
                return asked.done()

            wait_until(answered, _SECONDS, "the deletion is answered")
            asked.result()
        text = "DeleteRecords waits for the log starts of the followers"
        self._stage.show("deletion waits", text, holds=waited)

    def _checkpoints(self, high_watermark: int) -> None:
        """What each broker's thread writes, while all run."""

        def written() -> list[int | None]:
            folders = map(self._stage.cluster.log_directory, (1, 2, 3))
            return [read_checkpoint(folder / CHECKPOINT).get(PLACE) for folder in folders]

        expected = [high_watermark] * 3
        holds = comes_true(lambda: written() == expected, 2 * FETCH_WAIT_MS / 1000)
        text = f"running brokers have written high watermarks {written()}, not {expected}"
        self._stage.show("checkpoint thread", text, holds=holds)

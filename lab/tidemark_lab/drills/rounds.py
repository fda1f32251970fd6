"""Two fetch rounds of a follower, by hand: the real one is paused, and the drill fetches for it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from tidemark.kafka.client import Producer, close_producer
from tidemark_lab.brokers.wait import wait_until
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.drills.wire import Wire

_PLACE: Final = (TOPIC, 0)
_LEADER, _FOLLOWER = 1, 2
_SECONDS: Final = 30.0
# Longer than a busy machine needs for all rounds.
_WAIT_MS: Final = 50_000
# Far longer than the leader needs to answer where nothing holds the answer back.
_HELD_SECONDS: Final = 0.5


def play_rounds(stage: Stage) -> None:
    """Broker 2, the only follower, is paused and in sync, and the load is idle."""
    servers = stage.cluster.bootstrap_servers[_LEADER - 1]
    one, every = (Producer(bootstrap_servers=servers, **_of(acks)) for acks in (1, "all"))
    with ThreadPoolExecutor(1) as pool:
        try:
            with Wire(stage, _LEADER, _PLACE) as leader, Wire(stage, _LEADER, _PLACE) as parked:
                start = leader.high_watermark()
                show = _Shows(stage, leader)
                every.partitions_for(TOPIC)
                show.values("at rest", "log end and high watermark are equal", start, start)
                one.send(TOPIC, value=b"round", partition=0).get(_SECONDS)
                show.values("write", "a write moves the leader's log end alone", start + 1, start)
                empty = leader.fetch(start).end is None
                stage.show("visibility", "no consumer gets the record at the offset", holds=empty)
                consumer = pool.submit(parked.fetch, start, wait_ms=_WAIT_MS)
                written = every.send(TOPIC, value=b"round", partition=0)
                wait_until(
                    lambda: leader.log_end_offset() == start + 2, _SECONDS, "the record is written"
                )
                time.sleep(_HELD_SECONDS)
                held = not written.is_done and not consumer.done()
                text = "acks=all and the consumer's fetch wait in the purgatory; acks=1 does not"
                stage.show("purgatory", text, holds=held)
                _fetch_rounds(stage, leader, start, show)
                wait_until(
                    lambda: written.is_done and consumer.done(), _SECONDS, "both waits have ended"
                )
                holds = written.succeeded() and consumer.result().end == start + 2
                text = "the high watermark ends both waits: the write and the consumer's fetch"
                stage.show("wake-up", text, holds=holds)
        finally:
            for producer in (one, every):
                close_producer(producer, 1.0)


def _fetch_rounds(stage: Stage, leader: Wire, start: int, show: _Shows) -> None:
    first = leader.fetch(start, _FOLLOWER)
    stage.show(
        "round 1",
        "a follower gets records that are not committed, and the old high watermark",
        holds=(first.end, first.high_watermark) == (start + 2, start),
    )
    show.values("first fetch", "a fetch at the old offset commits nothing", start + 2, start)
    second = leader.fetch(start + 2, _FOLLOWER)
    show.values(
        "second fetch",
        "the next one carries the log end: it commits",
        start + 2,
        start + 2,
    )
    third = leader.fetch(start + 2, _FOLLOWER)
    stage.show(
        "round 3",
        "the follower's high watermark arrives a round later than the leader's moves",
        holds=second.end is None
        and start <= second.high_watermark <= third.high_watermark == start + 2,
    )


class _Shows:
    """Notes log end and high watermark of the leader against what they must be."""

    def __init__(self, stage: Stage, leader: Wire) -> None:
        self._stage, self._leader = stage, leader

    def values(self, name: str, text: str, log_end_offset: int, high_watermark: int) -> None:
        found = self._leader.log_end_offset(), self._leader.high_watermark()
        holds = found == (log_end_offset, high_watermark)
        wrong = "" if holds else f": {found}, not {(log_end_offset, high_watermark)}"
        self._stage.show(name, f"{text}{wrong}", holds=holds)


def _of(acks: int | str) -> dict[str, Any]:
    """One request, which is never sent again: the log has each record once."""
    return {"acks": acks, "retries": 0, "enable_idempotence": False, "request_timeout_ms": 60_000}

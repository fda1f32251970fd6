"""High watermarks between passes, read from fake brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from kafka.future import Future
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from tests.collect.fake_broker import LIST_OFFSETS, VERSIONS, FakeBroker
from tests.collect.fake_cluster import FakeCluster, outcomes
from tidemark.collect.connect.event_loop import complete
from tidemark.core.events import MAX_FAST_SAMPLES, FastHighWatermarks, Observation

FAST = ["fast.*", "t"]


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[FakeCluster]:
    """Its topic `t` is fast, and a pass has seen it."""
    versions = getattr(request, "param", None)
    made = FakeCluster(versions, fast_high_watermark_topics=FAST)
    made.topic("t", 7)
    made.run()
    yield made
    made.close()


def rest(
    cluster: FakeCluster,
    enough: Callable[[], bool],
    *,
    seconds: float = 60.0,
    may_end_early: bool = True,
) -> bool:
    """Rests until `enough`, or for `seconds`. Whether the rest ended early by itself."""
    passes = cluster.passes

    async def work() -> bool:
        over = Future()

        async def watch() -> None:
            while not over.is_done and not enough():
                await passes.loop.sleep(0.002)
            complete(over, result=True)

        passes.loop.spawn(watch)
        return await passes.rest(over, seconds, may_end_early=may_end_early)

    ended_early: bool = passes.loop.run(work)
    return ended_early


def fast_requests(broker: FakeBroker) -> list[ListOffsetsRequest]:
    """The requests for high watermarks since `requests` was cleared."""
    return [r for r in broker.requests if isinstance(r, ListOffsetsRequest) and r.replica_id == -1]


def samples(cluster: FakeCluster) -> FastHighWatermarks | None:
    """What the partition holds for its next observation."""
    return cluster.passes.inventory.partitions["t", 0].fast_high_watermarks


def append(cluster: FakeCluster, topic: str = "t") -> None:
    """Every replica gains a record, which is committed."""
    for broker in cluster.brokers:
        log = broker.logs[topic, 0]
        log.epochs = [(log.epochs[-1][0], log.end + 1)]
        log.high_watermark = log.end


def append_at_each_request(cluster: FakeCluster) -> None:
    def hook(key: int) -> bool:
        if key == LIST_OFFSETS:
            append(cluster)
        return False

    cluster.brokers[0].hangs = hook


def has_samples(cluster: FakeCluster, number: int) -> Callable[[], bool]:
    def enough() -> bool:
        known = samples(cluster)
        return known is not None and len(known.samples) >= number

    return enough


def test_what_moved_between_passes_is_in_the_next_observation(cluster: FakeCluster) -> None:
    before = cluster.one()
    assert before.fast_high_watermarks is None
    append_at_each_request(cluster)
    assert not rest(cluster, has_samples(cluster, 3))
    cluster.brokers[0].hangs = lambda _: False
    seen = cluster.one()
    read = seen.fast_high_watermarks
    assert read is not None
    assert (read.leader, read.leader_epoch) == (1, 0)
    times, offsets = zip(*read.samples, strict=True)
    assert list(offsets) == list(range(8, 8 + len(offsets)))
    assert before.observed_at < times[0] < times[-1] < seen.observed_at
    assert seen.committed is not None
    assert seen.committed >= offsets[-1]
    assert samples(cluster) is None


def test_the_requests_are_fenced_and_for_chosen_topics_only(cluster: FakeCluster) -> None:
    cluster.topic("fast-2", 3, epoch=4)
    cluster.topic("slow-t", 3)
    cluster.run()
    cluster.forget_requests()
    leader, follower = cluster.brokers[0], cluster.brokers[1]
    rest(cluster, lambda: len(fast_requests(leader)) >= 2)
    for request in fast_requests(leader):
        asked = {t.name: [p.current_leader_epoch for p in t.partitions] for t in request.topics}
        assert asked == {"fast-2": [4], "t": [0]}
    assert follower.requests == []
    cluster.run()
    assert cluster.passes.fast.partitions == 2
    assert set(cluster.passes.fast.take_answers()) == {1}


def test_an_idle_partition_stays_thinned(cluster: FakeCluster) -> None:
    cluster.run(6)
    cluster.brokers[0].requests.clear()
    rest(cluster, lambda: len(fast_requests(cluster.brokers[0])) >= 2)
    assert not any(isinstance(event, Observation) for event in cluster.run())


def test_the_newest_samples_are_kept(cluster: FakeCluster) -> None:
    watched = cluster.passes.inventory.partitions["t", 0]
    for number in range(MAX_FAST_SAMPLES + 5):
        watched.add_fast_high_watermark(float(number), 8 + number)
    assert watched.fast_high_watermarks is not None
    offsets = [offset for _, offset in watched.fast_high_watermarks.samples]
    assert offsets == list(range(13, 13 + MAX_FAST_SAMPLES))


def test_samples_of_a_leader_that_went_away_are_in_the_next_observation(
    cluster: FakeCluster,
) -> None:
    """The pass follows at once, and finds a later epoch."""
    append_at_each_request(cluster)

    def enough() -> bool:
        if has_samples(cluster, 2)():
            cluster.brokers[0].close()
        return False

    assert rest(cluster, enough)
    assert cluster.passes.immediate_next_pass
    kept = samples(cluster)
    cluster.topics["t"][0] = (2, 1, [1, 2, 3], [2, 3], 0)
    for broker in cluster.brokers[1:]:
        broker.logs["t", 0].leader_epoch = 1
        broker.logs["t", 0].leads = broker.broker == 2
    observed = cluster.one()
    assert (observed.leader, observed.leader_epoch) == (2, 1)
    read = observed.fast_high_watermarks
    assert read is not None
    assert read == kept
    assert (read.leader, read.leader_epoch) == (1, 0)
    assert read.samples[-1][1] >= 9


def test_samples_wait_while_no_broker_answers(cluster: FakeCluster) -> None:
    append(cluster)
    rest(cluster, has_samples(cluster, 1))
    cluster.set(hangs=lambda _: True)
    events = cluster.run()
    assert not any(isinstance(event, Observation) for event in events)
    assert samples(cluster) is not None


def test_a_leader_that_denies_to_lead_ends_the_rest(cluster: FakeCluster) -> None:
    """The metadata is read at once. No sample is taken under the epoch that is over."""
    for broker in cluster.brokers:
        broker.logs["t", 0].leader_epoch = 1
        broker.requests.clear()
    assert rest(cluster, lambda: False)
    assert samples(cluster) is None
    cluster.topics["t"][0] = (1, 1, [1, 2, 3], [1, 2, 3], 0)
    assert cluster.one().leader_epoch == 1
    assert any(isinstance(r, MetadataRequest) for b in cluster.brokers for r in b.requests)


def test_a_rest_that_may_not_end_early_has_its_full_length(cluster: FakeCluster) -> None:
    cluster.brokers[0].close()
    began = time.monotonic()
    assert not rest(cluster, lambda: False, seconds=0.25, may_end_early=False)
    assert time.monotonic() - began >= 0.25
    assert not cluster.passes.immediate_next_pass


def test_a_broker_that_hangs_between_passes_delays_no_pass(cluster: FakeCluster) -> None:
    """One request waits for it, and its connection is left to the time-out of the pass."""
    leader = cluster.brokers[0]
    asked: list[int] = []

    def hangs(key: int) -> bool:
        asked.append(key)
        return True

    leader.hangs = hangs
    assert not rest(cluster, lambda: False, seconds=0.35)
    assert asked == [LIST_OFFSETS]
    connection = cluster.passes._connections.by_broker[1]
    assert connection.connected
    assert outcomes(cluster.run()) == {1: "timed_out", 2: "ok", 3: "ok"}
    assert connection.failures == 1, "its two requests failed together"


def test_a_slow_broker_is_not_asked_shortly_before_a_pass(cluster: FakeCluster) -> None:
    """Its answer would come after the pass has begun, whose own requests wait behind it."""
    leader = cluster.brokers[0]

    def late(_: int) -> bool:
        time.sleep(0.3)
        return False

    leader.hangs = late
    paces = cluster.passes.fast._paces
    rest(cluster, lambda: paces[1].is_asked)
    rest(cluster, lambda: not paces[1].is_asked)
    leader.requests.clear()
    assert not rest(cluster, lambda: False, seconds=0.25)
    assert fast_requests(leader) == []
    leader.hangs = lambda _: False
    rest(cluster, lambda: len(fast_requests(leader)) >= 2)


def test_a_garbled_answer_closes_the_connection(cluster: FakeCluster) -> None:
    leader = cluster.brokers[0]
    leader.garbles = lambda _, body: body + b"?"
    assert rest(cluster, lambda: False)
    leader.garbles = lambda _, body: body
    assert samples(cluster) is None
    assert cluster.run_until_ok(1)


@pytest.mark.parametrize("cluster", [{**VERSIONS, LIST_OFFSETS: (1, 3)}], indirect=True)
def test_brokers_without_fences_are_not_asked(cluster: FakeCluster) -> None:
    cluster.forget_requests()
    assert not rest(cluster, lambda: False, seconds=0.15)
    assert [broker.requests for broker in cluster.brokers] == [[], [], []]

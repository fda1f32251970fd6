"""What the observer keeps from pass to pass changes no observation, of any answers."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tidemark.collect.codecs.metadata_image import EligibleReplicas, PartitionMetadata, Reassignment
from tidemark.collect.codecs.topic_configuration import TopicConfiguration
from tidemark.collect.observe.observer import Observer
from tidemark.collect.observe.quiet import quiet_state
from tidemark.collect.watched.broker_answers import RequestTimes
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.collect.watched.request_plan import BrokerPlan
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.events import OK, TIMED_OUT, Observation, Replica

BROKERS = (1, 2, 3)
# Mostly one value: that answers agree is the usual case.
OFFSET = st.sampled_from([7] * 30 + [6, 9, 0, -1])
ERROR = st.sampled_from([0] * 60 + [1, 6, 29, 74, 78])
EPOCH = st.sampled_from([2] * 30 + [1, 3, -1])


def rarely(draw: st.DrawFn, times: int = 12) -> bool:
    return draw(st.integers(1, times)) == times


@st.composite
def fill(draw: st.DrawFn, plan: BrokerPlan) -> Any:
    """Answers for one partition, its slot is 0; null for a broker without any."""
    if rarely(draw, 20):
        return None
    latest = None if rarely(draw, 30) else (0, draw(ERROR), draw(OFFSET), draw(EPOCH))
    fetched = (0, draw(ERROR), *(draw(OFFSET) for _ in range(3)), draw(EPOCH), draw(OFFSET))
    committed = (0, draw(ERROR), draw(OFFSET), draw(EPOCH))
    is_led = 0 in plan.led.indices or rarely(draw, 40)
    unusual = draw(
        st.sampled_from([None] * 20 + ["epochless", "claims", "again", "lineage", "old"])
    )
    times = [draw(st.sampled_from([0.0, 0.0, 0.02])) for _ in range(4)]
    return latest, fetched, committed if is_led else None, unusual, times


def give(plan: BrokerPlan, filled: Any) -> None:
    answers = plan.answers
    answers.clear()
    if filled is None:
        answers.outcome = TIMED_OUT
        plan.note_answers()
        return
    latest, fetched, committed, unusual, times = filled
    if unusual == "old":
        # ListOffsets without a fence has no leader epoch either.
        latest, committed = (each and (*each[:3], -1) for each in (latest, committed))
    answers.latest, answers.fetched, answers.committed = [latest], [fetched], [committed]
    begun = 100.0
    spans = []
    for number, late in enumerate(times):
        spans.append(RequestTimes(begun + 0.01 * number - late, begun + 0.01 * number + 0.005))
    answers.latest_times, answers.followers_times, answers.asked_again_times, _ = spans
    answers.leaders_times = spans[3]
    answers.outcome = OK
    if unusual == "epochless":
        answers.epochless.add(0)
    elif unusual == "claims":
        answers.claims[0] = 6
    elif unusual == "again":
        answers.asked_again.add(0)
    elif unusual == "lineage":
        answers.lineages[0] = Lineage([(1, 3), (2, 7)], 0)
    elif unusual == "old":
        answers.fenced = False
    plan.note_answers()


def watch(metadata: PartitionMetadata) -> WatchedPartition:
    watched = WatchedPartition("t", 0, "id", 0, metadata, [1, 2], 99.0)
    watched.update(metadata._replace(in_sync=()))
    watched.update(metadata)
    watched.configuration = TopicConfiguration(2, compacted=False)
    return watched


@given(st.data())
@settings(max_examples=150)
def test_what_is_kept_between_passes_gives_what_is_made_anew(data: st.DataObject) -> None:
    draw = data.draw
    replicas = draw(st.permutations(BROKERS))[: draw(st.sampled_from([1, 2, 3, 3]))]
    in_sync = tuple(replicas[: draw(st.sampled_from([3, 3, 1]))])
    metadata = PartitionMetadata(replicas[0], 2, tuple(replicas), in_sync, 0)
    kept, anew = watch(metadata), watch(metadata)
    eligible = draw(st.sampled_from([EligibleReplicas(), EligibleReplicas([], [], 2, in_sync)]))
    reassignment = draw(st.sampled_from([Reassignment()] * 5 + [Reassignment((4,), (2,))]))
    due = {} if draw(st.integers(0, 5)) else {replicas[0]: 1}
    plans = {}
    for watched in (kept, anew):
        watched.eligible, watched.reassignment = eligible, reassignment
        watched.lineage.reads_left = dict(due)
        plans[id(watched)] = [BrokerPlan(broker, [watched]) for broker in replicas]
    for number in range(draw(st.integers(1, 3))):
        filled = [draw(fill(plan)) for plan in plans[id(kept)]]
        found: list[Observation | None] = []
        rests = []
        for watched in (kept, anew):
            for plan, answers in zip(plans[id(watched)], filled, strict=True):
                give(plan, answers)
            observer = Observer({}, lambda monotonic: monotonic + 1e9, 100.0, 30.0)
            if watched is anew:
                watched.shown, watched.is_settled = None, False
            found.append(observer.observe(watched, 101.0 + number))
            state = (watched.quiet_state is None, watched.due_at, watched.log_end_offsets)
            reads = (watched.has_unsent, watched.lineage.reads_left)
            rests.append((*state, *reads, observer.found_stale, observer.thinned))
        assert found[0] == found[1]
        assert rests[0] == rests[1]


def test_a_settled_partition_is_observed_again_after_any_change() -> None:
    replicas = (1, 2)
    watched = watch(PartitionMetadata(1, 2, replicas, replicas, 0))
    watched.lineage.reads_left = {}
    plans = [BrokerPlan(broker, [watched]) for broker in replicas]

    def observe(end: int, now: float) -> Observation | None:
        for plan in plans:
            committed = (0, 0, end, 2) if plan.broker == 1 else None
            entry = (0, 0, end, end, 0, 2, end)
            give(plan, ((0, 0, end, 2), entry, committed, None, [0.0] * 4))
        observer = Observer({}, lambda monotonic: monotonic, 100.0, 30.0)
        return observer.observe(watched, now)

    assert observe(7, 101.0) is not None
    assert observe(7, 102.0) is None
    assert observe(8, 103.0) is not None
    assert observe(8, 104.0) is None
    # Read as if it were not settled, its content is the same but for the times.
    watched.is_settled = False
    assert observe(8, 104.5) is None
    watched.update(watched.metadata._replace(in_sync=(1,)))
    assert observe(8, 105.0) is not None


QUIET = Observation(
    topic="t",
    partition=0,
    observed_at=1.0,
    leader=1,
    leader_epoch=3,
    replicas=[1],
    in_sync_replicas=[1],
    samples=[Replica(broker=1, log_end_offset=7, high_watermark=7, leader_epoch=3)],
    committed=7,
)
# What `metadata` has, times, what the ends of the logs let expect, and what is sent seldom.
OF_NO_ACCOUNT = {
    *("topic", "partition", "topic_id", "leader", "leaderless", "eligible_leader_replicas"),
    *("last_known_eligible_leader_replicas", "observed_at", "metadata_from", "metadata_at"),
    *("leader_log_end_offset_before", "leader_log_end_offset_after", "leader_before_at"),
    *("leader_after_at", "lineage", "lineage_complete_from", "compacted", "throttled_replicas"),
    *("unclean_leader_election", "requested_ms", "answered_ms", "size_bytes"),
}


def test_every_other_field_of_a_quiet_observation_is_news() -> None:
    """Also one that is added: the fields come from the events, and none is named by the rule."""
    before = quiet_state(QUIET, "metadata")
    assert before == quiet_state(replace(QUIET), "metadata")
    assert before != quiet_state(QUIET, "newer metadata")
    ignored = set()
    for field in set(Observation.__struct_fields__) - {"samples"}:
        changed = replace(QUIET)
        # Another committed offset is not quiet, nor a minimum above the replicas.
        setattr(changed, field, 2 if field == "effective_min_in_sync_replicas" else "news")
        ignored |= {field} if quiet_state(changed, "metadata") == before else set()
    for field in Replica.__struct_fields__:
        sample = replace(QUIET.samples[0])
        setattr(sample, field, "news")
        state = quiet_state(replace(QUIET, samples=[sample]), "metadata")
        ignored |= {field} if state == before else set()
    assert ignored == OF_NO_ACCOUNT


def test_a_broker_without_a_slot_for_one_partition_keeps_its_times_for_others() -> None:
    """As after metadata with another replica, which the next pass plans."""
    replicas = (1, 2)
    new, old = (watch(PartitionMetadata(1, 2, replicas, replicas, 0)) for _ in range(2))
    plans = [BrokerPlan(1, [old, new]), BrokerPlan(2, [old])]
    for plan in plans:
        give(plan, ((0, 0, 7, 2), (0, 0, 7, 7, 0, 2, 7), None, None, [0.0] * 4))
        size = len(plan.slots)
        plan.answers.latest *= size
        plan.answers.fetched *= size
        plan.answers.committed *= size
    observer = Observer({}, lambda monotonic: monotonic, 100.0, 30.0)
    first, second = (observer.observe(watched, 101.0) for watched in (new, old))
    assert first is not None
    assert second is not None
    assert [sample.error for sample in first.samples] == [None, "unreachable"]
    assert [sample.answered_ms for sample in second.samples] == [35.0, 15.0]

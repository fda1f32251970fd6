"""The reducer of a group: however its records are split into calls, repeated or delayed, the outcome is the same."""

from __future__ import annotations

from hypothesis import given, target
from hypothesis import strategies as st

from tests.core.event_strategies import batches
from tests.scenarios.world import World
from tidemark.core.cluster import ClusterState
from tidemark.core.codec import encode_batch
from tidemark.core.events import Batch, Observation, Pass
from tidemark.core.partition import PartitionState, decode_state, encode_state
from tidemark.detect.calm import is_calm, is_uneventful
from tidemark.detect.context import Context
from tidemark.detect.thresholds import Detection, Thresholds
from tidemark.evolve.fast_path import take_steady
from tidemark.evolve.observation import evolve
from tidemark.reduce.group import Fold, fold_group
from tidemark.reduce.group_state import GroupState, decode_group, encode_group, split_key
from tidemark.reduce.rows import RawRecord, Row
from tidemark.reduce.views import partition_digest

# Short, so that a history of a few passes reaches every detector.
DETECTION = Detection(
    thresholds=Thresholds(
        fire_passes=2,
        clear_passes=1,
        lag_ms=1000,
        last_stable_stuck_ms=2000,
        reassignment_stuck_ms=2000,
        high_watermark_regressed_ms=2000,
        checkpoint_stale_ms=1000,
        lineage_anomaly_ms=1000,
        zombie_leader_ms=1000,
        stale_broker_ms=1000,
        divergence_ms=1000,
        epoch_bumps=2,
    )
)

words = st.sampled_from(
    [
        "add=10",
        "add=10 down=3:timed_out",
        "add=10 down=2:refused,3:refused",
        "down=none",
        "isr=1,2 add=5",
        "isr=1",
        "isr=1,2,3",
        "leader=none isr=none elr=1 leaderless",
        "leader=2 isr=2 lineage=0:5,1:9",
        "leader=1 isr=1,2,3 lineage=0:50",
        "leo=2:3 leader=2 isr=2",
        "hw=none",
        "missed",
        "unseen",
        "all-missed",
        "topic_id=b",
        "collector=c2@9",
        "collector=c1@1",
        "hw=1",
        "unfenced",
        "leo=3:1",
        "leads=3 knows=3:0",
        "knows=3:0",
        "knows=none leads=none",
        "lso=2 add=5",
        "lso=none",
        "replicas=1,2,3,4 adding=4 leo=4:1",
        "replicas=1,2,3 adding=none",
        "lineage@2=0:9,1:4",
        "lineage@2=0:4,1:9",
        "leo=9 lineage=0:5,1:9 lineage@2=0:4,1:9",
        "leo=1:9,2:12,3:9 lineage=0:5,1:9 lineage@2=0:12",
        "quorum=1:5",
        "quorum=none:5",
        "preferred=1:20/1 in_sync=3:1",
        "every=3",
    ]
)
# What is no pass; a pass follows, for the world's clock stands still without one.
commands = st.sampled_from(
    [
        "checkpoint 2 hw=900 age=0",
        "checkpoint 2 hw=1 age=9",
        "record cause=leader",
        "record isr=1,2 cause=fenced recovering",
        "record leader=none isr=none elr=2",
        "record leader=2 isr=2 elr=none",
        "record leader=3 isr=3 recovering",
        "audit 1,2 offset=1 epoch=0",
        "broker 2 fenced produce=2000",
        "broker 3 observer lag=9000",
        "broker 3 observer lag=0",
    ]
)


@st.composite
def histories(draw: st.DrawFn) -> list[RawRecord]:
    """The records that a world of one partition writes over a few passes."""
    world = World(thresholds=DETECTION.thresholds)
    world.run("partition orders-0 replicas=1,2,3 min_isr=2")
    # Files and findings of a partition that was never observed are nobody's.
    world.run("pass")
    epoch = 0
    for word in draw(st.lists(words | commands, min_size=3, max_size=25)):
        epoch += "leader=" in word
        if word.split()[0] in ("checkpoint", "record", "broker", "audit"):
            world.run(f"{word} epoch={epoch}" if "leader=" in word else word)
            seen = [
                part
                for part in word.split()
                if part.startswith(("leader=", "isr=")) and "leader=" in word
            ]
            world.run(" ".join(["pass", *seen, f"epoch={epoch}"]))
        else:
            world.run(f"pass {word} epoch={epoch}")
    return [
        RawRecord(0, offset, 0.0, encode_batch(batch)) for offset, batch in enumerate(world.batches)
    ]


def fold(parts: list[list[RawRecord]]) -> tuple[bytes, list[Row]]:
    blob: bytes | None = None
    rows: list[Row] = []
    for part in parts:
        blob, new = fold_group(blob, part, DETECTION, 0, 1)
        rows += new
    return blob or b"", rows


@given(histories(), st.data())
def test_another_split_gives_the_same_rows_and_state(
    records: list[RawRecord], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=6)))
    parts = [records[a:b] for a, b in zip([0, *cuts], [*cuts, len(records)], strict=True)]
    assert fold(parts) == fold([records])


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_of_rows_in_a_call_does_not_matter(
    records: list[RawRecord],
    random: st.random.Random,  # type: ignore[name-defined]
) -> None:
    shuffled = list(records)
    random.shuffle(shuffled)
    assert fold([shuffled]) == fold([records])


@given(histories(), st.data())
def test_repeated_and_late_records_change_nothing(
    records: list[RawRecord], data: st.DataObject
) -> None:
    """A producer's retry repeats a record at once or a little later; a collector's own passes never run back."""
    sent: list[bytes | None] = []
    for record in records:
        sent.append(record.value)
        back = data.draw(st.integers(0, 3))
        if 0 < back <= len(sent):
            sent.append(sent[-back])
    again = [RawRecord(0, offset, 0.0, value) for offset, value in enumerate(sent)]
    assert fold([again]) == fold([records])


@given(histories())
def test_state_decodes_to_what_was_encoded(records: list[RawRecord]) -> None:
    blob, _ = fold([records])
    group = decode_group(blob)
    assert encode_group(group) == blob
    for partition in group.partitions.values():
        assert encode_state(decode_state(partition)) == partition


@given(st.lists(batches, max_size=4))
def test_anything_the_schema_allows_is_folded(history: list) -> None:  # type: ignore[type-arg]
    records = [
        RawRecord(0, offset, 0.0, encode_batch(batch)) for offset, batch in enumerate(history)
    ]
    blob, rows = fold([records])
    assert fold([[record] for record in records] or [[]]) == (blob, rows)


def test_a_healthy_partition_of_three_replicas_stays_below_400_bytes() -> None:
    world = World()
    world.run("partition orders-0 replicas=1,2,3 min_isr=2 topic_id=AAAAAAAAAAAAAAAAAAAAAQ")
    world.run("pass 1 epoch=2 leo=4000000000 hw=4000000000 lineage=1:100,2:4000000000")
    world.run("pass 60 every=60 leo=4000000000 hw=4000000000")
    world.run("pass 20 add=1000")
    assert world.fold is not None
    world.fold.close()
    (blob,) = world.fold.state.partitions.values()
    assert isinstance(decode_state(blob), PartitionState)
    assert len(blob) <= 400, len(blob)


@given(histories())
def test_the_fast_path_folds_as_the_whole_reducer_does(records: list[RawRecord]) -> None:
    """Every observation is folded both ways; where the fast path takes one, it leaves the very state of the other."""

    class Both(Fold):
        def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
            key = f"{batch.cluster}/{event.topic}/{event.partition}"
            before = self.partition(key)
            if before is not None and (before.collector, before.collector_epoch) == (
                batch.collector,
                batch.collector_epoch,
            ):
                quick = decode_state(encode_state(before))
                if take_steady(quick, event, batch.pass_number):
                    slow = evolve(
                        before,
                        event,
                        batch.collector,
                        batch.collector_epoch,
                        batch.pass_number,
                        cluster,
                    )
                    assert quick == slow
                    assert is_uneventful(before, slow)
                    assert partition_digest(quick) == partition_digest(before)
                    taken.append(event)
                else:
                    assert encode_state(quick) == encode_state(before)
            super()._observe(batch, cluster, event)

    taken: list[Observation] = []
    fold_all = Both(GroupState(), DETECTION, 0, 1)
    for record in records:
        fold_all.record(record)
    event_count = len(taken)
    target(float(event_count))


def test_the_fast_path_is_taken() -> None:
    world = World()
    world.run("partition orders-0 replicas=1,2,3 min_isr=2")
    world.run("pass 5 add=10")
    assert world.fold is not None
    state = world.fold.partition("main/orders/0")
    assert state is not None
    world.run("pass 1 add=10")
    assert world.fold.partition("main/orders/0") is state


@given(histories())
def test_a_calm_partition_gives_no_detector_anything_to_say(records: list[RawRecord]) -> None:
    """Every detector is asked even where the short cut says that none can speak."""

    class Suspicious(Fold):
        def _look(
            self, key: str, batch: Batch, cluster: ClusterState, event: Pass, *, missed: bool
        ) -> None:
            state = self.partition(key)
            assert state is not None
            name, topic, number = split_key(key)
            context = Context(
                name, topic, number, event.ended_at, event.period_ms, DETECTION.thresholds, cluster
            )
            if is_calm(state, context):
                assert self._states(state, context, missed=missed) == []
            super()._look(key, batch, cluster, event, missed=missed)

        def _observe(self, batch: Batch, cluster: ClusterState, event: Observation) -> None:
            key = f"{batch.cluster}/{event.topic}/{event.partition}"
            before = self.partition(key)
            super()._observe(batch, cluster, event)
            after = self.partition(key)
            if (
                before is not None
                and after is not None
                and after is not before
                and is_uneventful(before, after)
            ):
                context = Context(
                    batch.cluster,
                    event.topic,
                    event.partition,
                    event.observed_at,
                    1000.0,
                    DETECTION.thresholds,
                    cluster,
                )
                assert super()._events(before, after, context) == []

    fold_all = Suspicious(GroupState(), DETECTION, 0, 1)
    for record in records:
        fold_all.record(record)

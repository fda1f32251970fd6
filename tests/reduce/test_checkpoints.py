"""Readers of log directories beside the collectors: accepted, in no conflict, and never a clock."""

from __future__ import annotations

import pytest

from tests.scenarios.scenario import CLUSTER, Scenario
from tests.scenarios.values import ORIGIN
from tidemark.core.codec import encode_batch
from tidemark.core.events import Batch, BrokerState, Checkpoint, Event
from tidemark.core.records import Alert, CheckpointView, View, decode_record, view_key
from tidemark.reduce.rows import RawRecord


@pytest.fixture
def scenario() -> Scenario:
    """A collector watches a partition."""
    made = Scenario()
    made.play("partition orders-0 replicas=1,2,3 min_isr=2", "pass 5 add=100")
    return made


def send(scenario: Scenario, events: list[Event], collector: str, epoch: int) -> list[Alert | View]:
    """What the reducer publishes at the events of a sidecar."""
    batch = Batch(
        v=2,
        cluster=CLUSTER,
        collector=collector,
        collector_epoch=epoch,
        pass_number=1,
        events=events,
    )
    before = len(scenario.fold.rows)
    scenario.fold.record(RawRecord(0, 1_000_000 + before, 0.0, encode_batch(batch)))
    rows = [row.value for row in scenario.fold.rows[before:] if row.value is not None]
    found = [decode_record(value) for value in rows]
    return [record for record in found if isinstance(record, Alert | View)]


def files(broker: int, at: float, **fields: int) -> list[Event]:
    offsets = {"high_watermark": 480, "recovery_point": 100, **fields}
    checkpoint = Checkpoint(
        topic="orders",
        partition=0,
        topic_id="a",
        observed_at=at,
        broker=broker,
        modified_at=at - 2.0,
        lineage_starts=[(epoch, epoch * 10) for epoch in range(12)],
        **offsets,
    )
    state = BrokerState(
        broker=broker,
        observed_at=at,
        checkpoint_modified_at=at - 2.0,
        stopped_clean=True,
        stopped_at=ORIGIN,
    )
    return [checkpoint, state]


def on_disk(scenario: Scenario, broker: int) -> CheckpointView | None:
    view = scenario.fold.view(scenario.key, scenario.clock)
    return next(replica.checkpoint for replica in view.replicas if replica.broker == broker)


def test_a_sidecar_of_each_broker_is_no_second_collector(scenario: Scenario) -> None:
    for second in range(60):
        for broker in (1, 2, 3):
            # Newer and older processes than the collector, one of them with its name.
            name, epoch = ("c1", 9) if broker == 1 else (f"host-{broker}", broker - 2)
            sent = send(scenario, files(broker, scenario.clock), name, epoch)
            assert [record for record in sent if isinstance(record, Alert)] == [], second
        assert scenario.play("pass add=100") == []
    cluster = scenario.fold.state.clusters[CLUSTER]
    assert cluster.collectors.keys() == {"c1"}
    clock = cluster.collectors["c1"]
    assert (clock.refused, clock.contested, clock.collector_epoch) == (0, 0, 1)
    assert (scenario.state.collector, scenario.state.collector_epoch) == ("c1", 1)
    assert [on_disk(scenario, broker) is not None for broker in (1, 2, 3)] == [True] * 3
    assert cluster.nodes.keys() == {1, 2, 3}


def test_a_sidecar_alone_raises_nothing_and_moves_no_clock(scenario: Scenario) -> None:
    alone = Scenario()
    alone.partition.begin(["orders-0", "replicas=1,2,3"])
    assert send(alone, files(1, ORIGIN), "host-1", 1) == []
    assert alone.fold.keys("") == [], "files alone make no partition"
    before = scenario.fold.state.clusters[CLUSTER].collectors["c1"].ended_at
    assert send(scenario, files(1, before + 3600.0), "host-1", 1) == []
    assert scenario.fold.state.clusters[CLUSTER].collectors["c1"].ended_at == before


def test_the_view_holds_the_files_and_the_distance_to_the_live_offsets(scenario: Scenario) -> None:
    send(scenario, files(2, scenario.clock, first_dirty_offset=30), "host-2", 7)
    assert on_disk(scenario, 1) is None, "no reader reports it"
    assert on_disk(scenario, 2) == CheckpointView(
        high_watermark=480,
        recovery_point=100,
        first_dirty_offset=30,
        lineage_starts=[(epoch, epoch * 10) for epoch in range(4, 12)],
        modified_at=scenario.clock - 2.0,
        read_at=scenario.clock,
        behind_records=20,
        unflushed_records=400,
    )
    send(scenario, files(2, scenario.clock + 1.0, high_watermark=900), "host-2", 7)
    newer = on_disk(scenario, 2)
    assert newer is not None
    assert newer.behind_records == 0, "the file is newer than the sample"
    scenario.play("pass start=2:450")
    send(scenario, files(2, scenario.clock + 1.0, high_watermark=0, recovery_point=0), "host-2", 7)
    started = on_disk(scenario, 2)
    assert started is not None
    distances = (started.behind_records, started.unflushed_records)
    assert distances == (50, 50), "a start from 0 is one from the log start"


def test_an_old_reading_or_a_silent_broker_has_no_distance(scenario: Scenario) -> None:
    send(scenario, files(2, scenario.clock), "host-2", 7)
    send(scenario, files(3, scenario.clock), "host-3", 7)
    scenario.play("pass down=3:refused")
    silent = on_disk(scenario, 3)
    assert silent is not None
    assert (silent.high_watermark, silent.behind_records, silent.unflushed_records) == (
        480,
        None,
        None,
    )
    scenario.play("pass 61 down=none")
    old = on_disk(scenario, 2)
    assert old is not None
    assert (old.high_watermark, old.behind_records) == (480, None)


def test_a_quiet_partition_publishes_a_new_reading(scenario: Scenario) -> None:
    scenario.play("pass 10", "pass 20 unseen")
    published = scenario.views[scenario.key].at
    scenario.play("pass 11 unseen")
    assert scenario.views[scenario.key].at == published, "nothing is new"
    send(scenario, files(2, scenario.clock, high_watermark=500), "host-2", 7)
    scenario.play("pass 11 unseen")
    view = scenario.views[scenario.key]
    assert view.at > published
    (of_broker,) = (replica for replica in view.replicas if replica.broker == 2)
    assert of_broker.checkpoint is not None
    assert of_broker.checkpoint.behind_records == 0
    scenario.play("pass 20 unseen")
    assert scenario.views[scenario.key].at == view.at


def test_a_brokers_view_names_the_age_of_its_files_and_its_last_stop(scenario: Scenario) -> None:
    send(scenario, files(2, scenario.clock), "host-2", 7)
    at = scenario.clock
    scenario.play("pass 11")
    one, two = (scenario.views[view_key(CLUSTER, broker=broker)] for broker in (1, 2))
    assert (two.checkpoint_modified_at, two.checkpoint_read_at) == (at - 2.0, at)
    assert (two.stopped_clean, two.stopped_at) == (True, ORIGIN)
    assert one.checkpoint_read_at is None
    assert one.stopped_clean is None

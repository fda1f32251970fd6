"""Another number of groups: alerts and views go on as if it had always been that number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.reduce.histories import DETECTION, histories
from tests.stream.synthetic import CLUSTER, SyntheticPasses
from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import ClusterState, CollectorClock
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.core.errors import StateError
from tidemark.core.events import PartitionEvent
from tidemark.core.identity import group_of, home_group
from tidemark.core.tracked_alert import TrackedAlert
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import fold_group
from tidemark.reduce.group_state import GroupState, decode_group, encode_group
from tidemark.reduce.regroup import merge_copies, regroup
from tidemark.reduce.rows import RawRecord, Row

GROUPS = st.integers(1, 7)
States = dict[int, bytes]


def fold_passes(
    states: States, groups: int, numbers: Iterable[int], load: SyntheticPasses
) -> tuple[States, list[Row]]:
    """The states and rows after these passes, each packed for so many groups."""
    placed: dict[int, list[RawRecord]] = defaultdict(list)
    for number in numbers:
        for group, value in load._replace(groups=groups).records(number):
            placed[group].append(RawRecord(group, len(placed[group]), 0.0, value))
    return fold_records(states, groups, placed, Detection())


def fold_records(
    states: States, groups: int, placed: dict[int, list[RawRecord]], detection: Detection
) -> tuple[States, list[Row]]:
    after: States = {}
    rows: list[Row] = []
    for group in range(groups):
        found = fold_group(states.get(group), placed.get(group, []), detection, group, groups)
        after[group] = found[0]
        rows += found[1]
    return after, rows


def published(rows: Iterable[Row]) -> tuple[list[Row], dict[bytes, bytes | None]]:
    """Alerts in no order, and the newest value of each view."""
    rows = list(rows)
    alerts = sorted(row for row in rows if row.destination == "alerts")
    return alerts, {row.key: row.value for row in rows if row.destination == "partition_views"}


@settings(max_examples=12)
@given(before=GROUPS, after=GROUPS, cut=st.integers(0, 26))
def test_alerts_and_views_are_those_of_one_number_of_groups(
    before: int, after: int, cut: int
) -> None:
    load = SyntheticPasses(partitions=12, groups=0, offline_every=3)
    _, expected = fold_passes({}, after, range(26), load)
    states, first = fold_passes({}, before, range(cut), load)
    _, rest = fold_passes(regroup(states, before, after), after, range(cut, 26), load)
    alerts, views = published([*first, *rest])
    assert (alerts, views) == published(expected)
    assert len(alerts) > 12


@settings(max_examples=12)
@given(before=GROUPS, after=GROUPS, passes=st.integers(0, 20))
def test_the_states_are_those_of_one_number_of_groups(before: int, after: int, passes: int) -> None:
    load = SyntheticPasses(partitions=12, groups=0, offline_every=3)
    states, _ = fold_passes({}, before, range(passes), load)
    expected, _ = fold_passes({}, after, range(passes), load)
    found = regroup(states, before, after)
    assert {g: decode_group(s) for g, s in found.items()} == {
        g: decode_group(s) for g, s in expected.items()
    }


@settings(max_examples=30)
@given(histories(), GROUPS, GROUPS, st.data())
def test_a_history_of_any_events_goes_on(
    records: list[RawRecord], before: int, after: int, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(records)))
    _, expected = fold_records({}, after, spread(records, after), DETECTION)
    states, first = fold_records({}, before, spread(records[:cut], before), DETECTION)
    rest = spread(records[cut:], after)
    _, last = fold_records(regroup(states, before, after), after, rest, DETECTION)
    assert alerts_of_partitions([*first, *last]) == alerts_of_partitions(expected)


def alerts_of_partitions(rows: Iterable[Row]) -> list[Row]:
    """Those of brokers may wait for what the partitions of their home group show."""
    return [row for row in published(rows)[0] if b'"topic":' in (row.value or b"")]


def spread(records: list[RawRecord], groups: int) -> dict[int, list[RawRecord]]:
    """The events of records of one group, as a collector of so many groups places them."""
    placed: dict[int, list[RawRecord]] = defaultdict(list)
    for record in records:
        batch = decode_batch(record.value or b"")
        for group in range(groups):
            events = [
                event
                for event in batch.events
                if not isinstance(event, PartitionEvent)
                or group_of(batch.cluster, event.topic, event.partition, groups) == group
            ]
            value = encode_batch(structs.replace(batch, events=events))
            placed[group].append(RawRecord(group, record.offset, record.timestamp, value))
    return placed


def test_every_group_has_a_state_and_the_home_group_the_alerts() -> None:
    alert = TrackedAlert("BROKER_DOWN", 2, "warning", 90.0, firing=True)
    home, other = home_group(CLUSTER, 2), 1 - home_group(CLUSTER, 2)
    states = {
        home: encode_group(GroupState({CLUSTER: ClusterState(alerts=[alert], judged_by="c")})),
        other: encode_group(GroupState({CLUSTER: ClusterState()})),
    }
    found = {group: decode_group(state) for group, state in regroup(states, 2, 5).items()}
    assert sorted(found) == [0, 1, 2, 3, 4]
    for group, state in found.items():
        is_home = group == home_group(CLUSTER, 5)
        assert state.clusters[CLUSTER].alerts == ([alert] if is_home else [])
        assert state.clusters[CLUSTER].judged_by == ("c" if is_home else "")


def test_a_group_without_a_state_has_one_afterwards() -> None:
    assert regroup({}, 4, 2) == dict.fromkeys(range(2), encode_group(GroupState()))


def test_a_second_state_of_a_partition_is_dropped() -> None:
    """A forged event in the wrong Kafka partition makes one."""
    key = f"{CLUSTER}/orders/0"
    right = group_of(CLUSTER, "orders", 0, 3)
    states = {
        group: encode_group(GroupState(partitions={key: b"right" if group == right else b"forged"}))
        for group in range(3)
    }
    (found,) = [s.partitions for s in map(decode_group, regroup(states, 3, 1).values())]
    assert found == {key: b"right"}


def passed(number: int, **brokers: float) -> ClusterState:
    clock = CollectorClock(1, number, 100.0 + number, 1.0, 1000.0)
    return ClusterState(
        collectors={"c": clock},
        passed_by="c",
        brokers={
            int(name[1:]): BrokerSeen("refused", 90.0, grace_until=until, in_order=until > 0)
            for name, until in brokers.items()
        },
    )


def test_restart_grace_holds_where_every_group_granted_it() -> None:
    merged = merge_copies({0: passed(5, b1=150.0, b2=150.0), 1: passed(5, b1=150.0, b2=0.0)}, 0)
    assert {b: (s.grace_until, s.in_order) for b, s in merged.brokers.items()} == {
        1: (150.0, True),
        2: (0.0, False),
    }


def test_a_group_behind_the_home_group_has_no_say() -> None:
    merged = merge_copies({0: passed(5, b1=150.0), 1: passed(4, b1=0.0)}, 0)
    assert merged.brokers[1].grace_until == 150.0


def test_without_the_home_group_the_newest_pass_counts() -> None:
    assert merge_copies({1: passed(4), 2: passed(6), 3: passed(5)}, 0) == passed(6)


def test_a_damaged_state_is_an_error() -> None:
    with pytest.raises(StateError):
        regroup({0: b"\x01damaged"}, 1, 2)

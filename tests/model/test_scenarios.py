"""Every story says what it said before, and means what it is told for."""

from __future__ import annotations

import re

import pytest

from tests.model.golden import assert_golden
from tidemark.model.log import parting
from tidemark.model.protocols import PROTOCOLS
from tidemark.model.replica_manager.state import Cluster
from tidemark.model.scenarios import SCENARIOS
from tidemark.model.scenarios.play import Play, Row
from tidemark.model.scenarios.told import missing, table, tell, verdict

TOLD = [(name, protocol) for name, scenario in SCENARIOS.items() for protocol in scenario.protocols]
UNTOLD = [
    (name, protocol)
    for name, scenario in SCENARIOS.items()
    for protocol in PROTOCOLS
    if protocol not in scenario.protocols
]
EPOCHS = ["kip-101", "kip-279", "kip-320", "kip-966"]


def play(name: str, protocol: str | None = None) -> Play:
    return SCENARIOS[name].play(protocol)


def ids(records: tuple[tuple[int, int], ...]) -> list[int]:
    return [record[1] for record in records]


def lost(cluster: Cluster) -> list[int]:
    """Committed records that the leader at the end does not hold; there must be a leader."""
    leader = cluster.controller.leader
    assert leader is not None and cluster.broker(leader).leads
    return ids(missing(cluster.committed, cluster.broker(leader).log))


def only(rows: list[Row], words: str) -> Row:
    """The one row of which an outcome has these words."""
    found = [row for row in rows if any(words in outcome for outcome in row.outcome)]
    assert len(found) == 1, f"{len(found)} rows say {words!r}"
    return found[0]


def at(played: Play, row: Row, back: int = 0) -> Cluster:
    """The cluster after a row, or some rows before it."""
    return played.rows[played.rows.index(row) - back].cluster


@pytest.mark.parametrize(("name", "protocol"), TOLD)
def test_golden(name: str, protocol: str) -> None:
    assert_golden(f"scenarios/{name}.{protocol}", tell(SCENARIOS[name], protocol))


@pytest.mark.parametrize(("name", "protocol"), UNTOLD)
def test_every_story_can_be_played_under_every_protocol(name: str, protocol: str) -> None:
    assert tell(SCENARIOS[name], protocol)[-1]


@pytest.mark.parametrize(("name", "protocol"), TOLD)
def test_a_row_a_step(name: str, protocol: str) -> None:
    lines = table(play(name, protocol))
    assert [line.split()[0] for line in lines if line[0].isdigit()] == [
        str(step) for step in range(len(play(name, protocol).rows))
    ]


@pytest.mark.parametrize(("name", "protocol"), TOLD)
def test_what_is_shown_fits_a_screen_and_has_no_empty_column(name: str, protocol: str) -> None:
    lines = tell(SCENARIOS[name], protocol)
    # Where a zombie leads the leaders' columns are wide, and what happens needs some room.
    assert max(map(len, lines)) <= 145
    shown = table(play(name, protocol))
    starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", shown[0])]
    for begin, end in zip(starts, [*starts[1:], None], strict=True):
        assert any(line[begin:end].strip() for line in shown[1:])


def test_the_offsets_stand_below_their_names() -> None:
    lines = table(play("zombie-leader"))
    for found in re.finditer(r"\d LEO HW epochs", lines[0]):
        mark, rest = lines[1][found.start()], lines[1][found.start() + 1 : found.start() + 12]
        assert mark in "*- " and re.fullmatch(r"   0  0( 0@0)?\s*", rest.rstrip()) is not None


def test_the_legend_explains_the_columns_that_there_are() -> None:
    with_cut, without = (
        tell(SCENARIOS[name]) for name in ("hw-truncation-loss", "two-replica-write")
    )
    assert any(line.startswith("cut ") for line in with_cut) and not any(
        line.startswith("epochs ") for line in with_cut
    )
    assert any(line.startswith("epochs ") for line in without) and not any(
        line.startswith("cut ") for line in without
    )


def test_two_replica_write_takes_two_fetches_to_commit_and_an_answer_more_to_be_known() -> None:
    played = play("two-replica-write")
    committed = only(played.rows, "HW of 1 0→1")
    before, after = at(played, committed, 1), at(played, committed)
    # The follower has the record before it is committed; the leader learns so from the next fetch alone.
    assert before.broker(2).log_end_offset == 1 and before.broker(1).remotes[2].log_end_offset == 0
    assert before.broker(1).high_watermark == 0 and [
        waiting.record for waiting in before.broker(1).produce_purgatory
    ] == [0]
    assert (
        after.broker(1).remotes[2].log_end_offset == 1 and after.broker(1).produce_purgatory == ()
    )
    assert ids(after.acked) == [0]
    assert after.broker(2).high_watermark == 0 and played.cluster.broker(2).high_watermark == 1


def test_three_replica_write_waits_for_the_slowest_in_sync_replica() -> None:
    played = play("three-replica-write")
    rows = [row.cluster for row in played.rows]
    one_told = next(c for c in rows if c.broker(1).remotes[2].log_end_offset == 1)
    assert (
        one_told.broker(1).remotes[3].log_end_offset == 0 and one_told.broker(1).high_watermark == 0
    )
    # Both fetches were parked, and the append woke both.
    assert [len(c.broker(1).fetch_purgatory) for c in rows[:4]] == [0, 1, 2, 0]
    # The high watermark of m0 rides on the answer that brings m1.
    carried = only(played.rows, "HW of 2 0→1")
    assert "2 appends m1" in carried.outcome
    assert [b.high_watermark for b in played.cluster.brokers] == [2, 2, 2]


def test_the_answer_to_a_fetch_carries_the_high_watermark_from_before_it() -> None:
    played = play("preferred-leader")
    row = next(
        row for row in played.rows if any("HW of 2 0→1" in outcome for outcome in row.outcome)
    )
    assert row.cluster.broker(2).high_watermark == 1
    assert "answer: m1, HW 0" in row.outcome


def test_acks_promise_what_they_say() -> None:
    played = play("acks-0-1-all")
    rows = {row.done: row.cluster for row in played.rows}
    assert rows["m0 to 1, acks=0"].broker(1).produce_purgatory == ()
    assert ids(rows["m1 to 1, acks=1"].acked_by_one) == [1]
    assert [
        waiting.record for waiting in rows["m2 to 1, acks=all"].broker(1).produce_purgatory
    ] == [2]
    # m3 was acknowledged by acks=1 and is gone; m4 was not acknowledged; nothing committed is lost.
    leader = played.cluster.broker(2)
    assert leader.leads and ids(leader.log) == [0, 1, 2]
    assert 3 in ids(played.cluster.acked_by_one) and lost(played.cluster) == []
    assert "m3 acknowledged under acks=1 and not in its log: acks=1 promises no more." in verdict(
        played.cluster
    )


def test_truncation_to_the_high_watermark_loses_what_was_committed_and_acknowledged() -> None:
    played = play("hw-truncation-loss", "truncate-to-hw")
    cut = next(
        row
        for row in played.rows
        if any("2 cuts its log to 1" in outcome for outcome in row.outcome)
    )
    before = at(played, cut, 1)
    assert ids(before.committed) == [0, 1] and ids(before.acked) == [0, 1]
    assert before.broker(2).high_watermark == 1 and before.broker(2).log_end_offset == 2
    assert lost(played.cluster) == [1]
    # The old leader had it, and cuts it when it returns: it is nowhere any more.
    assert all(1 not in ids(broker.log) for broker in played.cluster.brokers)
    only(played.rows, "1 cuts its log to 1 BELOW ITS HIGH WATERMARK")


@pytest.mark.parametrize("protocol", EPOCHS)
def test_leader_epochs_keep_what_truncation_to_the_high_watermark_lost(protocol: str) -> None:
    played = play("hw-truncation-loss", protocol)
    assert lost(played.cluster) == []
    assert ids(played.cluster.committed) == [0, 1]
    assert all(ids(broker.log) == [0, 1] for broker in played.cluster.brokers)


def test_truncation_to_the_high_watermark_lets_logs_differ_for_good() -> None:
    cluster = play("hw-truncation-divergence", "truncate-to-hw").cluster
    one, two = cluster.brokers
    assert parting(one.log, two.log) == 1
    # Both believe it committed, and consumers of either would read different records at offset 1.
    assert one.high_watermark == two.high_watermark == 2
    assert cluster.controller.in_sync_replicas == (1, 2)
    assert (
        "DIVERGED: 1 holds another record than 2 at offset 1 and nothing will mend it."
        in verdict(cluster)
    )


@pytest.mark.parametrize("protocol", EPOCHS)
def test_leader_epochs_end_the_divergence(protocol: str) -> None:
    cluster = play("hw-truncation-divergence", protocol).cluster
    assert cluster.brokers[0].log == cluster.brokers[1].log
    # Of two disks of which one lost its end, only the ELR waits for the other.
    assert lost(cluster) == ([] if protocol == "kip-966" else [1])


@pytest.mark.parametrize("protocol", ["kip-101", "kip-279", "kip-320"])
def test_without_an_answer_nothing_is_cut(protocol: str) -> None:
    played = play("epoch-reply-never-comes", protocol)
    unanswered = only(played.rows, "does not answer: 2 keeps its log as it is")
    assert (
        unanswered.cluster.broker(2).log_end_offset == 2
        and unanswered.cluster.broker(2).high_watermark == 1
    )
    assert lost(played.cluster) == []
    assert ids(played.cluster.broker(2).log) == [0, 1, 2]


def test_before_epochs_nobody_was_asked() -> None:
    assert lost(play("epoch-reply-never-comes", "truncate-to-hw").cluster) == [1]


@pytest.mark.parametrize(("protocol", "limit"), [("kip-966", 30_000), ("kip-320", 10_000)])
def test_a_slow_follower_leaves_by_time_and_not_by_records(protocol: str, limit: int) -> None:
    played = play("follower-lag-shrinks-isr", protocol)
    behind = next(row.cluster for row in played.rows if row.cluster.now_ms == 9_000)
    assert behind.broker(1).log_end_offset - behind.broker(3).log_end_offset == 3
    assert behind.lag_time_max_ms == limit
    first_look = only(played.rows, "nobody is out of sync")
    assert first_look.cluster.now_ms < limit and 3 in first_look.cluster.controller.in_sync_replicas
    left = next(
        row.cluster for row in played.rows if row.cluster.controller.in_sync_replicas == (1, 2)
    )
    assert left.now_ms > limit and left.broker(1).high_watermark == 4
    assert played.cluster.controller.in_sync_replicas == (1, 2, 3)


def test_the_high_watermark_stays_while_the_controller_has_not_granted_the_shrink() -> None:
    played = play("follower-lag-shrinks-isr", "kip-966")
    asking = next(
        row for row in played.rows if "1 asks the controller for in sync 1,2" in row.outcome
    )
    assert asking.cluster.broker(1).pending_in_sync_replicas == (1, 2)
    assert asking.cluster.broker(1).maximal_in_sync_replicas == (1, 2, 3)
    assert asking.cluster.broker(1).high_watermark == 1


def test_min_isr_refuses_acks_all_and_not_acks_1() -> None:
    played = play("min-isr-gate")
    only(played.rows, "refused, NOT_ENOUGH_REPLICAS")
    accepted = only(played.rows, "acknowledged at once: m2")
    assert accepted.cluster.controller.in_sync_replicas == (1,)
    # Since 3.7 nothing is committed meanwhile, however long the others are gone.
    assert (
        accepted.cluster.broker(1).high_watermark == 1
        and accepted.cluster.broker(1).log_end_offset == 3
    )
    assert played.cluster.broker(1).high_watermark == 3 and ids(played.cluster.acked) == [0, 1]


def test_before_strict_min_isr_a_lonely_leader_committed_and_said_that_too_few_have_it() -> None:
    played = play("min-isr-gate", "kip-320")
    row = only(played.rows, "m1: NOT_ENOUGH_REPLICAS_AFTER_APPEND")
    assert row.cluster.broker(
        1
    ).high_watermark == 3 and row.cluster.controller.in_sync_replicas == (1,)


def test_the_preferred_leader_gets_the_lead_back_once_it_is_in_sync() -> None:
    played = play("preferred-leader")
    assert [row.cluster.controller.leader for row in played.rows][-1] == 1
    refused = only(played.rows, "PREFERRED_LEADER_NOT_AVAILABLE")
    assert (
        refused.cluster.controller.leader == 2
        and 1 not in refused.cluster.controller.in_sync_replicas
    )
    assert lost(played.cluster) == []
    # A controlled shutdown moves the lead to the next assigned replica that is in sync.
    assert only(
        played.rows, "decision: 2 shall lead in epoch 1"
    ).cluster.controller.in_sync_replicas == (2, 3)


def test_the_last_replica_standing_is_trusted_before_elr_and_not_since() -> None:
    before = play("last-replica-standing", "kip-320").cluster
    assert lost(before) == [0, 1] and all(broker.log == () for broker in before.brokers)
    since = play("last-replica-standing", "kip-966")
    assert lost(since.cluster) == []
    assert (
        only(since.rows, "2 is taken from the eligible leader replicas").cluster.controller.leader
        == 2
    )
    assert all(ids(broker.log) == [0, 1] for broker in since.cluster.brokers)


@pytest.mark.parametrize("protocol", ["kip-966", "kip-320"])
def test_an_unclean_election_loses_what_was_committed_without_the_new_leader(protocol: str) -> None:
    played = play("unclean-election", protocol)
    elected = only(played.rows, "decision: 2 shall lead")
    before = at(played, elected, 1)
    assert before.controller.leader is None
    assert 2 not in (
        *before.controller.in_sync_replicas,
        *before.controller.eligible_leader_replicas,
    )
    assert (
        elected.cluster.controller.recovering
        and elected.cluster.controller.in_sync_replicas == (2,)
    )
    assert lost(played.cluster) == [1] and 1 in ids(played.cluster.acked)
    # The logs agree in the end: the loss shows in no replica.
    assert played.cluster.brokers[0].log == played.cluster.brokers[1].log


@pytest.mark.parametrize("protocol", ["kip-966", "kip-320", "kip-279"])
def test_a_zombie_acknowledges_acks_1_and_commits_nothing(protocol: str) -> None:
    played = play("zombie-leader", protocol)
    both = [
        row.cluster
        for row in played.rows
        if row.cluster.broker(1).leads and row.cluster.broker(2).leads
    ]
    assert both and all(cluster.broker(1).high_watermark == 1 for cluster in both)
    assert 1 in ids(played.cluster.acked_by_one) and 1 not in ids(played.cluster.broker(1).log)
    assert 2 not in ids(played.cluster.acked)
    assert lost(played.cluster) == []
    refusal = (
        "refused: FENCED_LEADER_EPOCH" if protocol == "kip-966" else "the write to ZooKeeper fails"
    )
    only(played.rows, refusal)

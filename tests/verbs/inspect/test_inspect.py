from __future__ import annotations

import click

from tidemark.core.epoch_ranges import Stretch, filled, parting, stretches
from tidemark.core.events import Observation, Replica
from tidemark.verbs.inspect.drawing import draw_logs
from tidemark.verbs.inspect.replica_table import heading, replica_table


def observation() -> Observation:
    return Observation(
        topic="t",
        partition=0,
        observed_at=1.0,
        leader=2,
        leader_epoch=2,
        replicas=[1, 2, 3],
        in_sync_replicas=[2],
        effective_min_in_sync_replicas=1,
        committed=9,
        leader_log_end_offset_before=9,
        leader_log_end_offset_after=11,
        lineage=[(0, 5), (2, 10)],
        samples=[
            Replica(
                broker=1,
                log_end_offset=8,
                high_watermark=8,
                log_start_offset=0,
                leader_epoch=0,
                lineage=[(0, 8)],
            ),
            Replica(
                broker=2,
                log_end_offset=10,
                high_watermark=9,
                log_start_offset=0,
                last_stable_offset=9,
                leader_epoch=2,
            ),
            Replica(broker=3, error="timed_out"),
        ],
    )


def test_the_table_shows_known_and_unknown_values() -> None:
    rows = [row.split() for row in replica_table(observation())]
    assert rows[1] == ["1", "follower", "no", "8", "8", "1…3", "0", "?", "0"]
    assert rows[2] == ["2", "leader", "yes", "10", "9", "0", "9", "2"]
    assert rows[3] == ["3", "follower", "no", "?", "?", "?", "?", "?", "?", "timed_out"]
    assert (
        heading(observation())
        == "t-0, leader 2, epoch 2, in sync [2] of [1,2,3], min in sync 1, committed to 9"
    )


def test_bars_show_epochs_marks_and_the_divergence() -> None:
    lines = [click.unstyle(line) for line in draw_logs(observation(), width=20)]
    assert lines[0].split() == ["0", "10"]
    assert lines[1] == "1  " + "0" * 16
    assert lines[2] == "   " + " " * 16 + "X"
    assert lines[3] == "2  " + "0" * 10 + "2" * 10
    assert lines[4] == "   " + " " * 18 + "H" + " " + "E"
    assert "1 diverges from leader 2 at offset 5: the same offset, different leader epochs" in lines
    assert "2  epochs end at: 0→5 2→10" in lines


def test_a_full_lineage_does_not_claim_older_epochs() -> None:
    full = [(epoch, 10 * epoch) for epoch in range(2, 10)]
    assert stretches(full, 0, 90)[:2] == [Stretch(None, 0, 20), Stretch(3, 20, 30)]
    assert stretches([(0, 5)], 0, 8) == [Stretch(0, 0, 5), Stretch(None, 5, 8)]
    assert stretches([(0, 5), (1, 9)], 7, 9) == [Stretch(1, 7, 9)]
    assert stretches(None, 0, None) == []


def test_logs_agree_as_far_as_both_reach() -> None:
    assert parting([Stretch(0, 0, 10)], [Stretch(0, 0, 5)]) is None
    assert parting([Stretch(0, 0, 5), Stretch(2, 5, 9)], [Stretch(0, 0, 5), Stretch(1, 5, 6)]) == 5
    assert parting([Stretch(None, 0, 5)], [Stretch(1, 0, 5)]) is None


def test_an_unknown_tail_is_the_leaders_as_far_as_that_reaches() -> None:
    leader = [Stretch(None, 0, 3), Stretch(2, 3, 8), Stretch(4, 8, 10)]
    assert filled([Stretch(2, 0, 5), Stretch(None, 5, 9)], leader) == [
        Stretch(2, 0, 5),
        Stretch(2, 5, 8, True),
        Stretch(4, 8, 9, True),
    ]
    assert filled([Stretch(None, 0, 12)], leader) == [
        Stretch(None, 0, 3),
        Stretch(2, 3, 8, True),
        Stretch(4, 8, 10, True),
        Stretch(None, 10, 12),
    ]
    assert filled([Stretch(1, 0, 12)], leader) == [Stretch(1, 0, 12)]
    assert filled([Stretch(None, 0, 3)], leader) == [Stretch(None, 0, 3)]
    assert filled([], leader) == []


def test_what_is_older_than_the_first_entry_is_unknown_unless_said_otherwise() -> None:
    assert stretches([(3, 5)], 0, 5) == [Stretch(3, 0, 5)]
    assert stretches([(3, 5), (4, 9)], 0, 9, complete=False) == [
        Stretch(None, 0, 5),
        Stretch(4, 5, 9),
    ]
    assert stretches([(n, n + 1) for n in range(8)], 0, 8)[0] == Stretch(None, 0, 1)


def test_a_lineage_that_reaches_past_the_log_end_ends_with_it() -> None:
    assert stretches([(1, 5), (4, 90)], 0, 3) == [Stretch(1, 0, 3)]
    assert stretches([(1, 5), (4, 90)], 0, 0) == []

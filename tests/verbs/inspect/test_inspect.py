from __future__ import annotations

import click

from tidemark.command_line.log_drawing import draw_logs
from tidemark.core.events import Observation, Replica
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


def test_a_reassignment_names_what_is_left_to_copy() -> None:
    moved = observation()
    moved.adding, moved.removing, moved.leader_log_end_offset_before = [1, 3], [2], 10
    shown = heading(moved)
    assert "adding [1,3] removing [2], 2 records to copy to 1, ? to copy to 3" in shown


def test_bars_show_epochs_marks_and_the_divergence() -> None:
    lines = [
        click.unstyle(line) for line in draw_logs(observation(), observation().samples, width=20)
    ]
    assert lines[0].split() == ["0", "10"]
    assert lines[1:5] == [
        "1  " + "0" * 16,
        "   " + " " * 16 + "X",
        "2  " + "0" * 10 + "2" * 10,
        "   " + " " * 18 + "H" + " " + "E",
    ]
    assert "1 diverges from leader 2 at offset 5: the same offset, different leader epochs" in lines
    assert "2  epochs end at: 0→5 2→10" in lines

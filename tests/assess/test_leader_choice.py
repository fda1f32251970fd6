"""What electing each replica loses, and in which order replicas are proposed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.assess.test_safe_to_stop import view
from tidemark.assess.election_commands import election_commands
from tidemark.assess.leader_choice import (
    Choice,
    Gain,
    LeaderChoice,
    OffsetRange,
    Truncation,
    choose_leader,
)
from tidemark.core.records import LastCommittedView, View

LAST = LastCommittedView(
    high_watermark=100,
    log_end_offset=104,
    leader=1,
    leader_epoch=4,
    read_at=50.0,
    log_end_offsets=[(30.0, 60), (40.0, 90), (50.0, 104)],
    lineage=[(4, 104)],
    lineage_complete_from=0,
)
DEAD = {"error": "refused", "log_end_offset": 104, "sampled_at": 50.0, "lineage": [(4, 104)]}


def offline(samples: dict[int, dict[str, Any]], **changes: Any) -> View:
    """Leader 1 died. It had committed up to 100 and written up to 104."""
    fields: dict[str, Any] = {
        "leader": None,
        "leaderless": True,
        "leader_epoch": 4,
        "in_sync_replicas": [],
        "log_end_offset": None,
        "high_watermark": 100,
        "last_committed": LAST,
        "at": 60.0,
    }
    known = {b: {"lineage": [(4, 104)], "lag_ms": None} for b in (1, 2, 3)}
    merged = {b: {**known[b], **({1: DEAD} | samples).get(b, {})} for b in known}
    return view(merged, **{**fields, **changes})


def by_broker(made: LeaderChoice) -> dict[int, Choice]:
    return {choice.broker: choice for choice in made.choices}


def test_a_leader_that_answers_is_kept() -> None:
    made = choose_leader(view({2: {"log_end_offset": 90, "lag_ms": 9e3}}))
    assert made.best is not None
    assert (made.best.broker, made.best.loses_nothing) == (1, True)
    two = by_broker(made)[2]
    assert (two.loses_nothing, two.committed, two.possible) == (False, OffsetRange(90, 100), None)
    assert two.lost_ms == 9e3
    assert two.truncations == [Truncation(1, 90, 100, False), Truncation(3, 90, 100, False)]


def test_what_the_leader_wrote_after_it_followed_is_of_no_known_epoch() -> None:
    """Its own lineage is not read yet; as follower it had epochs up to 2, and led in 3 since."""
    samples = {
        1: {"log_end_offset": 100, "lineage": [(1, 40), (2, 60)], "leader_epoch": 4},
        2: {"log_end_offset": 90, "lineage": [(1, 40), (2, 60), (3, 90)], "leader_epoch": 3},
    }
    two = by_broker(choose_leader(view(samples, leader_epoch=4, lineage=None)))[2]
    assert (two.diverges_at, two.committed) == (None, OffsetRange(90, 100))


def test_the_tail_of_the_leader_is_possibly_lost_by_any_other() -> None:
    made = choose_leader(view({1: {"log_end_offset": 107}}, log_end_offset=107))
    two = by_broker(made)[2]
    assert (two.loses_nothing, two.committed, two.possible) == (True, None, OffsetRange(100, 107))


def test_an_election_out_of_sync_loses_what_was_committed_and_perhaps_more() -> None:
    made = choose_leader(offline({2: {"log_end_offset": 70}, 3: {"log_end_offset": 40}}))
    assert [choice.broker for choice in made.choices] == [2, 3, 1]
    two = made.best
    assert two is not None
    assert (two.broker, two.loses_nothing) == (2, False)
    assert two.doubt == "its log ends at 70, below the high watermark 100"
    assert (two.committed, two.possible) == (OffsetRange(70, 100), OffsetRange(100, None))
    # Record 70 was seen in the log at 40.0, ten seconds before the leader's last sample.
    assert two.lost_ms == 10_000.0
    assert two.truncations == [Truncation(1, 70, 104, True)]
    assert made.gains == [Gain(1, 50.0, OffsetRange(70, 104), OffsetRange(70, 100))]


def test_a_log_up_to_what_was_seen_is_no_proof_out_of_sync() -> None:
    made = choose_leader(offline({2: {"log_end_offset": 104}, 3: {"log_end_offset": 104}}))
    assert made.best is not None
    assert (made.best.loses_nothing, made.best.committed) == (False, None)
    assert made.best.doubt == "it is neither in sync nor eligible"
    assert made.best.possible == OffsetRange(104, None)


@pytest.mark.parametrize(
    ("samples", "members", "best", "lost_by_3"),
    [
        # In sync or eligible. The longer log of 2 is not proven to be complete.
        ({2: {"log_end_offset": 104}, 3: {}}, {"in_sync_replicas": [3]}, (3, True), None),
        (
            {2: {"log_end_offset": 104}, 3: {}},
            {"eligible_leader_replicas": [1, 3]},
            (3, True),
            None,
        ),
        # An in-sync replica that lost its disk is not safe.
        ({3: {"log_end_offset": 0}}, {"in_sync_replicas": [1, 3]}, (2, False), OffsetRange(0, 100)),
    ],
)
def test_an_in_sync_or_eligible_replica_loses_nothing(
    samples: dict[int, dict[str, Any]],
    members: dict[str, Any],
    best: tuple[int, bool],
    lost_by_3: OffsetRange | None,
) -> None:
    made = choose_leader(offline(samples, **members))
    assert made.best is not None
    assert (made.best.broker, made.best.loses_nothing) == best
    assert by_broker(made)[3].committed == lost_by_3


def test_the_newer_epoch_comes_before_the_longer_log() -> None:
    stale = {"log_end_offset": 120, "lineage": [(3, 120)], "leader_epoch": 3}
    short = {"log_end_offset": 80, "lineage": [(3, 60), (4, 80)]}
    last = LastCommittedView(
        **{name: getattr(LAST, name) for name in LAST.__struct_fields__ if name != "lineage"},
        lineage=[(3, 60), (4, 104)],
    )
    made = choose_leader(offline({2: stale, 3: short}, last_committed=last))
    assert [choice.broker for choice in made.choices] == [3, 2, 1]
    two = by_broker(made)[2]
    # The records from 60 on are not those of epoch 4.
    assert (two.diverges_at, two.committed) == (60, OffsetRange(60, 100))
    assert two.possible == OffsetRange(100, None)
    # In epoch 4 it may have truncated since its epochs were read.
    later = choose_leader(offline({2: {**stale, "leader_epoch": 4}, 3: short}, last_committed=last))
    assert by_broker(later)[2].committed is None
    assert by_broker(later)[2].possible == OffsetRange(60, None)
    assert by_broker(made)[3].truncations[1] == Truncation(2, 60, 120, True)


def test_nothing_is_proven_where_nothing_was_seen() -> None:
    unseen = offline(
        {1: {"log_end_offset": None, "error": "refused"}},
        last_committed=None,
        high_watermark=None,
        eligible_leader_replicas=None,
    )
    made = choose_leader(unseen)
    assert made.baseline.committed == 100, "by the high watermarks of the followers"
    assert made.best is not None
    assert (made.best.loses_nothing, made.best.possible) == (False, OffsetRange(100, None))
    assert by_broker(made)[1].log_end_offset is None
    blind = choose_leader(offline({}, missed_passes=2, in_sync_replicas=[2]))
    assert blind.best is None


def test_the_commands_put_the_replica_first_and_restore_the_order() -> None:
    down = offline({2: {"log_end_offset": 70}, 3: {"log_end_offset": 80}}, topic="a'b")
    best = choose_leader(down).best
    assert best is not None
    first, elect, restore = election_commands(down, best, "h:1,g:2")
    assert best.broker == 3
    assert '"replicas": [3, 1, 2]' in first.text
    assert elect.purpose == "elect broker 3, which loses records"
    assert elect.text == (
        "kafka-leader-election.sh --bootstrap-server h:1,g:2 --election-type unclean "
        "--topic 'a'\"'\"'b' --partition 0"
    )
    assert '"replicas": [1, 2, 3]' in restore.text
    serving = view({3: {"log_end_offset": 10, "lag_ms": 9e9}})
    lagging = by_broker(choose_leader(serving))[3]
    assert election_commands(serving, lagging) == [], "Kafka refuses it while a leader serves"
    kept = by_broker(choose_leader(serving))[2]
    assert "--election-type preferred" in election_commands(serving, kept)[1].text


@st.composite
def views(draw: st.DrawFn) -> View:
    samples = {
        broker: {
            "log_end_offset": draw(st.none() | st.integers(0, 130)),
            "error": draw(st.sampled_from([None, None, "refused"])),
            "leader_epoch": draw(st.none() | st.integers(2, 5)),
            "lag_ms": draw(st.none() | st.floats(0, 1e5)),
            "lineage": draw(
                st.none() | st.just([(3, 60), (4, 104)]) | st.just([(3, 90)]) | st.just([(2, 130)])
            ),
        }
        for broker in (1, 2, 3)
    }
    return offline(
        samples,
        in_sync_replicas=draw(st.none() | st.lists(st.sampled_from([1, 2, 3]), unique=True)),
        eligible_leader_replicas=draw(
            st.none() | st.lists(st.sampled_from([1, 2, 3]), unique=True)
        ),
        leader=draw(st.none() | st.sampled_from([1, 2, 3])),
        log_end_offset=draw(st.none() | st.just(104)),
        last_committed=draw(st.none() | st.just(LAST)),
        missed_passes=draw(st.sampled_from([0, 0, 1])),
    )


@settings(max_examples=100, deadline=None)
@given(views())
def test_safe_is_said_of_members_that_answer_and_ranges_do_not_overlap(seen: View) -> None:
    made = choose_leader(seen)
    for choice in made.choices:
        members = {*(seen.in_sync_replicas or []), *(seen.eligible_leader_replicas or [])}
        if choice.loses_nothing:
            assert choice.standing == "leader" or choice.broker in members
            assert choice.committed is None
        if choice.committed is not None:
            assert choice.committed.end is not None
            assert 0 <= choice.committed.start < choice.committed.end
            if choice.possible is not None:
                begins = choice.possible.start
                assert not choice.committed.start < begins < choice.committed.end
        for cut in choice.truncations:
            assert 0 <= cut.start < cut.end
    if made.best is not None and any(c.answers and c.loses_nothing for c in made.choices):
        assert made.best.loses_nothing or made.best.standing == "leader"

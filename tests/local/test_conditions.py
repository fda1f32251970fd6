"""The probe's judgement, sample by sample. Broker 1 leads, broker 2 follows, broker 3 only tells metadata."""

from __future__ import annotations

from typing import Any

from tidemark.local.conditions import Conditions, Edge, Sample


class Story:
    """Feeds samples a fifth of a second apart."""

    def __init__(self) -> None:
        self.conditions = Conditions()
        self.at = 100.0
        self.view: dict[str, Any] = {
            "leader": 1,
            "leader_epoch": 0,
            "in_sync_replicas": (1, 2),
            "replicas": (1, 2),
        }

    def look(self, broker: int, end: int | None = None, **more: Any) -> None:
        self.at += 0.2
        self.conditions.feed(
            Sample(at=self.at, broker=broker, log_end_offset=end, **{**self.view, **more})
        )

    def silent(self, broker: int) -> None:
        self.at += 0.2
        self.conditions.feed(Sample(at=self.at, broker=broker, error="TimeoutError"))

    def found(self) -> list[tuple[str, int | None]]:
        return [(edge.condition, edge.broker) for edge in self.conditions.edges]


def test_a_healthy_partition_shows_nothing() -> None:
    story = Story()
    for end in range(0, 400, 10):
        story.look(1, end, committed=max(0, end - 5))
        story.look(2, end - 3 if end else 0)
        story.look(3)
    assert story.found() == []


def test_a_silent_follower_holds_the_mark_and_lags_before_the_in_sync_set_shrinks() -> None:
    story = Story()
    story.look(1, 10, committed=10)
    story.look(2, 10)
    began = story.at
    for _ in range(20):
        story.silent(2)
        story.look(1, 12, committed=10)
    story.view |= {"in_sync_replicas": (1,)}
    story.look(3)
    assert story.found() == [
        ("FOLLOWER_UNREACHABLE", 2),
        ("FOLLOWER_LAG", 2),
        ("HW_STALLED", None),
        ("ISR_CHANGE", None),
        ("UNDER_REPLICATED", None),
    ]
    lag, stall = (
        story.conditions.first("FOLLOWER_LAG", began),
        story.conditions.first("HW_STALLED", began),
    )
    assert lag is not None
    assert stall is not None
    assert 2.0 <= lag - began <= 2.8
    # The mark last moved just before.
    assert 4.8 <= stall - began <= 5.8


def test_a_slow_follower_lags_by_its_own_log_end() -> None:
    story = Story()
    for step in range(20):
        story.look(1, 10 + 10 * step, committed=10)
        story.look(2, 10)
    assert ("FOLLOWER_LAG", 2) in story.found()
    assert ("FOLLOWER_UNREACHABLE", 2) not in story.found()


def test_a_condition_that_comes_back_is_found_after_the_given_time() -> None:
    story = Story()
    for _ in range(2):
        story.silent(2)
        story.look(2, 0)
    story.conditions.feed(Sample(at=story.at + 1, broker=2, error="TimeoutError"))
    story.look(1, 0)
    for _ in range(2):
        story.silent(2)
        story.look(2, 0)
    edges = [edge for edge in story.conditions.edges if edge.condition == "FOLLOWER_UNREACHABLE"]
    assert len(edges) >= 2
    assert story.conditions.first("FOLLOWER_UNREACHABLE", edges[1].at, 2) == edges[1].at
    assert story.conditions.first("FOLLOWER_UNREACHABLE", edges[1].at, 1) is None


def unclean() -> Story:
    """Broker 2 missed [5, 12), which broker 1 had committed alone; both died, broker 2 was elected."""
    story = Story()
    story.look(1, 5, committed=5)
    story.look(2, 5)
    story.view |= {"in_sync_replicas": (1,)}
    story.look(1, 12, committed=12)
    story.view |= {"leader": -1, "leader_epoch": 1, "in_sync_replicas": ()}
    story.look(3)
    story.view |= {"leader": 2, "leader_epoch": 2, "in_sync_replicas": (2,)}
    return story


def test_an_unclean_election_and_its_loss_are_seen_at_the_first_look_at_the_new_leader() -> None:
    story = unclean()
    story.look(2, 5, committed=5, epoch_ends={0: 5})
    assert story.found()[-3:] == [
        ("OFFLINE", None),
        ("UNCLEAN_ELECTION", 2),
        ("COMMITTED_DATA_LOSS", None),
    ]


def test_a_loss_shows_by_lineage_when_the_new_leader_has_written_past_the_old_mark() -> None:
    story = unclean()
    assert story.conditions.epochs_to_ask(2, 2) == {0}
    story.look(2, 30, committed=30, epoch_ends={0: 5})
    assert ("COMMITTED_DATA_LOSS", None) in story.found()


def test_a_clean_election_loses_nothing() -> None:
    story = Story()
    story.look(1, 12, committed=10)
    story.look(2, 12)
    story.view |= {"leader": 2, "leader_epoch": 1, "in_sync_replicas": (2,)}
    story.look(2, 14, committed=14, epoch_ends={0: 12})
    story.look(1, 14, epoch_ends={0: 12})
    assert not {"COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "LOG_TRUNCATION"} & {
        name for name, _ in story.found()
    }


def test_a_truncation_shows_although_the_log_has_grown_past_its_old_end() -> None:
    story = unclean()
    story.look(2, 30, committed=30, epoch_ends={0: 5})
    story.silent(1)
    assert story.conditions.epochs_to_ask(1, 2) == {0}
    # Back, not truncated yet: still asked for the old epoch.
    story.look(1, 12, epoch_ends={0: 12})
    assert story.conditions.epochs_to_ask(1, 2) == {0}
    story.look(1, 40, epoch_ends={0: 5})
    assert story.conditions.edges[-1] == Edge(story.at, "LOG_TRUNCATION", 1)
    story.look(1, 41)
    assert story.found().count(("LOG_TRUNCATION", 1)) == 1
    assert story.conditions.epochs_to_ask(1, 2) == set()


def test_a_view_of_an_older_epoch_changes_nothing() -> None:
    story = unclean()
    before = list(story.found())
    story.look(3, leader=1, leader_epoch=0, in_sync_replicas=(1, 2))
    assert story.found() == before

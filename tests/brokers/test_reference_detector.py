"""The reference detector, sample by sample. Broker 1 leads, 2 follows, 3 has only metadata."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark_lab.brokers.reference_detector import Onset, ReferenceDetector, Sample


class Feed:
    """Feeds samples a fifth of a second apart."""

    def __init__(self) -> None:
        self.detector = ReferenceDetector()
        self.at = 100.0
        self.metadata: dict[str, Any] = {
            "leader": 1,
            "leader_epoch": 0,
            "in_sync_replicas": (1, 2),
            "replicas": (1, 2),
        }

    def poll(self, broker: int, end: int | None = None, **more: Any) -> None:
        self.at += 0.2
        self.detector.feed(
            Sample(at=self.at, broker=broker, log_end_offset=end, **{**self.metadata, **more})
        )

    def silent(self, broker: int) -> None:
        self.at += 0.2
        self.detector.feed(Sample(at=self.at, broker=broker, error="TimeoutError"))

    def found(self) -> list[tuple[str, int | None]]:
        return [(onset.condition, onset.broker) for onset in self.detector.onsets]


@pytest.fixture
def feed() -> Feed:
    return Feed()


def test_a_healthy_partition_has_no_condition(feed: Feed) -> None:
    for end in range(0, 400, 10):
        feed.poll(1, end, committed=max(0, end - 5))
        feed.poll(2, end - 3 if end else 0)
        feed.poll(3)
    assert feed.found() == []


def test_a_silent_follower_lags_and_stalls_the_high_watermark_before_the_isr_shrinks(
    feed: Feed,
) -> None:
    feed.poll(1, 10, committed=10)
    feed.poll(2, 10)
    began = feed.at
    for _ in range(20):
        feed.silent(2)
        feed.poll(1, 12, committed=10)
    feed.metadata |= {"in_sync_replicas": (1,)}
    feed.poll(3)
    assert feed.found() == [
        ("BROKER_DOWN", 2),
        ("FOLLOWER_LAG", 2),
        ("HW_STALLED", None),
        ("ISR_CHANGE", None),
        ("UNDER_REPLICATED", None),
        ("LEADER_ALONE", None),
    ]
    lag, stall = (
        feed.detector.first("FOLLOWER_LAG", began),
        feed.detector.first("HW_STALLED", began),
    )
    assert lag is not None
    assert stall is not None
    assert 2.0 <= lag - began <= 2.8
    # The high watermark last moved just before.
    assert 4.8 <= stall - began <= 5.8


def test_a_slow_follower_lags_by_its_log_end(feed: Feed) -> None:
    for step in range(20):
        feed.poll(1, 10 + 10 * step, committed=10)
        feed.poll(2, 10)
    assert ("FOLLOWER_LAG", 2) in feed.found()
    assert ("BROKER_DOWN", 2) not in feed.found()


def test_a_later_onset_is_found_after_the_given_time(feed: Feed) -> None:
    for _ in range(2):
        feed.silent(2)
        feed.poll(2, 0)
    feed.detector.feed(Sample(at=feed.at + 1, broker=2, error="TimeoutError"))
    feed.poll(1, 0)
    for _ in range(2):
        feed.silent(2)
        feed.poll(2, 0)
    onsets = [onset for onset in feed.detector.onsets if onset.condition == "BROKER_DOWN"]
    assert len(onsets) >= 2
    assert feed.detector.first("BROKER_DOWN", onsets[1].at, 2) == onsets[1].at
    assert feed.detector.first("BROKER_DOWN", onsets[1].at, 1) is None


@pytest.fixture
def unclean_feed(feed: Feed) -> Feed:
    """Broker 1 commits [5, 12) alone; both die, broker 2 is elected without it."""
    feed.poll(1, 5, committed=5)
    feed.poll(2, 5)
    feed.metadata |= {"in_sync_replicas": (1,)}
    feed.poll(1, 12, committed=12)
    feed.metadata |= {"leader": -1, "leader_epoch": 1, "in_sync_replicas": ()}
    feed.poll(3)
    feed.metadata |= {"leader": 2, "leader_epoch": 2, "in_sync_replicas": (2,)}
    return feed


def test_the_first_poll_of_the_new_leader_shows_the_unclean_election_and_its_loss(
    unclean_feed: Feed,
) -> None:
    unclean_feed.poll(2, 5, committed=5, epoch_ends={0: 5})
    assert unclean_feed.found()[-4:] == [
        ("OFFLINE", None),
        ("UNCLEAN_ELECTION", 2),
        ("LEADER_ALONE", None),
        ("COMMITTED_DATA_LOSS", None),
    ]


def test_epoch_ends_show_a_loss_after_the_new_leader_passes_the_old_high_watermark(
    unclean_feed: Feed,
) -> None:
    assert unclean_feed.detector.epochs_to_request(2, 2) == {0}
    unclean_feed.poll(2, 30, committed=30, epoch_ends={0: 5})
    assert ("COMMITTED_DATA_LOSS", None) in unclean_feed.found()


def test_a_clean_election_loses_nothing(feed: Feed) -> None:
    feed.poll(1, 12, committed=10)
    feed.poll(2, 12)
    feed.metadata |= {"leader": 2, "leader_epoch": 1, "in_sync_replicas": (2,)}
    feed.poll(2, 14, committed=14, epoch_ends={0: 12})
    feed.poll(1, 14, epoch_ends={0: 12})
    assert not {"COMMITTED_DATA_LOSS", "UNCLEAN_ELECTION", "LOG_TRUNCATION"} & {
        name for name, _ in feed.found()
    }


def test_epoch_ends_show_a_truncation_after_the_log_passes_its_old_end(unclean_feed: Feed) -> None:
    unclean_feed.poll(2, 30, committed=30, epoch_ends={0: 5})
    unclean_feed.silent(1)
    assert unclean_feed.detector.epochs_to_request(1, 2) == {0}
    # Back, not truncated yet: the old epoch is still requested.
    unclean_feed.poll(1, 12, epoch_ends={0: 12})
    assert unclean_feed.detector.epochs_to_request(1, 2) == {0}
    unclean_feed.poll(1, 40, epoch_ends={0: 5})
    assert unclean_feed.detector.onsets[-1] == Onset(unclean_feed.at, "LOG_TRUNCATION", 1)
    unclean_feed.poll(1, 41)
    assert unclean_feed.found().count(("LOG_TRUNCATION", 1)) == 1
    assert unclean_feed.detector.epochs_to_request(1, 2) == set()


def test_metadata_of_an_older_epoch_changes_nothing(unclean_feed: Feed) -> None:
    before = list(unclean_feed.found())
    unclean_feed.poll(3, leader=1, leader_epoch=0, in_sync_replicas=(1, 2))
    assert unclean_feed.found() == before

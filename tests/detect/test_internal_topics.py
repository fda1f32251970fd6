"""Groups and transactions at risk: the coordinator's arithmetic, and the texts of alerts."""

from __future__ import annotations

import pytest

from tests.scenarios.scenario import Scenario
from tidemark.detect.internal_topics import AT_RISK, coordinating_partition, sentence


@pytest.mark.parametrize(
    ("name", "hashed"),
    [
        # Known values of java.lang.String.hashCode.
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("Hello, World!", 1498789909),
        # Integer.MIN_VALUE, which Utils.abs turns into 0.
        ("polygenelubricants", 0),
        ("DESIGNING WORKHOUSES", 0),
        # -969099747: its absolute value counts.
        ("Hello World!", 969099747),
        # Surrogates count as two units.
        ("\U0001f600", 0xD83D * 31 + 0xDE00),
        ("\ud83d", 0xD83D),
    ],
)
def test_the_hash_is_that_of_java(name: str, hashed: int) -> None:
    assert coordinating_partition(name, 2**31) == hashed
    assert coordinating_partition(name, 50) == hashed % 50


def test_only_kafkas_own_topics_have_a_sentence() -> None:
    assert sentence("orders", 3) == ""
    assert "all consumer groups that __consumer_offsets-7 coordinates" in sentence(
        "__consumer_offsets", 7
    )
    assert "all transactional ids that __transaction_state-0 coordinates" in sentence(
        "__transaction_state", 0
    )


def test_owners_without_a_name_to_list_are_named_by_what_they_hash() -> None:
    share = sentence("__share_group_state", 7)
    assert "all share groups that __share_group_state-7 coordinates" in share
    assert "with a text group id:topic id:partition that hashes to 7 modulo" in share
    remote = sentence("__remote_log_metadata", 1)
    assert "all partitions with segments in remote storage" in remote
    assert "tidemark inspect" not in share + remote


@pytest.mark.parametrize("topic", AT_RISK)
def test_a_loss_and_a_truncation_there_name_what_is_at_risk(topic: str) -> None:
    scenario = Scenario()
    scenario.play(
        f"partition {topic}-7 replicas=1,2,3 min_isr=2",
        "pass 3 add=10 lineage=0:30",
        "pass down=1:refused,3:refused leader=2 epoch=1 isr=2 leo=2:20 hw=20 lineage=0:20",
        "pass 3 lineage=0:20",
    )
    for name in ("KafkaCommittedDataLoss", "KafkaLogTruncation"):
        assert scenario.newest(name).annotations["description"].endswith(sentence(topic, 7))

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from tidemark.collect.codecs.topic_configuration import TopicConfiguration, decode_configuration
from tidemark.collect.metadata.admin_queries import decode_quorum
from tidemark.collect.metadata.refusals import (
    AUTHORIZATION_ERRORS,
    RefusedError,
    check_authorized,
    denied_topics,
)


def quorum_answer(leader: int, epoch: int, error: int = 0) -> Any:
    state = Answer(replica_id=100, log_end_offset=5, last_caught_up_timestamp=1_000)
    late = Answer(replica_id=1, log_end_offset=-1, last_caught_up_timestamp=400)
    partition = Answer(
        error_code=error,
        leader_id=leader,
        leader_epoch=epoch,
        high_watermark=5,
        current_voters=[state],
        observers=[late],
    )
    return Answer(error_code=0, topics=[Answer(partitions=[partition])])


def test_a_quorum_without_a_leader_has_its_epoch() -> None:
    led, leaderless = decode_quorum(quorum_answer(100, 7)), decode_quorum(quorum_answer(-1, 7))
    assert led is not None and leaderless is not None
    assert (led.leader, led.epoch, leaderless.leader, leaderless.epoch) == (100, 7, None, 7)
    assert led.replicas == {100: (True, 5, 0.0), 1: (False, None, 600.0)}
    assert decode_quorum(quorum_answer(100, 7, error=6)) is None


def test_a_configuration_that_is_not_reported_is_unknown() -> None:
    assert decode_configuration(
        {"min.insync.replicas": "2", "cleanup.policy": "delete"}
    ) == TopicConfiguration(2, compacted=False)
    assert decode_configuration(
        {"min.insync.replicas": "x", "cleanup.policy": "compact,delete"}
    ) == TopicConfiguration(None, compacted=True)
    assert decode_configuration({"min.insync.replicas": None}) == TopicConfiguration(None, None)


def test_a_missing_right_is_no_unsupported_question() -> None:
    for error in (0, 6, 35):
        check_authorized(error)
    for error, name in AUTHORIZATION_ERRORS.items():
        with pytest.raises(RefusedError, match=name):
            check_authorized(error)
    assert denied_topics(set()) is None
    assert denied_topics({"b", "a"}) == "TOPIC_AUTHORIZATION_FAILED (a, b)"

"""The answers that tests encode are those that kafka-python reads."""

from __future__ import annotations

import pytest
from kafka.protocol.consumer import FetchResponse, ListOffsetsResponse

from tests.collect import wire_answers


@pytest.mark.parametrize("version", range(1, 10))
def test_list_offsets(version: int) -> None:
    data = wire_answers.list_offsets([("a", [(0, 0, 7, 3), (2, 6, -1, -1)]), ("b", [])], version)
    topics = ListOffsetsResponse.decode(data, version=version).topics
    epochs = [3, -1] if version >= 4 else [-1, -1]
    assert [t.name for t in topics] == ["a", "b"]
    assert [p.leader_epoch for p in topics[0].partitions] == epochs
    assert [(p.partition_index, p.error_code, p.offset) for p in topics[0].partitions] == [
        (0, 0, 7),
        (2, 6, -1),
    ]


def test_fetch() -> None:
    entries = [(0, 0, 7, 6, 2, 3, 9), (1, 1, -1, -1, -1, -1, -1)]
    (topic,) = FetchResponse.decode(wire_answers.fetch([("a", entries)], 12), version=12).responses
    first, second = topic.partitions
    assert (first.high_watermark, first.last_stable_offset, first.log_start_offset) == (7, 6, 2)
    assert (first.diverging_epoch.epoch, first.diverging_epoch.end_offset) == (3, 9)
    assert (second.partition_index, second.error_code, second.diverging_epoch) == (1, 1, None)

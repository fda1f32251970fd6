"""Events and alerts from Tidemark's topics: the time line is that of the recording."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.verbs.recordings import alerts_of, trace, write
from tests.verbs.run import tidemark
from tidemark.core.identity import group_of
from tidemark.core.records import Alert
from tidemark.kafka.topic_reader import Message
from tidemark.verbs.timeline import source

GROUPS = 16
LINES = trace("unclean")


class Topic:
    """A TopicReader over LINES, all in one partition of GROUPS."""

    narrowed: tuple[set[int], float] | None = None

    def __init__(self) -> None:
        self.end = dict.fromkeys(range(GROUPS), 0)

    def narrow(self, numbers: Collection[int], since: float) -> None:
        Topic.narrowed = (set(numbers), since)

    def read_to_end(self) -> Iterator[Message]:
        for offset, line in enumerate([b"{}", *LINES]):
            yield Message(0, offset, None, line)


def alerts() -> list[Alert]:
    """What the stream publishes: at least once, in no order between partitions."""
    found = alerts_of(LINES)
    return [*reversed(found), *found[:3]]


def test_the_time_line_is_that_of_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "TopicReader", lambda *_: nullcontext(Topic()))
    monkeypatch.setattr(source, "alerts_of_topic", lambda _: iter(alerts()))
    place = ("timeline", "trace", "0", "--cluster", "trace", "--json")
    out = tidemark(*place, "--since", "2001-09-09T00:00:00Z").out
    found = json.loads(out)
    recorded = write(tmp_path / "events.jsonl", LINES)
    expected = json.loads(tidemark(*place, "--from", recorded).out)
    assert found["source"] == "tidemark.replica-state"
    assert found["steps"] == expected["steps"]
    # Only the partition that has the events is read, from the time on.
    assert Topic.narrowed == ({group_of("trace", "trace", 0, GROUPS)}, 999_993_600.0)
    # An hour by default.
    assert "was not observed there" in tidemark("timeline", "trace", "0", code=1).err

"""`tidemark choose-leader` on recordings, and what it takes from an earlier view."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tests.assess.test_leader_choice import DEAD, LAST, offline
from tests.assess.test_safe_to_stop import view
from tests.verbs.recordings import trace, write
from tests.verbs.run import tidemark
from tidemark.core.codec import decode_batch
from tidemark.core.events import Observation
from tidemark.core.records import LastCommittedView, ReplicaView, View
from tidemark.observations.stored_view import home_of, with_earlier_samples

run = partial(tidemark, "choose-leader", "trace", "0", "--from")


def recorded_until(path: Path, is_end: Any) -> str:
    """The recorded unclean election up to the first observation of that kind, and its pass."""
    lines = trace("unclean")
    for number, line in enumerate(lines):
        events = decode_batch(line).events
        if any(isinstance(event, Observation) and is_end(event) for event in events):
            return write(path, lines[: number + 1])
    raise AssertionError("the recording has no such observation")


def test_an_offline_partition_whose_replicas_are_silent(tmp_path: Path) -> None:
    path = recorded_until(tmp_path / "e", lambda o: o.leader is None and not o.in_sync_replicas)
    out = run(path, code=3).out
    texts = (
        "Leader 1 was last seen at 2001-09-09 01:46:44.207: committed up to 12, log end 12. ",
        "7 [5, 12)",
        "broker 1 truncates from 12 to 5",
        "No replica answers: no election can succeed now.",
        "If broker 1 (last sampled 2001-09-09 01:46:44.207) comes back",
    )
    assert [text for text in texts if text not in out] == []
    answer = json.loads(run(path, "--json", code=3).out)
    assert (answer["best"], answer["loses_nothing"], answer["commands"]) == (None, False, [])
    lost = {choice["broker"]: choice["committed"] for choice in answer["choices"]}
    assert lost == {1: None, 2: [5, 12]}


def test_a_leader_that_answers_is_kept_and_the_open_loss_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "e", trace("unclean"))
    out = run(path, code=3).out
    assert "Broker 2 leads without the lost offsets [5, 12)." in out
    assert "LOST ALREADY: Broker 1 came back and cut the lost records of trace-0" in out
    assert "every committed record" not in out and "kafka-" not in out
    assert json.loads(run(path, "--json", code=3).out)["lost_already"] == [[5, 12]]


def test_a_wrong_partition_or_topic(tmp_path: Path) -> None:
    path = write(tmp_path / "e", trace("unclean"))
    err = tidemark("choose-leader", "trace", "7", "--from", path, code=1).err
    assert "topic trace shows no partition 7" in err
    err = tidemark("choose-leader", "nope", "0", "--from", path, code=1).err
    assert "shows no topic nope" in err


def live(**changes: Any) -> View:
    """What a process sees that starts after the death of leader 1."""
    silent = {1: {"error": "refused", "log_end_offset": None, "leader_epoch": None}}
    fields = {"last_committed": None, "high_watermark": None, "eligible_leader_replicas": None}
    made = offline({**silent, 2: {"log_end_offset": 70}}, **{**fields, **changes})
    return msgspec.structs.replace(
        made,
        replicas=[
            ReplicaView(broker=1, error="refused") if each.broker == 1 else each
            for each in made.replicas
        ],
    )


def test_the_last_sample_of_a_silent_leader_comes_from_its_stored_view() -> None:
    stored = offline({1: DEAD})
    made = with_earlier_samples(live(), stored)
    one = made.replicas[0]
    assert (one.log_end_offset, one.error, one.sampled_at) == (104, "refused", 50.0)
    assert made.last_committed == LAST
    assert made.replicas[1].log_end_offset == 70


def test_a_stored_view_of_a_leader_that_still_answered_counts_too() -> None:
    stored = view({1: {"sampled_at": 49.0}}, lineage=[(4, 100)], lineage_complete_from=0)
    made = with_earlier_samples(live(leader_epoch=5), stored)
    assert made.last_committed == LastCommittedView(
        high_watermark=100,
        log_end_offset=100,
        leader=1,
        leader_epoch=4,
        read_at=49.0,
        lineage=[(4, 100)],
        lineage_complete_from=0,
    )
    assert made.replicas[0].error == "refused"


def test_a_stored_view_of_another_topic_or_the_future_does_not_count() -> None:
    seen = live(topic_id="a")
    assert with_earlier_samples(seen, None) is seen
    assert with_earlier_samples(seen, offline({1: DEAD}, topic_id="b")) is seen
    assert with_earlier_samples(seen, offline({1: DEAD}, leader_epoch=9)) is seen


def test_the_home_of_a_key_is_that_of_the_java_client() -> None:
    """By Utils.murmur2 of kafka-clients: UtilsTest.testMurmur2."""
    assert home_of(b"21") == 0x7FFFFFFF & -973932308
    assert home_of(b"foobar") == 0x7FFFFFFF & -790332482

"""`--from-checkpoint` while alerts fire: nothing is lost, and nothing is posted again."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from tests.conftest import ROOT
from tests.stream import upgrade
from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses, reduce_all
from tests.stream.test_stream import check_webhook, error_line, newest, webhook
from tests.stream.topics import Publisher, read_all
from tidemark.kafka.topics import ensure_topics
from tidemark.reduce.rows import RawRecord, Row
from tidemark.settings import Settings
from tidemark_lab.brokers.receiver import WebhookReceiver

__all__ = ["webhook"]
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]
Start = Callable[..., StreamProcess]
BEFORE, AFTER = 4, 7
FIXTURE = ROOT / "tests" / "testdata" / "upgrade" / "0.1.0"
LOAD = SyntheticPasses(partitions=120, groups=BEFORE, offline_every=5, versions=(1, 2))


def send(settings: Settings, passes: Iterable[int], load: SyntheticPasses = LOAD) -> None:
    """Passes as a collector with these settings publishes them."""
    publisher = Publisher(settings)
    for number in passes:
        for group, value in load._replace(groups=settings.topics.partitions).records(number):
            publisher.send(group, value)
    publisher.close()


def with_groups(settings: Settings, groups: int, name: str, folder: Path) -> Settings:
    topics = structs.replace(settings.topics, partitions=groups, event_topic_suffix=f"-{name}")
    stream = structs.replace(settings.stream, checkpoint=str(folder / name))
    return structs.replace(settings, topics=topics, stream=stream)


def end(process: StreamProcess, code: int = 0) -> None:
    assert process.process.wait(540) == code, process.log_tail()


def oracle(passes: int) -> list[RawRecord]:
    """All passes, as if the number of groups had never changed."""
    offsets = dict.fromkeys(range(BEFORE), 0)
    records = []
    for number in range(passes):
        for group, value in LOAD.records(number):
            records.append(RawRecord(group, offsets[group], 0.0, value))
            offsets[group] += 1
    return records


def test_the_number_of_groups_changes_while_alerts_fire(
    settings: Settings, stream: Start, webhook: WebhookReceiver, tmp_path: Path
) -> None:
    old_checkpoint = settings.stream.checkpoint
    send(settings, range(7))
    running = stream(settings)
    running.wait_for(lambda: bool(running.lines("batch")), "a batch", 240)
    new = with_groups(settings, AFTER, "more", tmp_path)

    # Its collectors have the new configuration already; the stream still runs.
    ensure_topics(new.kafka, new.topics)
    refused = stream(new, "--from-checkpoint", old_checkpoint)
    end(refused, 1)
    assert "a stream still runs from the checkpoint" in error_line(refused)
    assert running.terminate()[0] == 0

    # What the old stream has not read, and what came to the new topic before the change.
    send(settings, range(7, 9))
    send(new, range(9, 11))
    end(stream(new, "--from-checkpoint", old_checkpoint, "--once"))
    again = stream(settings, "--once")
    end(again, 2)
    assert f"was taken over by {new.stream.checkpoint}" in error_line(again)

    # And back to fewer, in the middle of what fires next.
    send(new, range(11, 18))
    # With the option again, as a container starts again: it did that before.
    end(stream(new, "--from-checkpoint", old_checkpoint, "--once"))
    fewer = with_groups(settings, 3, "fewer", tmp_path)
    last = stream(fewer, "--from-checkpoint", new.stream.checkpoint)
    last.wait_for(lambda: bool(last.lines("the state was taken over")), "the state", 240)
    send(fewer, range(18, 26))
    rows = reduce_all(records := oracle(26), BEFORE)
    views = newest([(r.key, r.value) for r in rows if r.destination == "partition_views"])

    def shown() -> dict[bytes, object]:
        found = read_all(settings, settings.topics.partition_views, BEFORE)
        return newest([(record.key, record.value) for record in found])

    last.wait_for(lambda: shown() == views, "the views of the last pass", 180)
    assert last.terminate()[0] == 0

    alerts = alerts_of(rows)
    found = read_all(settings, settings.topics.alerts, 1)
    assert {msgspec.json.decode(record.value)["id"]: record.value for record in found} == alerts
    assert len(found) == len(alerts) > 50
    assert not read_all(settings, settings.topics.dead_letters, 1)
    check_webhook(webhook, records)


def alerts_of(rows: list[Row]) -> dict[str, bytes]:
    """By id."""
    return {
        msgspec.json.decode(row.value)["id"]: row.value
        for row in rows
        if row.destination == "alerts" and row.value is not None
    }


def test_the_checkpoint_of_0_1_0_goes_on_with_more_groups(
    settings: Settings, stream: Start, tmp_path: Path
) -> None:
    with tarfile.open(FIXTURE / "checkpoint.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    old = upgrade.settings_at(settings.kafka.bootstrap_servers, tmp_path / "checkpoint")
    ensure_topics(old.kafka, old.topics)
    new = with_groups(old, AFTER, "more", tmp_path)
    ensure_topics(new.kafka, new.topics)
    first, read = max(upgrade.RUNS[-1]) + 1, upgrade.read_records(FIXTURE / "events.jsonl.gz")
    publisher = Publisher(old)
    for group, value in read:
        publisher.send(group, value)
    upgrade.events(old, publisher, range(first, first + 4))
    sent = publisher.close()
    send(new, range(first + 4, first + 9), upgrade.LOAD)
    end(stream(new, "--from-checkpoint", str(tmp_path / "checkpoint"), "--once"))
    for number in range(first + 4, first + 9):
        sent += [RawRecord(g, 10_000 + number, 0.0, v) for g, v in upgrade.LOAD.records(number)]
    expected = alerts_of(reduce_all(sent, upgrade.GROUPS)).keys()
    before = [
        msgspec.json.decode(value)["id"]
        for _, value in upgrade.read_records(FIXTURE / "alerts.jsonl.gz")
    ]
    found = [
        msgspec.json.decode(record.value)["id"] for record in read_all(new, new.topics.alerts, 1)
    ]
    assert sorted(before + found) == sorted(expected)
    assert len(found) > 5
    assert not read_all(new, new.topics.dead_letters, 1)


def test_what_cannot_be_taken_over_is_one_line(
    settings: Settings, stream: Start, tmp_path: Path
) -> None:
    ensure_topics(settings.kafka, settings.topics)
    missing = stream(settings, "--from-checkpoint", str(tmp_path / "nothing"))
    end(missing, 2)
    assert "nothing is no folder" in error_line(missing)
    folder = tmp_path / "old"
    folder.mkdir()
    fixed = {"v": 1, "topic": settings.topics.replica_state, "partitions": 9}
    text = json.dumps(fixed | {"shuffle_partitions": 9, "store_provider": "hdfs"})
    (folder / "tidemark.json").write_text(text)
    same = stream(settings, "--from-checkpoint", str(folder))
    end(same, 2)
    assert 'Set topics.event_topic_suffix, such as "-4"' in error_line(same)

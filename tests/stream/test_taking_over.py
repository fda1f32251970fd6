"""What `--from-checkpoint` refuses, without Spark and Kafka."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from msgspec import UNSET

from tidemark.core.codec import decode_batch
from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Settings, Topics
from tidemark.stream import from_checkpoint
from tidemark.stream.checkpoint import FixedSettings, check_fixed_settings
from tidemark.stream.from_checkpoint import check_folders, wait_until_quiet, with_fixed


def fixed(**fields: Any) -> FixedSettings:
    given = {"topic": "tidemark.replica-state", "partitions": 16, "store_provider": "hdfs"}
    return FixedSettings(**{"shuffle_partitions": 16, **given, **fields})


class Folder:
    """A checkpoint of which only these settings are known, or nothing."""

    def __init__(
        self, name: str, settings: FixedSettings | None = None, used: bool = False
    ) -> None:
        self.checkpoint, self._settings, self._used = name, settings, used
        self.batch = 7

    def fixed_settings(self) -> FixedSettings | None:
        return self._settings

    def is_used(self) -> bool:
        return self._used

    def batches(self) -> tuple[int, int]:
        return self.batch, self.batch


def settings(partitions: int = 32, suffix: str = "-32") -> Settings:
    return Settings(topics=Topics(partitions=partitions, event_topic_suffix=suffix))


def check(source: Folder, target: Folder, wanted: Settings) -> FixedSettings | None:
    return check_folders(wanted, source, target)  # type: ignore[arg-type]


def test_a_new_number_with_a_new_topic_and_a_new_folder() -> None:
    assert check(Folder("/old", fixed()), Folder("/new"), settings()) == fixed()


def test_the_same_topic_with_another_state_store() -> None:
    wanted = settings(partitions=16, suffix="")
    wanted.stream.store_provider = "rocksdb"
    assert check(Folder("/old", fixed()), Folder("/new"), wanted) == fixed()


def test_what_was_taken_over_before_is_no_error() -> None:
    done = fixed(replaced_by="/new")
    assert check(Folder("/old", done), Folder("/new", fixed()), settings()) is None


@pytest.mark.parametrize(
    ("source", "target", "wanted", "said"),
    [
        (Folder("/old"), Folder("/new"), settings(), "/old has no tidemark.json"),
        (Folder("/old", fixed()), Folder("/new", used=True), settings(), "/new is in use"),
        (Folder("/old", fixed()), Folder("/new", fixed()), settings(), "/new is in use"),
        (
            Folder("/old", fixed(replaced_by="/third")),
            Folder("/new"),
            settings(),
            "was taken over by /third already",
        ),
        (
            Folder("/old", fixed()),
            Folder("/new"),
            settings(suffix=""),
            'Set topics.event_topic_suffix, such as "-32"',
        ),
    ],
)
def test_the_refusal_names_the_cure(
    source: Folder, target: Folder, wanted: Settings, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        check(source, target, wanted)


def test_the_old_query_runs_with_what_its_checkpoint_fixed() -> None:
    before = fixed(topic="tidemark.replica-state-8", partitions=8, store_provider="rocksdb")
    old = with_fixed(settings(), before, "/old")
    assert (old.topics.replica_state, old.topics.partitions) == ("tidemark.replica-state-8", 8)
    assert (old.stream.checkpoint, old.stream.store_provider) == ("/old", "rocksdb")
    assert settings().topics.alerts == old.topics.alerts
    with pytest.raises(ConfigError, match=r"topics\.prefix"):
        with_fixed(settings(), fixed(topic="other.replica-state"), "/old")


def test_a_checkpoint_whose_state_was_taken_over_is_not_started_again() -> None:
    with pytest.raises(ConfigError, match="was taken over by /new"):
        check_fixed_settings(fixed(replaced_by="/new"), fixed(), "/old")
    assert fixed().replaced_by is UNSET


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The records that it sends; waiting takes no time."""
    records: list[bytes] = []
    monkeypatch.setattr(
        from_checkpoint,
        "send_to_topic",
        lambda _, make, __: records.extend(value for _, value in make(2)),
    )
    monkeypatch.setattr(from_checkpoint, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(from_checkpoint, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(from_checkpoint, "trigger_ms", lambda _: 0)
    return records


def wait(folder: Folder, stop: threading.Event | None = None) -> None:
    wait_until_quiet(settings(), folder, stop or threading.Event())  # type: ignore[arg-type]


def test_it_goes_on_where_nothing_moves(sent: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_checkpoint, "end_offsets", lambda _: {0: 5, 1: 5})
    wait(Folder("/old"))
    # What it sends changes no state and is no dead letter.
    assert [decode_batch(value).events for value in sent] == [[], []]
    before = fold_group(None, [], Detection(), 0, 2)
    records = [RawRecord(0, n, 0.0, value) for n, value in enumerate(sent)]
    assert fold_group(None, records, Detection(), 0, 2) == before


def test_a_stream_that_still_runs_is_refused(
    sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ends = Folder("/old"), {0: 5}

    def end_offsets(_: Settings) -> dict[int, int]:
        folder.batch += 1
        return ends

    monkeypatch.setattr(from_checkpoint, "end_offsets", end_offsets)
    with pytest.raises(TidemarkError, match="a stream still runs from the checkpoint /old"):
        wait(folder)
    assert sent


def test_a_collector_that_still_writes_is_refused(
    sent: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = iter([{0: 5}, {0: 5}, {0: 6}])
    monkeypatch.setattr(from_checkpoint, "end_offsets", lambda _: next(ends))
    with pytest.raises(TidemarkError, match=r"a collector still writes to tidemark\.replica-state"):
        wait(Folder("/old"))
    assert sent


def test_a_request_to_stop_ends_it(sent: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_checkpoint, "end_offsets", lambda _: {0: 5})
    stop = threading.Event()
    stop.set()
    with pytest.raises(TidemarkError, match=r"stopped\. Nothing was changed"):
        wait(Folder("/old"), stop)
    assert sent


def test_events_that_came_late_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_checkpoint, "end_offsets", lambda _: {0: 9, 1: 5})
    old = with_fixed(settings(), fixed(), "/old")
    from_checkpoint.check_read(old, '{"tidemark.replica-state":{"0":9,"1":5}}')
    with pytest.raises(TidemarkError, match="2 records came to tidemark"):
        from_checkpoint.check_read(old, '{"tidemark.replica-state":{"0":7,"1":5}}')

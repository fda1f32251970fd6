"""State in RocksDB on a local disk: it goes on, and one store takes over the other's state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from tests.stream.conftest import StreamProcess
from tests.stream.test_damaged_checkpoint import Topics, at, ended
from tidemark.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]
Start = Callable[..., StreamProcess]


def with_store(settings: Settings, store: str, checkpoint: Path) -> Settings:
    moved = at(settings, checkpoint)
    return structs.replace(moved, stream=structs.replace(moved.stream, store_provider=store))


def test_the_state_goes_on_from_one_store_to_the_other(
    settings: Settings, stream: Start, tmp_path: Path
) -> None:
    topics = Topics(settings)
    first = with_store(settings, "rocksdb", tmp_path / "first")
    second = with_store(settings, "hdfs", tmp_path / "second")
    third = with_store(settings, "rocksdb", tmp_path / "third")
    for passes, chosen, options in (
        (range(5), first, ()),
        (range(5, 9), first, ()),
        (range(9, 13), second, ("--from-checkpoint", first.stream.checkpoint)),
        (range(13, 17), third, ("--from-checkpoint", second.stream.checkpoint)),
        (range(17, 20), third, ()),
    ):
        topics.send(passes)
        process = stream(chosen, *options, "--once")
        assert ended(process) == 0, process.log_tail()
        topics.check()

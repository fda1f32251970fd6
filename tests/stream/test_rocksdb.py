"""State in RocksDB on a local disk goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stream.conftest import StreamProcess
from tests.stream.test_damaged_checkpoint import Topics, at
from tidemark.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]
Start = Callable[..., StreamProcess]


def test_the_state_goes_on(settings: Settings, stream: Start, tmp_path: Path) -> None:
    topics, chosen = Topics(settings), at(settings, tmp_path / "checkpoint")
    chosen.stream.store_provider = "rocksdb"
    for passes in (range(5), range(5, 9), range(9, 12)):
        topics.send(passes)
        stream(chosen, "--once").ends_with(0)
        topics.check()

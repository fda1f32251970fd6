"""A standby takes over the checkpoint of a stream that is gone, and only then."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.stream.conftest import StreamProcess
from tests.stream.load import Load
from tests.stream.test_stream import Start, check_against_oracle, letters
from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, Stream
from tidemark.stream.start_checks import UNCHANGED_SECONDS, wait_for_turn

TAKEN_OVER_SECONDS = 60.0


def test_it_waits_while_batches_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets, now, numbers = tmp_path / "offsets", [0.0], iter(range(1, 6))
    offsets.mkdir()

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            now[0] += UNCHANGED_SECONDS - 1.0
            number = next(numbers, None)
            if number is not None:
                (offsets / str(number)).touch()
                (offsets / f".{number}.tmp").touch()
            return False

    wait_for_turn(Settings(stream=Stream(checkpoint=str(tmp_path))), Stop(), lambda: now[0])
    assert now[0] == (5 + 2) * (UNCHANGED_SECONDS - 1.0)


def test_it_needs_a_folder_that_both_mount() -> None:
    elsewhere = Settings(stream=Stream(checkpoint="s3a://bucket/there"))
    with pytest.raises(ConfigError, match="Mount it on both"):
        wait_for_turn(elsewhere, threading.Event())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.soak
def test_a_killed_stream_is_replaced_within_a_minute(settings: Settings, stream: Start) -> None:
    load = Load(settings)
    first: StreamProcess = stream(settings)
    first.wait_for(lambda: len(first.lines("batch")) >= 3, "batches")
    second: StreamProcess = stream(settings, "--standby")
    second.wait_for(lambda: bool(second.lines("standby: waits until no stream writes")), "it waits")
    time.sleep(UNCHANGED_SECONDS + 5.0)
    assert not second.lines("standby: takes over")
    first.kill_tree()
    killed = time.monotonic()
    second.wait_for(lambda: bool(second.lines("batch")), "a batch of the standby")
    assert time.monotonic() - killed < TAKEN_OVER_SECONDS
    load.end()
    second.wait_for(lambda: len(letters(settings)) == 4, "everything is folded")
    assert second.terminate()[0] == 0
    check_against_oracle(settings, load.publisher.close())

"""Spark standalone: a master and two workers on this machine, one of them killed in the middle."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.processes import descendants
from tests.stream.conftest import StreamProcess
from tests.stream.load import Load
from tests.stream.standalone import kill_tree, on, standalone
from tests.stream.test_stream import LOAD, check_against_oracle, letters
from tidemark.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]


def test_a_worker_killed_in_the_middle_loses_nothing(settings: Settings, tmp_path: Path) -> None:
    load = Load(settings)
    with standalone(tmp_path, workers=2) as spark:
        stream = StreamProcess(on(settings, spark, tmp_path / "checkpoint"), tmp_path)
        try:
            stream.wait_for(lambda: len(stream.lines("batch")) >= 4, "batches", 400)
            executors = [len(descendants(worker.pid)) for worker in spark.workers]
            assert all(executors), "each worker runs an executor"
            killed_at = time.monotonic()
            kill_tree(spark.workers[0])
            before = len(stream.lines("batch"))
            stream.wait_for(lambda: len(stream.lines("batch")) >= before + 3, "batches", 400)
            print(f"three batches {time.monotonic() - killed_at:.1f} s after the kill")
            load.end()
            stream.wait_for(lambda: len(letters(settings)) == LOAD.groups, "the end", 400)
            assert stream.terminate()[0] == 0
        finally:
            stream.kill_tree()
        check_against_oracle(settings, load.publisher.close())

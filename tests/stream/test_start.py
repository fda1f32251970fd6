"""What a start does beside Java's."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.stream import start


def test_a_missing_package_is_named_before_anything_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "LATER", ("pandas", "not_installed"))
    before = threading.active_count()
    with pytest.raises(ModuleNotFoundError) as caught:
        start.import_packages()
    assert caught.value.name == "not_installed"
    assert threading.active_count() == before


class FakeSpark:
    def __init__(self, master: str) -> None:
        self.sparkContext = SimpleNamespace(master=master)
        self.used_by: list[threading.Thread] = []
        self.used = threading.Event()

    def range(self, _end: int, **_options: int) -> Any:
        self.used_by.append(threading.current_thread())
        self.used.set()
        raise RuntimeError("Spark has stopped")


def test_the_worker_of_a_local_run_starts_beside_the_query_and_may_fail(
    capfd: pytest.CaptureFixture[str],
) -> None:
    spark: Any = FakeSpark("local[2]")
    start.start_worker(spark)
    assert spark.used.wait(10)
    (thread,) = spark.used_by
    thread.join(10)
    assert thread is not threading.main_thread()
    assert capfd.readouterr().err == ""


def test_the_workers_of_a_cluster_start_with_the_first_batch() -> None:
    spark: Any = FakeSpark("spark://host:7077")
    before = threading.active_count()
    start.start_worker(spark)
    assert threading.active_count() == before
    assert not spark.used.is_set()

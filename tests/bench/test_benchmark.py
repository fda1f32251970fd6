"""A benchmark runs in a process of its own, which ends with what it has started."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.benchmark import run_benchmark
from tests.conftest import ROOT
from tests.processes import wait_gone
from tidemark_lab.brokers.wait import wait_until

ROW = '{"name": "%s", "value": %s, "unit": "s", "how": "h"}'
BENCHMARKS = {
    "frozen": f"""
import gc, os
def rows():
    gc.freeze()
    yield {ROW % ("pid", "float(os.getpid())")}
    yield {ROW % ("frozen", "float(gc.get_freeze_count())")} | {{"target": "< 1 s", "met": False}}
""",
    "fails": f"""
def rows():
    yield {ROW % ("first", "1.0")}
    raise ValueError("the benchmark's own error")
""",
    "killed": f"""
import os, signal
def rows():
    yield {ROW % ("first", "1.0")}
    os.kill(os.getpid(), signal.SIGKILL)
""",
    # A child with tidemark's guard, as a broker is.
    "waits": f"""
import os, pathlib, time
from tidemark_lab.brokers.process import ChildProcess
def rows():
    here = pathlib.Path(__file__).parent
    child = ChildProcess("sleep", ["sleep", "600"], here / "log")
    try:
        yield {ROW % ("first", "1.0")}
        (here / "pids.new").write_text(f"{{os.getpid()}} {{child.pid}}")
        (here / "pids.new").rename(here / "pids")
        time.sleep(600)
    finally:
        child.kill()
        (here / "ended").touch()
""",
}
DRIVER = """
import signal
from tests.bench.benchmark import run_benchmark
from tidemark_lab.brokers.signals import exit_on
exit_on(signal.SIGTERM)
run_benchmark("waits")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in BENCHMARKS.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    return tmp_path


@pytest.fixture
def driver(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", DRIVER], cwd=folder)
    yield process
    process.kill()
    process.wait()


def values(module: str) -> tuple[dict[str, float], bool]:
    benchmark, finished = run_benchmark(module)
    assert benchmark["machine"]
    assert benchmark["load"] >= 0.0
    assert len(benchmark["reference_ms"]) == 2
    assert min(benchmark["reference_ms"]) > 0.0
    return {row["name"]: row["value"] for row in benchmark["rows"]}, finished


def test_benchmarks_share_no_process(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = gc.get_freeze_count()
    (first, _), (second, finished) = values("frozen"), values("frozen")
    assert len({first["pid"], second["pid"], float(os.getpid())}) == 3
    assert finished
    assert (first["frozen"] > 0, gc.get_freeze_count()) == (True, before)
    # The rows are printed as they come, with their verdict.
    assert capfd.readouterr().out.count("MISSED") == 2


def test_rows_have_their_kind_and_verdict(folder: Path) -> None:
    benchmark, _ = run_benchmark("frozen")
    assert [(row["kind"], row["target"], row["met"]) for row in benchmark["rows"]] == [
        ("wall", None, None),
        ("wall", "< 1 s", False),
    ]


def test_a_benchmark_that_fails_keeps_what_it_measured(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert values("fails") == ({"first": 1.0}, False)
    assert "the benchmark's own error" in capfd.readouterr().err
    assert values("killed") == ({"first": 1.0}, False)
    assert "ended by SIGKILL" in capfd.readouterr().out
    assert values("absent_module") == ({}, False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_benchmark_ends_with_the_bench_and_what_it_started_with_it(
    folder: Path, driver: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    pids = _pids(folder / "pids")
    driver.send_signal(number)
    assert driver.wait(60.0) != 0
    assert wait_gone(pids, 60.0) == set()
    assert (folder / "ended").exists()


def test_a_benchmark_that_is_killed_leaves_nothing_behind(
    folder: Path, driver: subprocess.Popen[bytes]
) -> None:
    benchmark, child = _pids(folder / "pids")
    os.kill(benchmark, signal.SIGKILL)
    assert driver.wait(60.0) == 0
    assert wait_gone([benchmark, child], 60.0) == set()


def _pids(file: Path) -> list[int]:
    wait_until(file.exists, 60.0, f"{file} exists")
    return [int(pid) for pid in file.read_text().split()]

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import running, wait_gone
from tidemark_lab.brokers.process import ChildProcess
from tidemark_lab.brokers.wait import wait_until

PARENT = """
import os, sys, time
from pathlib import Path
from tidemark_lab.brokers.process import ChildProcess
child = ChildProcess("a", ["sh", "-c", "sleep 600 & echo $! > grandchild; sleep 600"], Path("log"))
paused = ChildProcess("b", ["sleep", "600"], Path("log"))
paused.pause()
while not Path("grandchild").exists() or not Path("grandchild").read_text().strip():
    time.sleep(0.01)
print(child.pid, paused.pid, Path("grandchild").read_text().strip(), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_children_end_with_their_parent(tmp_path: Path, end: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 3
        assert running(pids) == set(pids)
        os.kill(parent.pid, end)
    assert not wait_gone(pids)


def test_stop_lets_a_program_exit_and_kills_its_descendants(tmp_path: Path) -> None:
    child = ChildProcess(
        "graceful",
        ["sh", "-c", "sleep 600 & echo $! > left; trap 'exit 7' TERM; wait"],
        tmp_path / "log",
        directory=tmp_path,
    )
    left = tmp_path / "left"
    wait_until(lambda: left.exists() and left.read_text().strip(), 20.0, "it runs")
    assert child.stop(grace_seconds=10)
    assert child.exit_code() == 7
    assert not wait_gone([int(left.read_text(encoding="utf-8"))])


def test_stop_kills_a_program_that_ignores_sigterm(tmp_path: Path) -> None:
    child = ChildProcess(
        "stubborn",
        ["sh", "-c", "trap '' TERM; echo stubborn; while :; do sleep 0.05; done"],
        tmp_path / "not there yet" / "log",
    )
    wait_until(lambda: "stubborn" in child.log_tail(), 20.0, "it runs")
    assert not child.stop(grace_seconds=0.2)
    assert child.exit_code() == -signal.SIGKILL


def test_a_paused_program_can_be_stopped(tmp_path: Path) -> None:
    child = ChildProcess("paused", ["sleep", "600"], tmp_path / "log")
    child.pause()
    assert child.stop(grace_seconds=10)
    assert child.exit_code() == -signal.SIGTERM


def test_every_thread_stands_when_a_pause_returns(tmp_path: Path) -> None:
    busy = """
import threading

for _ in range(8):
    threading.Thread(target=lambda: [0 for _ in iter(int, 1) if False]).start()
print("busy", flush=True)
"""
    child = ChildProcess("busy", [sys.executable, "-c", busy], tmp_path / "log")
    wait_until(lambda: "busy" in child.log_tail(), 20.0, "it runs")
    for _ in range(5):
        child.pause()
        states = [
            status.read_text().rpartition(")")[2].split()[0]
            for status in Path(f"/proc/{child.pid}/task").glob("*/stat")
        ]
        assert len(states) >= 9
        assert set(states) == {"T"}
        child.resume()
    child.kill()


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        (["sh", "-c", "echo no such disk; exit 3"], 3, "no such disk"),
        (["/no/such/program"], 127, "not found"),
    ],
)
def test_a_program_that_exits_is_reported_with_the_end_of_its_log(
    tmp_path: Path, command: list[str], code: int, output: str
) -> None:
    child = ChildProcess("broker 1", command, tmp_path / "log")
    wait_until(lambda: not child.is_running(), 20.0, "it has ended")
    failure = child.failure()
    assert failure is not None
    assert failure.startswith(f"broker 1 exited with {code}; the end of {tmp_path / 'log'}:\n")
    assert output in failure


def test_a_running_program_has_no_failure(tmp_path: Path) -> None:
    child = ChildProcess("broker 1", ["sleep", "600"], tmp_path / "log")
    assert child.failure() is None
    child.kill()

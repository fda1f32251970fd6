from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidemark.core.errors import TidemarkError
from tidemark.local.layout import free_ports
from tidemark.local.process import Child

PARENT = """
import os, sys, time
from pathlib import Path
from tidemark.local.process import Child
child = Child("a", ["sh", "-c", "sleep 600 & echo $! > grandchild; sleep 600"], Path("log"))
paused = Child("b", ["sleep", "600"], Path("log"))
paused.pause()
while not Path("grandchild").exists() or not Path("grandchild").read_text().strip():
    time.sleep(0.01)
print(child.pid, paused.pid, Path("grandchild").read_text().strip(), flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
            != "Z"
        )
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_outlives_the_parent_however_it_ends(tmp_path: Path, end: signal.Signals) -> None:
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
        assert all(alive(pid) for pid in pids)
        os.kill(parent.pid, end)
    assert gone(pids)


def test_stop_lets_a_program_end_by_itself_and_kills_what_it_left(tmp_path: Path) -> None:
    child = Child(
        "polite",
        ["sh", "-c", "sleep 600 & echo $! > left; trap 'exit 7' TERM; wait"],
        tmp_path / "log",
        directory=tmp_path,
    )
    left = tmp_path / "left"
    while not left.exists() or not left.read_text(encoding="utf-8").strip():
        time.sleep(0.01)
    assert child.stop(grace_seconds=10)
    assert child.returncode() == 7
    assert gone([int(left.read_text(encoding="utf-8"))])


def test_stop_kills_a_program_that_does_not_listen(tmp_path: Path) -> None:
    child = Child(
        "deaf",
        ["sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"],
        tmp_path / "log",
    )
    while "deaf" not in child.log_tail():
        time.sleep(0.01)
    assert not child.stop(grace_seconds=0.2)
    assert child.returncode() == -signal.SIGKILL


def test_a_paused_program_can_be_stopped(tmp_path: Path) -> None:
    child = Child("paused", ["sleep", "600"], tmp_path / "log")
    child.pause()
    assert child.stop(grace_seconds=10)
    assert child.returncode() == -signal.SIGTERM


def test_a_program_that_dies_at_its_start_is_reported_with_its_last_words(tmp_path: Path) -> None:
    child = Child("broker 1", ["sh", "-c", "echo no such disk; exit 3"], tmp_path / "log")
    with pytest.raises(TidemarkError, match=r"(?s)broker 1 ended with 3.*no such disk"):
        child.wait_port(free_ports(1)[0], 30)


def test_a_program_that_does_not_exist_ends_with_127(tmp_path: Path) -> None:
    child = Child("nothing", ["/no/such/program"], tmp_path / "log")
    with pytest.raises(TidemarkError, match="ended with 127"):
        child.wait_port(free_ports(1)[0], 30)

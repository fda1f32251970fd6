"""The demo leaves no process behind, however it is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import need_found
from tests.processes import commands_with
from tidemark.jvm.java import find_java
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.mark.parametrize(
    ("end", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_nothing_is_left_of_an_interrupted_demo(
    tmp_path: Path, end: signal.Signals, code: int
) -> None:
    need_found(find_java)
    workdir = tmp_path / "work"
    with subprocess.Popen(
        [sys.executable, "-m", "tidemark.cli", "demo", "--workdir", str(workdir)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as demo:
        # The demo itself and its four Kafka processes.
        wait_until(lambda: len(commands_with(str(workdir))) >= 5, 60.0, "the demo runs")
        os.kill(demo.pid, end)
        output = demo.communicate(timeout=60)[0]
    assert demo.returncode == code, output
    assert "Traceback" not in output
    wait_until(lambda: not commands_with(str(workdir)), 60.0, "nothing of the demo runs")

"""The demo leaves no process behind, however it is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import missing
from tidemark.core.errors import TidemarkError
from tidemark.jvm.java import find_java

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def processes_of(workdir: Path) -> list[str]:
    """Command lines that name the work folder; a broker's names its properties in it."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(workdir) in command:
            found.append(command)
    return found


def wait_for(workdir: Path, wanted: int, exact: bool = False) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        count = len(processes_of(workdir))
        if count == wanted or (not exact and count > wanted):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("end", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_nothing_is_left_of_an_interrupted_demo(
    tmp_path: Path, end: signal.Signals, code: int
) -> None:
    try:
        find_java()
    except TidemarkError as error:
        missing(str(error))
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
        assert wait_for(workdir, 5)
        os.kill(demo.pid, end)
        output = demo.communicate(timeout=60)[0]
    assert demo.returncode == code, output
    assert "Traceback" not in output
    assert wait_for(workdir, 0, exact=True), processes_of(workdir)

"""Probes and scrapes while crowds of clients read nothing, say nothing or have no password."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import bcrypt
import pytest

from tests.export.crowd import ask

PASSWORD = "correct horse"
SCRAPER = "127.0.0.2"


class Crowd(NamedTuple):
    slow: int
    idle: int
    failing: int
    seconds: float


class Server(NamedTuple):
    """The server in a process of its own, and the process' id."""

    port: int
    pid: int

    def seconds(self, path: str) -> float:
        """How long it takes to answer."""
        began = time.monotonic()
        assert ask(self.port, path, PASSWORD, SCRAPER), path
        return time.monotonic() - began


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    config = tmp_path / "web.yml"
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(10)).decode()
    config.write_text(f"basic_auth_users: {{anna: {hashed}}}\n")
    with running("crowded_site", config) as (line, pid):
        yield Server(int(line), pid)


def peak_megabytes(pid: int) -> float:
    """The most memory since the last `forget_peak`."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


@contextmanager
def running(module: str, *arguments: object) -> Iterator[tuple[str, int]]:
    """The first line that a process prints, and its id. It ends with its input."""
    command = [sys.executable, "-m", f"tests.export.{module}", *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline(), process.pid
        process.communicate(timeout=30)


def test_no_crowd_takes_the_place_of_probes_and_scrapes(served: Server) -> None:
    probes, scrapes, alone, crowded = measure(served, Crowd(100, 200, 80, seconds=4))
    # A busy machine holds one of them now and then.
    assert median(probes) < 1.0, probes
    assert median(scrapes) < 2.0, scrapes
    assert crowded < 2 * alone


@pytest.mark.soak
def test_large_crowds(served: Server) -> None:
    probes, scrapes, alone, crowded = measure(served, Crowd(500, 500, 300, seconds=60))
    assert max(probes) < 1.0, probes
    assert max(scrapes) < 2.0, scrapes
    assert crowded < 2 * alone


def measure(served: Server, numbers: Crowd) -> tuple[list[float], list[float], float, float]:
    """Seconds of probes and of scrapes, and megabytes of the server without and with the crowd."""
    crowd = partial(running, "crowd", served.port, PASSWORD, *numbers[:3])
    with crowd():
        # Not known yet: this one takes a hash.
        scrapes = [served.seconds("/metrics")]
    forget_peak(served.pid)
    served.seconds("/metrics")
    time.sleep(2)
    alone, probes = peak_megabytes(served.pid), list[float]()
    with crowd():
        until = time.monotonic() + numbers.seconds
        while time.monotonic() < until:
            probes.append(served.seconds("/-/healthy"))
            scrapes.append(served.seconds("/metrics"))
        crowded = peak_megabytes(served.pid)
    print(
        f"{len(probes)} probes, at most {max(probes):.2f} s; {len(scrapes)} scrapes, at most "
        f"{max(scrapes):.2f} s; {alone:.0f} MB alone, {crowded:.0f} MB with the crowd"
    )
    return probes, scrapes, alone, crowded

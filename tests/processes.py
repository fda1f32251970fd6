"""Processes of this machine, from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tidemark_lab.brokers.wait import comes_true


def _stats() -> Iterator[tuple[int, list[str]]]:
    """(pid, the fields of its /proc stat after its name: state, parent, …)."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            yield int(stat.parent.name), stat.read_text().rpartition(")")[2].split()


def descendants(pid: int) -> list[int]:
    """The ids of all processes below one."""
    children: dict[int, list[int]] = defaultdict(list)
    for child, (_state, parent, *_) in _stats():
        children[int(parent)].append(child)
    found = [pid]
    for each in found:
        found += children[each]
    return found[1:]


def cpu_seconds(pids: Iterable[int]) -> float:
    """Of processes that run, and of their children that have ended, since their starts."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def whole_cpu_seconds() -> float:
    """Of this process and all below it, as `cpu_seconds`."""
    return cpu_seconds((os.getpid(), *descendants(os.getpid())))


def start_logged(command: Sequence[str], log: Path, **options: Any) -> subprocess.Popen[bytes]:
    """A process that reads nothing, and adds what it prints to a file."""
    with log.open("ab") as out:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **options
        )


def kill(pids: Iterable[int]) -> None:
    """SIGKILL to those that run."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def running(pids: Iterable[int]) -> set[int]:
    """Those that run; a zombie does not."""
    states = {pid: fields[0] for pid, fields in _stats()}
    return {pid for pid in pids if states.get(pid, "Z") != "Z"}


def wait_gone(pids: Iterable[int], seconds: float = 10.0) -> set[int]:
    """Waits until none of them runs; returns those left after that time."""
    watched = list(pids)
    comes_true(lambda: not running(watched), seconds)
    return running(watched)


def commands_with(text: str) -> list[str]:
    """The command lines that contain a text, such as the folder that processes work in."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [command for command in found if text in command]

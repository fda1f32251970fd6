"""What a running pipeline uses: memory by process, state, checkpoint, lag."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import Final

import requests

from tests.processes import descendants
from tidemark_lab.demo.services import Services

# The heap after a full collection, in the form of -Xlog:gc: 210M->84M(512M).
FULL: Final = re.compile(r"Pause Full.* \d+M->(\d+)M\(")
STREAM_SERIES: Final = {
    "tidemark_stream_end_to_end_age_seconds": ("age_seconds", 1.0),
    "tidemark_stream_state_memory_bytes": ("state_kb", 1e-3),
}
NEWEST_PASS: Final = "tidemark_last_pass_timestamp_seconds"


def sample(services: Services, stream: str, checkpoint: Path, gc_log: Path) -> dict[str, float]:
    """Key -> value now. What cannot be read is absent. `stream`: host:port of its metrics."""
    found = {
        **_memory(services),
        **_checkpoint(checkpoint),
        **_lag(services.listen, stream),
    }
    heap = heap_after_collection(gc_log)
    if heap is not None:
        found["heap_mb"] = heap
    return found


def _memory(services: Services) -> dict[str, float]:
    """Without what is mapped from files: the share of a library falls while other processes that
    have nothing to do with the run map it too, and grows again when they end.
    """
    found = {
        f"{verb}_mb": size
        for verb in ("collect", "export")
        if (size := pss_mb(services.children[verb].pid, "Pss_Anon")) is not None
    }
    return found | stream_memory(services.children["stream"].pid, "Pss_Anon")


def stream_memory(driver: int, part: str = "Pss") -> dict[str, float]:
    """As `pss_mb`, of the driver, its JVM, and the Python workers. `driver`: its process id."""
    parts: dict[str, float | None] = {"driver_mb": pss_mb(driver, part)}
    for pid in descendants(driver):
        size = pss_mb(pid, part)
        if size is None:
            continue
        program = _program(pid)
        # Java makes a process for each program that it starts, with its own memory at first.
        if program == "java":
            parts["jvm_mb"] = max(parts.get("jvm_mb") or 0.0, size)
        elif program.startswith("python"):
            parts["workers_mb"] = (parts.get("workers_mb") or 0.0) + size
    return {key: size for key, size in parts.items() if size is not None}


def pss_mb(pid: int, part: str = "Pss") -> float | None:
    """The proportional set size, or a part of it: a page that n processes share counts 1/n."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{part}:"):
                return int(line.split()[1]) / 1000
    return None


def _program(pid: int) -> str:
    """Of a process that was just made, its command may be the name of a thread."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/exe").readlink().name
    return ""


def _checkpoint(folder: Path) -> dict[str, float]:
    size = count = 0
    for path in folder.rglob("*"):
        # Old files are removed meanwhile.
        with contextlib.suppress(OSError):
            if path.is_file():
                size, count = size + path.stat().st_size, count + 1
    return {"checkpoint_mb": size / 1e6, "checkpoint_files": float(count)} if count else {}


def _lag(export: str, stream: str) -> dict[str, float]:
    found = {
        key: value * factor
        for name, (key, factor) in STREAM_SERIES.items()
        if (value := metric(stream, name)) is not None
    }
    newest = metric(export, NEWEST_PASS)
    return found | ({} if newest is None else {"pass_age_seconds": time.time() - newest})


def metric(listen: str, name: str) -> float | None:
    """The highest value of a metric at host:port."""
    try:
        text = requests.get(f"http://{listen}/metrics", timeout=2).text
    except requests.RequestException:
        return None
    values = [
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith((f"{name} ", f"{name}{{"))
    ]
    return max(values, default=None)


def heap_after_collection(gc_log: Path) -> float | None:
    """MB after the newest full collection."""
    with contextlib.suppress(OSError):
        found = FULL.findall(gc_log.read_text(encoding="utf-8", errors="replace"))
        return float(found[-1]) if found else None
    return None

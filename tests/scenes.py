"""One run of the demo's scenes on a real cluster, shared by every test that needs one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The demo's own bar is 6 minutes after the downloads.
TIMEOUT_SECONDS = 600
CLEAN_UP_SECONDS = 60


@dataclass(frozen=True)
class Scenes:
    """What a finished run left: its exit code, what it printed, its report and its records."""

    # Logs of every process, acknowledged.jsonl (the producer's own record), probe.jsonl, tidemark.yaml.
    workdir: Path
    code: int
    output: str
    # demo-report.json: a list of {scene, alert, expected, received, fault_at, detectable_at, received_at, …}.
    report: list[dict[str, Any]]


def run_scenes(folder: Path) -> Scenes:
    """Runs `tidemark demo` in a folder and waits for its end. One that hangs is asked to end, so that it cleans up."""
    workdir = folder / "work"
    with (folder / "demo.log").open("w+", encoding="utf-8") as log:
        demo = subprocess.Popen(
            [sys.executable, "-m", "tidemark.cli", "demo", "--workdir", str(workdir)],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            code = demo.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            demo.send_signal(signal.SIGTERM)
            code = demo.wait(CLEAN_UP_SECONDS)
        finally:
            if demo.poll() is None:
                demo.kill()
        log.seek(0)
        output = log.read()
    written = folder / "demo-report.json"
    report = json.loads(written.read_text(encoding="utf-8")) if written.exists() else []
    return Scenes(workdir=workdir, code=code, output=output, report=report)

"""One run of the demo's scenes on a real cluster, shared by every test that needs one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The demo's own bar is 6 minutes after the downloads.
TIMEOUT_SECONDS = 600


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
    """Runs `tidemark demo` in a folder and waits for its end."""
    workdir = folder / "work"
    run = subprocess.run(
        [sys.executable, "-m", "tidemark.cli", "demo", "--workdir", str(workdir)],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    written = folder / "demo-report.json"
    report = json.loads(written.read_text(encoding="utf-8")) if written.exists() else []
    return Scenes(workdir=workdir, code=run.returncode, output=run.stdout, report=report)

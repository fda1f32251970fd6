"""One run of the demo's scenes on a real cluster, shared by every test that needs one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from tests.delivery.ways import Ways

# The demo's own bar is 6 minutes after the downloads.
TIMEOUT_SECONDS = 600
CLEAN_UP_SECONDS = 60
# After the end of the scenes, until both ways have told of the loss.
TOLD_SECONDS = 30


@dataclass(frozen=True)
class Scenes:
    """What a finished run left: its exit code, what it printed, its report and its records."""

    # Logs of every process, acknowledged.jsonl (the producer's own record), probe.jsonl, tidemark.yaml.
    workdir: Path
    code: int
    output: str
    # demo-report.json: a list of {scene, alert, expected, received, fault_at, detectable_at, received_at, …}.
    report: list[dict[str, Any]]
    # What each way of delivery posted: (Unix seconds, payload). None where Prometheus or Alertmanager is missing.
    by_rules: list[tuple[float, dict[str, Any]]] | None = None
    direct: list[tuple[float, dict[str, Any]]] | None = None


def run_scenes(folder: Path, ways: Ways | None = None) -> Scenes:
    """Runs `tidemark demo` in a folder and waits for its end. One that hangs is asked to end, so that it cleans up."""
    workdir = folder / "work"
    options = ["--alertmanager", ways.direct.url] if ways is not None else []
    with (folder / "demo.log").open("w+", encoding="utf-8") as log:
        demo = subprocess.Popen(
            [sys.executable, "-m", "tidemark.cli", "demo", "--workdir", str(workdir), *options],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            if ways is not None:
                _watch(ways, demo, workdir / "tidemark.yaml")
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
    if ways is None:
        return Scenes(workdir=workdir, code=code, output=output, report=report)
    ways.wait("KafkaCommittedDataLoss", TOLD_SECONDS if code == 0 else 0)
    told = {"by_rules": ways.by_rules.hook.deliveries(), "direct": ways.direct.hook.deliveries()}
    return Scenes(workdir=workdir, code=code, output=output, report=report, **told)


def _watch(ways: Ways, demo: subprocess.Popen[bytes], config: Path) -> None:
    """Points the Prometheus of the rules at the demo's exporter, as soon as its address is known."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while demo.poll() is None and time.monotonic() < deadline:
        # Empty while it is being written.
        document = yaml.safe_load(config.read_text(encoding="utf-8")) if config.exists() else None
        if document:
            ways.watch(document["export"]["listen"])
            return
        time.sleep(0.2)

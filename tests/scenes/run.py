"""One run of the demo's scenes on a real cluster, shared by the tests of its results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.delivery.paths import Deliveries, DeliveryPaths
from tidemark_lab.brokers.wait import wait_until

# The demo's own target is 6 minutes after the downloads.
TIMEOUT_SECONDS = 600
CLEAN_UP_SECONDS = 60
# After the end of the scenes, until both paths have delivered the loss.
DELIVERY_SECONDS = 30


@dataclass(frozen=True)
class Scenes:
    """What a finished run left: its exit code, its output, its report and its records."""

    # Logs of every process, acknowledged.jsonl, probe.jsonl, webhooks.jsonl, tidemark.yaml.
    workdir: Path
    code: int
    output: str
    # demo-report.json: {scene, alert, expected, received, fault_at, detectable_at, …}.
    report: list[dict[str, Any]]
    # The posts of each path of delivery. None without Prometheus or Alertmanager.
    by_rules: Deliveries | None = None
    direct: Deliveries | None = None


def run_scenes(folder: Path, paths: DeliveryPaths | None = None) -> Scenes:
    """Runs `tidemark demo` in a folder until it ends; one that hangs is asked to end."""
    workdir = folder / "work"
    options = ["--alertmanager", paths.direct.url] if paths is not None else []
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
            if paths is not None:
                _watch(paths, demo, workdir / "tidemark.yaml")
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
    if paths is None:
        return Scenes(workdir, code, output, report)
    paths.wait("KafkaCommittedDataLoss", DELIVERY_SECONDS if code == 0 else 0)
    by_rules, direct = (path.hook.deliveries() for path in (paths.by_rules, paths.direct))
    return Scenes(workdir, code, output, report, by_rules, direct)


def _watch(paths: DeliveryPaths, demo: subprocess.Popen[bytes], config: Path) -> None:
    """Points the rules' Prometheus at the demo's exporter as soon as its address is known."""

    def document() -> Any:
        """Empty while it is being written. The tests say why a demo ended before."""
        written = config.exists() and yaml.safe_load(config.read_text(encoding="utf-8"))
        return written or demo.poll() is not None

    found = wait_until(document, TIMEOUT_SECONDS, "the demo has its configuration")
    if found is not True:
        paths.watch(found["export"]["listen"])

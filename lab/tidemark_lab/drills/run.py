"""Runs a drill on brokers of this machine, and has it judged."""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kafka.errors import KafkaError
from msgspec import json as msgspec_json

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark_lab.brokers.cluster import BROKERS
from tidemark_lab.brokers.replica_logs import log_start_offset
from tidemark_lab.drills.drill import Drill, Say
from tidemark_lab.drills.set_up import EVENTS, PROBE, set_up
from tidemark_lab.drills.stage import Stage
from tidemark_lab.faults.fault import FaultRecord
from tidemark_lab.judge.samples import batches_of, read_samples, served_at
from tidemark_lab.judge.truth import Removed, Truth
from tidemark_lab.judge.verdict import Result, Seen, judge

TRUTH: Final = "truth.json"
ALERTS: Final = "alerts.jsonl"
THRESHOLDS: Final = "thresholds.yaml"
# Alerts that the state at the start raises have resolved, and states are known.
WARM_UP_PASSES: Final = 4
_SETTLE_PASSES: Final = 4


def run_drill(drill: Drill, version: str, record: Path | None, say: Say) -> Result:
    """Runs it in a temporary folder, and keeps the recording in `record`. Never raises.

    What cannot be set up, or brokers that do not do what a step waits for, end the drill: its
    verdict is UNKNOWN.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidemark-drill-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if record is not None:
            record.mkdir(parents=True, exist_ok=True)
        kept = record or folder
        try:
            result = _Runner(drill, version, folder, kept, say).run()
        except (TidemarkError, KafkaError, OSError) as error:
            return Result(drill.name, version, time.monotonic() - began, error=str(error))
    return result


class _Runner:
    def __init__(self, drill: Drill, version: str, folder: Path, kept: Path, say: Say) -> None:
        self._drill, self._version, self._folder = drill, version, folder
        self._kept, self._say, self._began = kept, say, time.monotonic()

    def run(self) -> Result:
        error, truth = None, None
        with ExitStack() as stack:
            self._say("start one controller and three brokers")
            stage = set_up(stack, self._drill, self._version, self._folder, self._kept)
            try:
                stage.pass_over(WARM_UP_PASSES)
                for step in self._drill.steps:
                    self._say(step.text)
                    step.act(stage)
                self._say("compare the logs of all brokers with the acknowledged records")
                truth = self._read_truth(stage)
            except (ClusterError, KafkaError, OSError) as problem:
                error = str(problem)
            stage.heal_all()
            stage.pipeline.close()
        seen = self._seen(stage, truth)
        result = self._result(seen, error)
        self._keep(seen, result)
        return result

    def _seen(self, stage: Stage, truth: Truth | None) -> Seen:
        probed = self._folder / PROBE
        lines = probed.read_text(encoding="utf-8").splitlines() if probed.exists() else []
        return Seen(
            stage.pipeline.alerts(),
            stage.marks,
            truth,
            read_samples(batches_of(self._kept / EVENTS)),
            stage.differences,
            stage.first_seen,
            stage.pipeline.notifications(),
            served_at(lines),
            stage.shown,
        )

    def _read_truth(self, stage: Stage) -> Truth:
        truth = stage.truth(self._removed, _SETTLE_PASSES)
        # All that was done counts as one fault: it causes one loss.
        times = sorted(mark.at for mark in stage.marks.values()) or [0.0]
        name, now = self._drill.name, time.time()
        truth.faults = [FaultRecord(name, "", (), (), times[0], now, now, (*times,))]
        return truth

    def _removed(self, stage: Stage) -> Removed:
        """What its steps removed in good order."""
        starts = {
            place: log_start_offset(stage.cluster.log_directory(leader), place) or 0
            for place, leader in stage.all_leaders().items()
            if leader in BROKERS
        }
        key, compacted = self._drill.recreated_by, self._drill.compacted
        begins = 0.0 if key is None else stage.marks[key].healed_at or 0.0
        since = dict.fromkeys(stage.places, begins)
        return Removed(starts, since, stage.places if compacted else ())

    def _result(self, seen: Seen, error: str | None) -> Result:
        truth, claims = seen.truth or Truth(), seen.claims(self._version)
        short = claims.shortfalls
        return Result(
            self._drill.name,
            self._version,
            time.monotonic() - self._began,
            [] if error is not None else judge(self._drill, self._version, seen),
            list(seen.marks.values()),
            truth.acknowledged,
            len(truth.lost),
            claims.proven,
            sum(shortfall.records for shortfall in short) if short else None,
            max(shortfall.milliseconds for shortfall in short) if short else None,
            error,
            claims.unclaimed,
        )

    def _keep(self, seen: Seen, result: Result) -> None:
        """The recording: events as they were published, alerts, and the truth beside them."""
        document = {
            "drill": self._drill.name,
            "kafka_version": self._version,
            "verdict": result.verdict,
            "findings": result.findings,
            "faults": [mark._asdict() for mark in result.marks],
            "truth": None if seen.truth is None else seen.truth.document(),
        }
        (self._kept / TRUTH).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        lines = (msgspec_json.encode(received.alert) + b"\n" for received in seen.alerts)
        (self._kept / ALERTS).write_bytes(b"".join(lines))
        if self._drill.thresholds:
            lines_of = (f"  {key}: {value}\n" for key, value in self._drill.thresholds.items())
            text = "thresholds:\n" + "".join(lines_of)
            (self._kept / THRESHOLDS).write_text(text, encoding="utf-8")

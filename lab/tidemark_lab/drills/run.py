"""Runs a drill on brokers of this machine, and judges it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kafka.errors import KafkaError
from msgspec import json as msgspec_json

from tidemark.core.errors import ClusterError, TidemarkError
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.link import Link
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.probe import Probe
from tidemark_lab.brokers.replica_logs import log_start_offset, read_record_ids, read_replicas
from tidemark_lab.drills.drill import OVERRIDES, Drill
from tidemark_lab.drills.judge import FirstSeen, Result, Seen, judge
from tidemark_lab.drills.pipeline import COLLECTOR, Pipeline
from tidemark_lab.drills.recording import Recording, read_recording, served_at
from tidemark_lab.drills.stage import TOPIC, Stage
from tidemark_lab.faults.disk_faults import SmallDisk
from tidemark_lab.judge.claims import Claims
from tidemark_lab.judge.truth import Removed, Truth, establish
from tidemark_lab.judge.unproven import reasons

Say = Callable[[str], None]

EVENTS, TRUTH, ALERTS, ACKNOWLEDGED = (
    "events.jsonl",
    "truth.json",
    "alerts.jsonl",
    "acknowledged.jsonl",
)
THRESHOLDS: Final = "thresholds.yaml"
# Alerts that the state at the start raises have resolved, and states are known.
_WARM_UP_PASSES: Final = 4
_SETTLE_PASSES: Final = 4
_SETTLE_SECONDS: Final = 30.0
# Linux answers on all of 127.0.0.0/8.
_LINK_HOST: Final = "127.0.0.2"
_SMALL_DISK_BYTES: Final = 64 << 20
# The probe asks with Fetch version 12.
_WITHOUT_PROBE: Final = frozenset({"0.10.2.2", "0.11.0.3", "1.1.1", "2.6.3"})


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
        self._disk: SmallDisk | None = None
        self._probe_file = folder / "probe.jsonl"

    def run(self) -> Result:
        drill, stage, error = self._drill, None, None
        truth: Truth | None = None
        first_seen: FirstSeen = _unknown
        with ExitStack() as stack:
            self._say("start one controller and three brokers")
            stage, probe = self._set_up(stack)
            if probe is not None:
                first_seen = probe.first
            try:
                stage.pass_over(_WARM_UP_PASSES)
                for step in drill.steps:
                    self._say(step.text)
                    step.act(stage)
                self._say("compare the logs of all brokers with the acknowledged records")
                truth = self._read_truth(stage)
            except (ClusterError, KafkaError, OSError) as problem:
                error = str(problem)
            stage.heal_all()
            stage.pipeline.close()
        recording = read_recording(self._kept / EVENTS)
        seen = Seen(
            stage.pipeline.alerts(),
            stage.marks,
            truth,
            recording.sampled,
            stage.differences,
            first_seen,
            stage.pipeline.notifications(),
            self._served(),
            stage.shown,
        )
        result = self._result(seen, recording, error)
        self._keep(seen, result)
        return result

    def _set_up(self, stack: ExitStack) -> tuple[Stage, Probe | None]:
        drill = self._drill
        link, cluster = self._cluster(stack)
        stack.enter_context(cluster)
        cluster.create_topic(TOPIC, drill.topic.assignments, drill.topic.all_configs)
        load = stack.enter_context(
            LoadProducer(
                cluster.bootstrap_servers,
                drill.topic.places,
                self._kept / ACKNOWLEDGED,
                drill.records_per_second,
            )
        )
        probe = None
        if self._version not in _WITHOUT_PROBE:
            addresses = {broker: cluster.address(broker) for broker in BROKERS}
            probe = stack.enter_context(Probe(addresses, TOPIC, 0, self._probe_file))
        pipeline = Pipeline(cluster.bootstrap_servers, self._kept / EVENTS, dict(drill.thresholds))
        stack.callback(pipeline.close)
        pipeline.start()
        pipeline.start_collector(COLLECTOR)
        return Stage(cluster, load, pipeline, drill.topic.places, link, self._disk), probe

    def _cluster(self, stack: ExitStack) -> tuple[Link | None, LocalCluster]:
        """The cluster, not started, and the link of its linked broker."""
        drill, link = self._drill, None
        linked = drill.linked_broker
        cluster = LocalCluster(
            self._folder / "kafka",
            {**OVERRIDES, **drill.overrides},
            {**drill.broker_overrides, **self._small_disk(stack)},
            controllers=drill.controllers,
            version=self._version,
            controller_hosts={} if linked is None else {linked: _LINK_HOST},
        )
        if linked is not None:
            host, port = cluster.controller_address
            link = stack.enter_context(Link((_LINK_HOST, port), (host, port)))
        return link, cluster

    def _small_disk(self, stack: ExitStack) -> dict[int, dict[str, str]]:
        """Mounts it; the log directories of its broker."""
        broker = self._drill.small_disk_broker
        if broker is None:
            return {}
        disk = SmallDisk(self._folder / "disk", _SMALL_DISK_BYTES)
        self._disk = stack.enter_context(disk)
        data = self._folder / "kafka" / f"data-{broker}"
        return {broker: {"log.dirs": f"{data},{disk.folder / 'data'}"}}

    def _read_truth(self, stage: Stage) -> Truth:
        """Ends the load, waits for equal logs and a few passes, and reads every log."""
        stage.load.stop()
        stage.reaches(_is_settled, _SETTLE_SECONDS)
        stage.pass_over(_SETTLE_PASSES)
        leaders = {(TOPIC, number): leader for number, leader in stage.leaders().items()}
        replicas = {
            broker: {
                place: ids
                for place in stage.places
                if (ids := read_record_ids(stage.cluster.log_directory(broker), place)) is not None
            }
            for broker in self._drill.topic.replicas
        }
        starts = {
            place: log_start_offset(stage.cluster.log_directory(leader), place) or 0
            for place, leader in leaders.items()
            if leader in BROKERS
        }
        removed = Removed(starts, self._begins(stage), self._drill.compacted)
        return establish(stage.load.acknowledged(), replicas, leaders, removed)

    def _begins(self, stage: Stage) -> float:
        """When the topic was created again; 0 where it was not."""
        key = self._drill.recreated_by
        return 0.0 if key is None else stage.marks[key].healed_at or 0.0

    def _served(self) -> list[float]:
        if not self._probe_file.exists():
            return []
        return served_at(self._probe_file.read_text(encoding="utf-8").splitlines())

    def _result(self, seen: Seen, recording: Recording, error: str | None) -> Result:
        truth = seen.truth
        checks = [] if error is not None else judge(self._drill, self._version, seen)
        claims, unproven = None, {}
        if truth is not None:
            claims = Claims.of([received.alert for received in seen.alerts], truth, seen.sampled)
            unproven = reasons(
                [*claims.later, *claims.unproven],
                recording.sampled,
                recording.log_starts,
                [mark.at for mark in seen.marks.values()],
                self._version,
            )
        return Result(
            self._drill.name,
            self._version,
            time.monotonic() - self._began,
            checks,
            list(seen.marks.values()),
            truth.acknowledged if truth else 0,
            truth.lost_records if truth else 0,
            claims.proven if claims else 0,
            len(claims.later) if claims and claims.proven else None,
            claims.shortfall_ms if claims else None,
            error,
            unproven,
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


def _is_settled(stage: Stage) -> bool:
    """Whether the logs of every running replica end at one offset."""
    ends: dict[object, set[int]] = {}
    for broker in BROKERS:
        if stage.cluster.is_running(broker):
            folder = stage.cluster.log_directory(broker)
            for place, replica in read_replicas(folder, stage.places).items():
                ends.setdefault(place, set()).add(replica.log_end_offset)
    return all(len(found) == 1 for found in ends.values())


def _unknown(_detector: str, _since: float, _broker: int | None = None) -> None:
    """No probe dates anything."""

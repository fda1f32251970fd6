"""The demo's pipeline for a long time: load, a fault a minute, and samples of what it uses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import yaml

from tests.parts import Parts
from tests.soak.first_posts import first_posts
from tests.soak.sampling import sample
from tests.soak.trend import Point
from tidemark.core.errors import ClusterError
from tidemark.jvm.jars import connector_jars
from tidemark.jvm.java import find_java
from tidemark.settings import load_settings
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.brokers.wait import comes_true, wait_until
from tidemark_lab.demo.expected_alerts import FOLLOWER, LEADER, OWN_TOPICS_LEADER
from tidemark_lab.demo.schedule import LAG_TIME_MS, OWN_TOPICS_LAG_TIME_MS
from tidemark_lab.demo.services import Services
from tidemark_lab.faults.fault import Fault
from tidemark_lab.faults.node_faults import ControlledRestart, Crash, Pause

TOPIC: Final = "soak"
PARTITIONS: Final = 24
RECORDS_PER_SECOND: Final = 200
SAMPLE_SECONDS: Final = 5.0
FAULT_SECONDS: Final = 60.0
# A full collection each time shows what the JVM's heap really holds.
COLLECTION_SECONDS: Final = 60
SEVERITIES: Final = ["critical", "warning"]
WHOLE_SECONDS: Final = 120.0
# A broker that is away or silent for longer than this has an alert.
HOLD_SECONDS: Final = 12.0
RESTART_SECONDS: Final = 2.0


@dataclass
class Record:
    """What a run saw. Times are seconds since its start."""

    series: dict[str, list[Point]] = field(default_factory=dict)
    # (time, what was done)
    faults: list[tuple[float, str]] = field(default_factory=list)

    def add(self, at: float, values: dict[str, float]) -> None:
        for key, value in values.items():
            self.series.setdefault(key, []).append((at, value))


class Soak(Parts):
    """A running pipeline. A context manager: everything runs at entry, nothing at exit."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        super().__init__()
        self._folder, self._say = folder, say
        self._stopped = threading.Event()
        self._broken: Exception | None = None
        self.record = Record()

    def _start(self) -> None:
        enter, java = self._stack.enter_context, find_java()
        overrides = {"replica.lag.time.max.ms": LAG_TIME_MS}
        own = {OWN_TOPICS_LEADER: {"replica.lag.time.max.ms": OWN_TOPICS_LAG_TIME_MS}}
        self._cluster = enter(LocalCluster(self._folder / "kafka", overrides, own, java=java))
        self._hook = enter(WebhookReceiver())
        jars = str(connector_jars(java=java)[0].parent)
        self._services = Services(self._cluster, self._folder, self._hook.url, java, jars)
        self._configure()
        self._services.create_topics()
        assigned = dict.fromkeys(range(PARTITIONS), (LEADER, FOLLOWER))
        self._cluster.create_topic(TOPIC, assigned, {"min.insync.replicas": "1"})
        places = [(TOPIC, number) for number in range(PARTITIONS)]
        acknowledged = self._folder / "acknowledged.jsonl"
        servers = self._cluster.bootstrap_servers
        enter(LoadProducer(servers, places, acknowledged, RECORDS_PER_SECOND))
        self._stack.callback(self._services.stop)
        self._services.start()
        self._services.wait_ready()

    def _configure(self) -> None:
        """Adds the stream's metrics, and a log of collections with a full one each minute."""
        (port,) = free_ports(1)
        self._listen, self._gc_log = f"127.0.0.1:{port}", self._folder / "gc.log"
        config = self._services.config
        document = yaml.safe_load(config.read_text(encoding="utf-8"))
        document["stream"] |= {
            "listen": self._listen,
            "spark": {
                "spark.driver.extraJavaOptions": f"-Xlog:gc:file={self._gc_log}",
                "spark.cleaner.periodicGC.interval": f"{COLLECTION_SECONDS}s",
            },
        }
        document["notify"]["receivers"][0]["severities"] = SEVERITIES
        config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        self._services.settings = load_settings(config)

    def run(self, seconds: float) -> None:
        """Raises TidemarkError when a process ends or the cluster does not heal."""
        self._began = time.monotonic()
        sampler = threading.Thread(target=self._sample, name="samples", daemon=True)
        sampler.start()
        try:
            number = 0
            while (due := FAULT_SECONDS * number) + FAULT_SECONDS <= seconds:
                self._wait(due)
                self._inject(number)
                number += 1
            self._wait(seconds)
        finally:
            self._stopped.set()
            sampler.join()
        if self._broken is not None:
            raise self._broken

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _wait(self, until: float) -> None:
        comes_true(lambda: self._now() >= until, until, check=self._services.check)

    def _sample(self) -> None:
        checkpoint = self._folder / "checkpoint"
        while not self._stopped.wait(SAMPLE_SECONDS):
            try:
                values = sample(self._services, self._listen, checkpoint, self._gc_log)
                self.record.add(self._now(), values)
            except Exception as error:
                self._broken = error
                return

    def _fault(self, number: int) -> Fault:
        """By turns: two that have an alert for each that has none."""
        makers: tuple[Callable[[], Fault], ...] = (
            partial(Crash, self._cluster, FOLLOWER),
            partial(Pause, self._cluster, FOLLOWER),
            partial(ControlledRestart, self._cluster, LEADER, RESTART_SECONDS),
            partial(Crash, self._cluster, LEADER),
        )
        return makers[number % len(makers)]()

    def _inject(self, number: int) -> None:
        fault, at, wall = self._fault(number), self._now(), time.time()
        restarted = isinstance(fault, ControlledRestart)
        fault.inject()
        first: float | None = None
        self._services.check()
        until = self._now() + (RESTART_SECONDS if restarted else HOLD_SECONDS)

        def is_over() -> bool:
            nonlocal first
            first = first or self._first_message(wall)
            return self._now() >= until

        comes_true(is_over, HOLD_SECONDS)
        fault.heal()
        topics = [TOPIC, *self._services.own_topics]
        wait_until(lambda: self._cluster.is_whole(topics), WHOLE_SECONDS, "all replicas in sync")
        self._lead_again()
        first = first or self._first_message(wall)
        self.record.faults.append((at, f"{fault.name}, {fault.detail}"))
        delay = "" if first is None else f"first message after {first - wall:.1f} s, "
        if first is not None and not restarted:
            self.record.add(at, {"latency_seconds": first - wall})
        self._say(f"{at / 60:5.1f} min: {fault.name}, {fault.detail}; {delay}{self._summary()}")

    def _lead_again(self) -> None:
        try:
            self._cluster.elect_preferred_leaders({TOPIC: list(range(PARTITIONS))})
        except ClusterError as error:
            self._say(f"leaders stay where they are: {error}")

    def _first_message(self, since: float) -> float | None:
        return min(first_posts(self._hook.alerts(), since).values(), default=None)

    def _summary(self) -> str:
        keys = ("driver_mb", "jvm_mb", "workers_mb", "collect_mb", "export_mb", "age_seconds")
        newest = {key: self.record.series[key][-1][1] for key in keys if key in self.record.series}
        return ", ".join(f"{key} {value:.1f}" for key, value in newest.items())

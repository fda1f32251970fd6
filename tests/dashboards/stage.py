"""The real exporter over scripted topics, and a real Prometheus with our rules that scrapes it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import requests
import yaml

from tests.conftest import ROOT, need
from tests.dashboards.story import (
    CLUSTER,
    FROZEN,
    OFFLINE,
    SCENES,
    UNCLEAN,
    UNDER_MIN,
    alerts_of,
    views_of,
)
from tests.notify.rig import MemoryStore
from tidemark.collect.metrics import CollectMetrics
from tidemark.core.records import encode_record
from tidemark.kafka.topic_reader import Message
from tidemark.settings import Alertmanager, Cluster, Receiver, Settings
from tidemark.stream.listener import StreamMetrics
from tidemark_exporters import process
from tidemark_exporters.notify.delivery import make_delivery
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.process import ChildProcess
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.brokers.wait import wait_until

SCENE_SECONDS = 6.0
TICK_SECONDS = 0.5
PATIENCE_SECONDS = 40.0
# The interval of scrapes and evaluations.
SCRAPE_SECONDS = 1
# The answers of the receiver that are not OK, by scene.
ANSWERS = {UNDER_MIN: HTTPStatus.SERVICE_UNAVAILABLE, OFFLINE: HTTPStatus.BAD_REQUEST}


class Topic:
    """One partition of one topic, in memory."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def write(self, key: str, value: bytes | None) -> None:
        self.messages.append(Message(0, len(self.messages), key.encode(), value))


@dataclass
class Stage:
    """The topics to write to, and the address of Prometheus."""

    topics: dict[str, Topic] = field(default_factory=lambda: defaultdict(Topic))
    prometheus: str = ""
    exporter: str = ""
    # scene -> (begin, end) in Unix seconds
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)

    def ask(self, path: str, **parameters: Any) -> Any:
        """The `data` of an answer of Prometheus' API."""
        answer = requests.get(
            f"{self.prometheus}/api/v1/{path}", params=parameters, timeout=10
        ).json()
        assert answer["status"] == "success", (answer, parameters)
        return answer["data"]

    def reader(self, _connection: Any, topic: str) -> Any:
        """In the place of TopicReader."""
        return Reader(topic, self.topics[topic])


class Reader:
    """The members of TopicReader that the exporter uses."""

    is_interrupted = False
    topic_id: str | None = None

    def look(self) -> None:
        pass

    def __init__(self, name: str, topic: Topic) -> None:
        self.topic, self._topic, self.position = name, topic, 0
        self.end, self.beginning = {0: len(topic.messages)}, {0: 0}

    def start(self, positions: dict[int, int] | None = None) -> None:
        self.position = (positions or {}).get(0, 0)

    def poll(self, timeout_ms: int) -> list[Message]:
        found = self._topic.messages[self.position :]
        self.position += len(found)
        if not found:
            time.sleep(timeout_ms / 1000)
        return found

    def read_to_end(self) -> list[Message]:
        return self.poll(0)

    def caught_up(self) -> bool:
        return self.position >= self.end[0]

    def end_now(self) -> dict[int, int]:
        return {0: len(self._topic.messages)}

    def close(self) -> None:
        pass


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """Plays the scenes, and yields while Prometheus still runs."""
    stage = Stage()
    export, prometheus, collect, stream = free_ports(4)
    with (
        WebhookReceiver() as receiver,
        exporting(stage, export, receiver.url),
        scraping(stage, folder, prometheus, [export, collect, stream]),
    ):
        others = _Others(collect, stream)
        # The first scrapes come some seconds after the start.
        _wait(lambda: len(stage.ask("query", query="up == 1")["result"]) == 3)
        for scene in SCENES:
            receiver.answer = ANSWERS.get(scene, HTTPStatus.OK)
            _play(stage, scene, others)
        yield stage
        others.close()


@contextmanager
def exporting(
    stage: Stage,
    port: int,
    webhook: str,
    alertmanager: str | None = None,
    stale_seconds: float = 30.0,
) -> Iterator[None]:
    settings = Settings(clusters=[Cluster(name=CLUSTER)])
    settings.export.stale_seconds = stale_seconds
    settings.export.listen = f"127.0.0.1:{port}"
    settings.notify.receivers = [Receiver(name="hook", url=webhook)]
    if alertmanager is not None:
        settings.notify.alertmanagers = [Alertmanager(name="manager", urls=[alertmanager])]
    settings.notify.gather_seconds = 0.2
    stores: dict[str, MemoryStore] = defaultdict(MemoryStore)
    delivery = partial(
        make_delivery, make_store=lambda _settings, _ends, name: cast(Any, stores[name])
    )
    stage.exporter = f"http://127.0.0.1:{port}"
    with (
        mock.patch.object(process, "TopicReader", stage.reader),
        mock.patch.object(process, "make_delivery", delivery),
        mock.patch.object(process, "ENDS_SECONDS", 0.5),
        mock.patch.object(process, "REFRESH_SECONDS", 0.2),
    ):
        exporter = process.Exporter(settings)
        exporter.start()
        try:
            yield
            assert (exporter._failure, exporter.delivery.failure) == (None, None)
        finally:
            exporter.stop()


@contextmanager
def scraping(stage: Stage, folder: Path, port: int, targets: list[int]) -> Iterator[None]:
    document = {
        "global": {
            "scrape_interval": f"{SCRAPE_SECONDS}s",
            "evaluation_interval": f"{SCRAPE_SECONDS}s",
        },
        "rule_files": [
            str(path) for path in sorted((ROOT / "dashboards" / "prometheus").glob("*.yaml"))
        ],
        "scrape_configs": [
            {
                "job_name": "tidemark",
                "static_configs": [{"targets": [f"127.0.0.1:{target}" for target in targets]}],
            }
        ],
    }
    with _prometheus(stage, folder, port, document, folder / "data"):
        yield


@contextmanager
def asking(folder: Path, data: Path) -> Iterator[Stage]:
    """A Prometheus over the data of another one; it scrapes nothing. Its files are in `folder`."""
    stage, (port,) = Stage(), free_ports(1)
    with _prometheus(stage, folder, port, {}, data):
        yield stage


@contextmanager
def _prometheus(
    stage: Stage, folder: Path, port: int, document: dict[str, Any], data: Path
) -> Iterator[None]:
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    flags = [
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    child = ChildProcess("Prometheus", [need("prometheus"), *flags], folder / "prometheus.log")
    stage.prometheus = f"http://127.0.0.1:{port}"
    try:
        _wait(lambda: requests.get(f"{stage.prometheus}/-/ready", timeout=1).ok)
        yield
    finally:
        child.stop(5.0)


def _wait(done: Any, seconds: float = 20.0) -> None:
    def is_ready() -> bool:
        try:
            return bool(done())
        except requests.RequestException:
            return False

    wait_until(is_ready, seconds, "it is ready")


class _Others:
    """The real metrics of a collector and of a stream, with made-up values."""

    def __init__(self, collect: int, stream: int) -> None:
        self._collect, self._stream, self._published = CollectMetrics(), StreamMetrics(), 0
        self._servers = [
            self._collect.registry.serve(f"127.0.0.1:{collect}", "collect.listen"),
            self._stream.registry.serve(f"127.0.0.1:{stream}", "stream.listen"),
        ]
        self.tick()

    def tick(self) -> None:
        self._published += 16
        outcomes = {1: "ok", 2: "ok", 3: "ok"}
        fast = SimpleNamespace(partitions=4, take_answers=lambda: {1: 10})
        passes = SimpleNamespace(observed=4, thinned=0, missed=0, outcomes=outcomes, fast=fast)
        publisher = SimpleNamespace(published=self._published, dropped=0, spool_bytes=lambda: 4096)
        self._collect.passed(CLUSTER, 0.02, cast(Any, passes), cast(Any, publisher))
        stream = self._stream.registry
        stream.counter("tidemark_stream_input_records_total").inc(16)
        self._stream.batch_seconds.observe(0.4)
        stream.gauge("tidemark_stream_end_to_end_age_seconds").set(0.8)
        stream.gauge("tidemark_stream_offsets_behind_average").set(3)
        stream.gauge("tidemark_stream_state_memory_bytes").set(5_000_000)
        stream.gauge("tidemark_stream_last_batch_timestamp_seconds").set_to_current_time()

    def close(self) -> None:
        for server in self._servers:
            server.close()


def _arrived(stage: Stage, began: float) -> bool:
    """Whether Prometheus has scraped the scene for some seconds."""
    newest = f'tidemark_last_pass_timestamp_seconds{{kafka_cluster="{CLUSTER}"}}'
    late = stage.ask("query", query=f"{newest} > {began + SCENE_SECONDS - 2}")
    return bool(late["result"])


def _play(stage: Stage, scene: str, others: _Others) -> None:
    views, alerts, events, letters = (
        stage.topics[f"tidemark.{name}"]
        for name in ("partition-views", "alerts", "replica-state", "dead-letters")
    )
    began = time.time()
    for each in alerts_of(scene, began):
        alerts.write(each.fingerprint, encode_record(each))
    if scene == FROZEN:
        views.write("nonsense", b"no view at all")
    if scene == UNCLEAN:
        letters.write("", b"{}")
        letters.write("", b"{}")
    while time.time() < began + SCENE_SECONDS or not _arrived(stage, began):
        assert time.time() < began + PATIENCE_SECONDS, f"{scene}: Prometheus does not see the scene"
        for key, view in views_of(scene, began, time.time()).items():
            views.write(key, encode_record(view))
        for _ in range(16):
            events.write("", b"")
        others.tick()
        time.sleep(TICK_SECONDS)
    stage.spans[scene] = (began, time.time())

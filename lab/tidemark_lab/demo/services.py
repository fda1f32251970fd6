"""Tidemark's processes as an operator starts them: one configuration file, one process a verb."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import requests
import yaml
from prometheus_client.parser import text_string_to_metric_families

import tidemark
from tidemark.jvm.java import JavaHome
from tidemark.kafka.topics import topic_specifications
from tidemark.settings import load_settings
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.process import ChildProcess, check_running
from tidemark_lab.brokers.wait import wait_until
from tidemark_lab.demo.expected_alerts import OWN_TOPICS_LEADER

CLUSTER_NAME: Final = "demo"
# Of a slow machine; a process that ends is noticed at once. On two busy cores Spark's query started
# after 90 s.
READY_SECONDS: Final = 300.0
# The stream's first batches are slow. The scenes begin when passes are judged this soon for this
# long, at the latest after the warm-up.
FRESH_SECONDS: Final = 3.0
STEADY_SECONDS: Final = 4.0
WARM_UP_SECONDS: Final = 25.0
# In the order of their start; stopped in reverse.
VERBS: Final = ("collect", "stream", "export")


def configuration(
    cluster: LocalCluster,
    workdir: Path,
    webhook: str,
    listen: str,
    jars: str | None,
    alertmanager: str | None = None,
) -> dict[str, Any]:
    """The configuration of all verbs: addresses, and topics that fit three brokers.

    Detection keeps its defaults.
    """
    alertmanagers = [{"name": "alertmanager", "urls": [alertmanager]}] if alertmanager else []
    return {
        "kafka": {"bootstrap_servers": cluster.bootstrap_servers},
        "clusters": [
            {"name": CLUSTER_NAME, "bootstrap_servers": cluster.bootstrap_servers},
        ],
        "topics": {"replication_factor": 3, "min_in_sync_replicas": 1},
        "stream": {"checkpoint": str(workdir / "checkpoint"), **({"jars": jars} if jars else {})},
        "export": {"listen": listen},
        "notify": {
            "receivers": [{"name": "demo", "url": webhook}],
            "alertmanagers": alertmanagers,
            "external_url": f"http://{listen}",
        },
    }


class Services:
    """collect, stream, export, and Prometheus if installed: child processes, logs in `workdir`."""

    def __init__(
        self,
        cluster: LocalCluster,
        workdir: Path,
        webhook: str,
        java: JavaHome,
        jars: str | None = None,
        alertmanager: str | None = None,
    ) -> None:
        """Alerts go to `webhook` and, if given, to the Alertmanager at this URL."""
        export_port, self._prometheus_port = free_ports(2)
        self.listen = f"127.0.0.1:{export_port}"
        self.config = workdir / "tidemark.yaml"
        document = configuration(cluster, workdir, webhook, self.listen, jars, alertmanager)
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        self.settings = load_settings(self.config)
        self._cluster, self._workdir, self._alertmanager = cluster, workdir, alertmanager
        self._environment = java.environment()
        self.children: dict[str, ChildProcess] = {}
        # Topic -> partitions.
        self.own_topics: dict[str, list[int]] = {}

    def create_topics(self) -> None:
        """Creates Tidemark's topics, led by the broker that no scene pauses or kills.

        They share the watched cluster because the demo has no other. In production, separate them.
        """
        replicas = (OWN_TOPICS_LEADER, *(b for b in BROKERS if b != OWN_TOPICS_LEADER))
        for name, (partitions, configs) in topic_specifications(self.settings.topics).items():
            self._cluster.create_topic(name, dict.fromkeys(range(partitions), replicas), configs)
            self.own_topics[name] = list(range(partitions))

    def start(self, with_prometheus: bool = True) -> None:
        for verb in VERBS:
            self.children[verb] = ChildProcess(
                f"tidemark {verb}",
                [sys.executable, "-m", "tidemark.cli", verb, "--config", self.config.absolute()],
                self._workdir / f"{verb}.log",
                self._environment,
                self._workdir,
            )
        program = shutil.which("prometheus") if with_prometheus else None
        if program is not None:
            # Without the replication rules: the exporter delivers these alerts itself.
            self.children["prometheus"] = start_prometheus(
                program,
                self._workdir,
                f"127.0.0.1:{self._prometheus_port}",
                prometheus_configuration(
                    self.listen, rule_files("tidemark-health"), self._alertmanager
                ),
            )

    def check(self) -> None:
        """Raises ClusterError with the end of its log when a process has ended."""
        check_running(self.children.values())

    def wait_ready(self) -> None:
        """Returns when the exporter has had fresh passes for a while: the whole pipeline runs.

        On a machine too busy for that it returns after the warm-up; the table shows the delays.
        """
        first: float | None = None
        fresh_since: float | None = None

        def runs() -> bool:
            nonlocal first, fresh_since
            now, newest = time.monotonic(), self._newest_pass()
            if newest is None:
                return False
            first = first or now
            fresh_since = (fresh_since or now) if time.time() - newest < FRESH_SECONDS else None
            steady = fresh_since is not None and now - fresh_since >= STEADY_SECONDS
            return steady or now - first > WARM_UP_SECONDS

        def tails() -> str:
            found = (f"--- {c.log}\n{c.log_tail(8)}" for c in self.children.values())
            return "\n".join(["the ends of the logs:", *found])

        wait_until(runs, READY_SECONDS, "the pipeline runs", seen=tails, check=self.check)

    def _newest_pass(self) -> float | None:
        """Unix time of the exporter's newest judged pass; None while it is not ready."""
        try:
            ready = requests.get(f"http://{self.listen}/-/ready", timeout=2)
            metrics = requests.get(f"http://{self.listen}/metrics", timeout=2).text
        except requests.RequestException:
            return None
        return newest_pass(metrics) if ready.status_code == requests.codes.ok else None

    def addresses(self) -> Mapping[str, str]:
        """The URL of each thing to open in a browser."""
        urls = {"exporter": f"http://{self.listen}/", "metrics": f"http://{self.listen}/metrics"}
        prometheus = {"Prometheus": f"http://127.0.0.1:{self._prometheus_port}/"}
        return urls | (prometheus if "prometheus" in self.children else {})

    def stop(self) -> None:
        for child in reversed(self.children.values()):
            child.stop(10.0)


def newest_pass(exposition: str) -> float | None:
    """Unix time of the newest judged pass in the exporter's metrics."""
    times = (
        sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
        if sample.name == "tidemark_last_pass_timestamp_seconds"
    )
    return max(times, default=None)


def start_prometheus(
    program: str, folder: Path, listen: str, document: Mapping[str, Any]
) -> ChildProcess:
    """Starts Prometheus with its configuration, data and log in `folder`."""
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(dict(document)), encoding="utf-8")
    command = [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={listen}",
    ]
    return ChildProcess("Prometheus", command, folder / "prometheus.log")


def prometheus_configuration(
    listen: str, rules: Sequence[Path], alertmanager: str | None = None
) -> dict[str, Any]:
    """Scrapes the exporter at `listen` (host:port) and notifies the Alertmanager at this URL."""
    document: dict[str, Any] = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [{"job_name": "tidemark", "static_configs": [{"targets": [listen]}]}],
    }
    if alertmanager is not None:
        url = urlsplit(alertmanager)
        target = {
            "scheme": url.scheme,
            "path_prefix": url.path or "/",
            "static_configs": [{"targets": [url.netloc]}],
        }
        document["alerting"] = {"alertmanagers": [target]}
    return document


def rule_files(name: str = "*") -> list[Path]:
    """The rules of this checkout; none where tidemark is installed without one."""
    folder = Path(tidemark.__file__).parents[2] / "dashboards" / "prometheus"
    return sorted(folder.glob(f"{name}.yaml"))

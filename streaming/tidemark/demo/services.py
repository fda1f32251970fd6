"""The processes of the product, as an operator would start them: one configuration file, one process a verb."""

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

import tidemark
from tidemark.core.errors import TidemarkError
from tidemark.demo.expectations import WITNESS
from tidemark.jvm.java import JavaHome
from tidemark.kafka.topics import topic_specifications
from tidemark.local.cluster import BROKERS, LocalCluster
from tidemark.local.layout import free_ports
from tidemark.local.process import Child
from tidemark.settings import Settings, load_settings

CLUSTER_NAME: Final = "demo"
WATCHED: Final = "demo.orders"
READY_SECONDS: Final = 120.0
# Passes are judged this soon once the stream's first, slow batches are over; after a while the scenes begin all the same.
FRESH_SECONDS: Final = 3.0
STEADY_SECONDS: Final = 4.0
WARM_UP_SECONDS: Final = 25.0
# In the order in which they are started; ended the other way round.
VERBS: Final = ("collect", "stream", "export")


def configuration(
    cluster: LocalCluster,
    workdir: Path,
    webhook: str,
    listen: str,
    jars: str | None,
    alertmanager: str | None = None,
) -> dict[str, Any]:
    """The document that all verbs read: addresses, and replication as small as three brokers allow; detection as shipped."""
    alertmanagers = [{"name": "alertmanager", "urls": [alertmanager]}] if alertmanager else []
    return {
        "kafka": {"bootstrap_servers": cluster.bootstrap_servers},
        # Its own topics lie on the watched cluster here: events about the topic of events would feed themselves.
        "clusters": [
            {
                "name": CLUSTER_NAME,
                "bootstrap_servers": cluster.bootstrap_servers,
                "topics_deny": [r"tidemark\..*"],
            }
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


def create_own_topics(cluster: LocalCluster, settings: Settings) -> dict[str, list[int]]:
    """Tidemark's topics as specified, led by the broker that no scene pauses or kills: topic -> partitions.

    They live on the cluster that they tell of only because the demo has no other; a production set-up separates them.
    """
    order = (WITNESS, *(broker for broker in BROKERS if broker != WITNESS))
    specifications = topic_specifications(settings.topics)
    for name, (partitions, configs) in specifications.items():
        cluster.create_topic(name, dict.fromkeys(range(partitions), order), configs)
    return {name: list(range(partitions)) for name, (partitions, _) in specifications.items()}


class Services:
    """collect, stream, export, and Prometheus where it is installed: child processes with their logs in `workdir`."""

    def __init__(
        self,
        cluster: LocalCluster,
        workdir: Path,
        webhook: str,
        java: JavaHome,
        jars: str | None = None,
        alertmanager: str | None = None,
    ) -> None:
        """`webhook` and, if given, `alertmanager`: the addresses that alerts are delivered to."""
        export_port, self._prometheus_port = free_ports(2)
        self.listen = f"127.0.0.1:{export_port}"
        self.config = workdir / "tidemark.yaml"
        document = configuration(cluster, workdir, webhook, self.listen, jars, alertmanager)
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        self.settings = load_settings(self.config)
        self._workdir, self._environment, self._alertmanager = (
            workdir,
            java.environment(),
            alertmanager,
        )
        self.children: dict[str, Child] = {}

    def start(self) -> None:
        for verb in VERBS:
            self.children[verb] = Child(
                f"tidemark {verb}",
                [sys.executable, "-m", "tidemark.cli", verb, "--config", self.config.absolute()],
                self._workdir / f"{verb}.log",
                self._environment,
                self._workdir,
            )
        prometheus = shutil.which("prometheus")
        if prometheus is not None:
            self._start_prometheus(prometheus)

    def _start_prometheus(self, program: str) -> None:
        config = self._workdir / "prometheus.yml"
        # The rules on replication stay out: the exporter delivers these alerts itself.
        document = prometheus_configuration(
            self.listen, rule_files("tidemark-health"), self._alertmanager
        )
        config.write_text(yaml.safe_dump(document), encoding="utf-8")
        flags = [f"--config.file={config}", f"--storage.tsdb.path={self._workdir / 'prometheus'}"]
        listen = f"--web.listen-address=127.0.0.1:{self._prometheus_port}"
        self.children["prometheus"] = Child(
            "Prometheus", [program, *flags, listen], self._workdir / "prometheus.log"
        )

    def check(self) -> None:
        """Raises TidemarkError with the end of its log when a process of the product is gone."""
        for child in self.children.values():
            if not child.running():
                raise TidemarkError(
                    f"{child.name} ended with {child.returncode()}; the end of {child.log}:\n{child.log_tail()}"
                )

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Returns when the exporter knows of judged passes and they have come fresh for a while: the whole chain runs.

        On a machine too busy for that it returns when the warm-up is over; the table will tell.
        """
        deadline = time.monotonic() + seconds
        first = fresh_since = None
        while True:
            self.check()
            now, newest = time.monotonic(), self._newest_pass()
            if newest is not None:
                first = first if first is not None else now
                fresh_since = (fresh_since or now) if time.time() - newest < FRESH_SECONDS else None
                if now - first > WARM_UP_SECONDS or (
                    fresh_since is not None and now - fresh_since >= STEADY_SECONDS
                ):
                    return
            elif now > deadline:
                tails = "\n".join(
                    f"--- {child.log}\n{child.log_tail(8)}" for child in self.children.values()
                )
                raise TidemarkError(
                    f"the pipeline was not ready after {seconds:.0f} s; the ends of the logs:\n{tails}"
                )
            time.sleep(0.2)

    def _newest_pass(self) -> float | None:
        """Unix time of the newest judged pass that the exporter knows of; null while it is not ready."""
        try:
            if (
                requests.get(f"http://{self.listen}/-/ready", timeout=2).status_code
                != requests.codes.ok
            ):
                return None
            return newest_pass(requests.get(f"http://{self.listen}/metrics", timeout=2).text)
        except requests.RequestException:
            return None

    def addresses(self) -> Mapping[str, str]:
        found = {"exporter": f"http://{self.listen}/", "metrics": f"http://{self.listen}/metrics"}
        if "prometheus" in self.children:
            found["Prometheus"] = f"http://127.0.0.1:{self._prometheus_port}/"
        return found

    def stop(self) -> None:
        for child in reversed(self.children.values()):
            child.stop(10.0)


def newest_pass(exposition: str) -> float | None:
    """Unix time of the newest judged pass in the exporter's metrics."""
    lines = [
        line
        for line in exposition.splitlines()
        if line.startswith("tidemark_last_pass_timestamp_seconds{")
    ]
    return max((float(line.rsplit(" ", 1)[1]) for line in lines), default=None)


def prometheus_configuration(
    listen: str, rules: Sequence[Path], alertmanager: str | None = None
) -> dict[str, Any]:
    """Scrapes the exporter at `listen` (host:port) and notifies the Alertmanager at this URL, if there is one."""
    document: dict[str, Any] = {
        "global": {"scrape_interval": "2s", "evaluation_interval": "2s"},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [{"job_name": "tidemark", "static_configs": [{"targets": [listen]}]}],
    }
    if alertmanager is not None:
        url = urlsplit(alertmanager)
        told = {
            "scheme": url.scheme,
            "path_prefix": url.path or "/",
            "static_configs": [{"targets": [url.netloc]}],
        }
        document["alerting"] = {"alertmanagers": [told]}
    return document


def rule_files(name: str = "*") -> list[Path]:
    """The rules of the checkout this runs from; none where tidemark is installed without one."""
    return sorted(
        (Path(tidemark.__file__).parents[2] / "dashboards" / "prometheus").glob(f"{name}.yaml")
    )

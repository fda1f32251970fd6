"""What most clusters are watched with: jmx_exporter, Prometheus, Alertmanager, a webhook.

The expressions and `for` are those of Strimzi's example rules. Its rule for a failed scrape waits
3 minutes; here it waits as long as the others. Alertmanager's own default for `group_wait` is 30 s.
Both make this stack faster than it usually is.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.conftest import ROOT
from tests.delivery.services import RealAlertmanager, ask_prometheus, free_port
from tests.parts import Parts
from tidemark_lab.brokers.process import check_running
from tidemark_lab.brokers.receiver import ReceivedAlert, WebhookReceiver
from tidemark_lab.brokers.wait import wait_until
from tidemark_lab.demo.services import start_prometheus

JMX_RULES: Final = ROOT / "tests" / "bench" / "usual_stack.yaml"
PROGRAMS: Final = ("prometheus", "prometheus-alertmanager")
SCRAPE: Final = "5s"
FOR: Final = "10s"
GROUP_WAIT: Final = "10s"
UNDER_REPLICATED: Final = "UnderReplicatedPartitions"
EXPRESSIONS: Final = {
    UNDER_REPLICATED: "kafka_server_replicamanager_underreplicatedpartitions > 0",
    "UnderMinIsrPartitionCount": "kafka_server_replicamanager_underminisrpartitioncount > 0",
    "OfflinePartitions": "sum(kafka_controller_kafkacontroller_offlinepartitionscount) > 0",
    "AbnormalControllerState": "sum(kafka_controller_kafkacontroller_activecontrollercount) != 1",
    "ScrapeProblem": "up == 0",
}
TEXT: Final = (
    f"jmx_exporter as an agent of each node, Prometheus with a scrape and an evaluation each "
    f"{SCRAPE}, Strimzi's rules with `for: {FOR}` (also for a failed scrape, where Strimzi waits "
    f"3 minutes), Alertmanager with `group_wait: {GROUP_WAIT}` (its default is 30 s)"
)
READY_SECONDS: Final = 60.0


def rules_document() -> dict[str, Any]:
    rules = [
        {"alert": name, "expr": expression, "for": FOR, "labels": {"severity": "warning"}}
        for name, expression in EXPRESSIONS.items()
    ]
    return {"groups": [{"name": "kafka", "rules": rules}]}


def alertmanager_document(webhook: str) -> dict[str, Any]:
    return {
        "route": {"receiver": "hook", "group_by": ["alertname"], "group_wait": GROUP_WAIT},
        "receivers": [{"name": "hook", "webhook_configs": [{"url": webhook}]}],
    }


def prometheus_document(
    targets: Mapping[int, str], rules: Path, alertmanager: str
) -> dict[str, Any]:
    """`targets`: node -> host:port of its agent."""
    static = [
        {"targets": [target], "labels": {"node": str(node)}} for node, target in targets.items()
    ]
    return {
        "global": {
            "scrape_interval": SCRAPE,
            "scrape_timeout": SCRAPE,
            "evaluation_interval": SCRAPE,
        },
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "kafka", "static_configs": static}],
        "alerting": {
            "alertmanagers": [
                {"static_configs": [{"targets": [alertmanager.removeprefix("http://")]}]}
            ]
        },
    }


class UsualStack(Parts):
    """Prometheus, Alertmanager and a webhook, without a memory of earlier faults.

    A context manager: ready at entry, when every agent was scraped twice and nothing is pending.
    """

    def __init__(self, folder: Path, targets: Mapping[int, str]) -> None:
        folder.mkdir(parents=True)
        super().__init__()
        self._folder, self._targets = folder, targets

    def firing(self) -> list[ReceivedAlert]:
        return [alert for alert in self._hook.alerts() if alert.status == "firing"]

    def _start(self) -> None:
        self._hook = self._stack.enter_context(WebhookReceiver())
        document = alertmanager_document(self._hook.url)
        manager = RealAlertmanager(self._folder, self._hook.url, document)
        self._stack.enter_context(manager)
        rules = self._folder / "rules.yaml"
        rules.write_text(yaml.safe_dump(rules_document()), encoding="utf-8")
        self._url = f"http://127.0.0.1:{free_port()}"
        program = shutil.which("prometheus")
        assert program is not None
        prometheus = start_prometheus(
            program,
            self._folder,
            self._url.removeprefix("http://"),
            prometheus_document(self._targets, rules, manager.url),
        )
        self._stack.callback(prometheus.stop, 5.0)
        wait_until(
            self._is_ready,
            READY_SECONDS,
            "Prometheus scrapes twice",
            check=lambda: check_running([prometheus]),
        )

    def _is_ready(self) -> bool:
        found = ask_prometheus(self._url, "query", query="count_over_time(up[1m]) >= 2 and up == 1")
        alerts = ask_prometheus(self._url, "alerts").get("alerts")
        return len(found.get("result", [])) == len(self._targets) and alerts == []


def missing_programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name) is None]

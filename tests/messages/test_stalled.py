"""Passes stop: the exporter and Prometheus notify one Alertmanager, and it sends one message.

Its configuration is that of deploy/, the rules are those of dashboards/ with minutes as seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from dashboards.alerting import RuleFile
from dashboards.health_rules import FILE, FLOW, STALE_SECONDS
from tests.conftest import need
from tests.dashboards.stage import Stage, exporting
from tests.dashboards.story import CLUSTER
from tests.delivery.services import (
    RealAlertmanager,
    ask_prometheus,
    deployed_configuration,
    free_port,
    tick_for,
    wait_for,
)
from tests.export.make import cluster_view
from tidemark.core.records import encode_record
from tidemark_exporters.notify import derived_alerts
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.demo.services import prometheus_configuration, start_prometheus

STALLED, COLLECTOR = "TidemarkStreamStalled", "TidemarkCollectorStalled"
STALE, WINDOW, FRESH = 3.0, "8s", 8.0
# Several evaluations, and intervals of a group.
AFTER_SECONDS = 5.0


def quick_rules() -> str:
    """The rules on stalled passes, with about three seconds for a minute."""
    rules = RuleFile(
        FILE.name, FILE.header, [rule for rule in FILE.rules if rule.alert in {STALLED, COLLECTOR}]
    )
    return (
        rules.prometheus()
        .replace(f"[{FLOW}]", f"[{WINDOW}]")
        .replace(f"for: {FLOW}", f"for: {WINDOW}")
        .replace(str(STALE_SECONDS), "4")
    )


class Scene:
    """An exporter and the Prometheus that scrapes it, both of which notify one Alertmanager."""

    def __init__(
        self, stage: Stage, prometheus: str, manager: RealAlertmanager, hook: WebhookReceiver
    ) -> None:
        self._stage, self._prometheus, self._manager, self._hook = stage, prometheus, manager, hook
        self.collects = self.judges = True

    def tick(self) -> None:
        now = time.time()
        if self.collects:
            self._stage.topics["tidemark.replica-state"].write("", b"")
        if self.collects and self.judges:
            self._stage.topics["tidemark.partition-views"].write(
                CLUSTER, encode_record(cluster_view(CLUSTER, at=now))
            )

    def until(self, done: Callable[[], bool], what: str) -> None:
        wait_for(done, 40, what, self.tick)

    def firing_rules(self) -> set[str]:
        """The alerts that fire in Prometheus."""
        alerts = ask_prometheus(self._prometheus, "alerts").get("alerts", [])
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

    def has_scraped_events(self) -> bool:
        query = f"increase(tidemark_event_records_total[{WINDOW}])>0"
        return bool(ask_prometheus(self._prometheus, "query", query=query).get("result"))

    def at_alertmanager(self) -> set[tuple[str, bool]]:
        """Open alerts there by name, and whether a scrape brought them."""
        return {
            (each["labels"]["alertname"], "job" in each["labels"])
            for each in self._manager.active()
        }

    def messages(self) -> list[tuple[str, str]]:
        return [
            (alert["labels"]["alertname"], alert["status"])
            for _, post in self._hook.deliveries()
            for alert in post["alerts"]
        ]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    stage, port, listen = Stage(), free_port(), f"127.0.0.1:{free_port()}"
    rules = tmp_path / "rules.yaml"
    rules.write_text(quick_rules(), encoding="utf-8")
    with WebhookReceiver() as hook, WebhookReceiver() as direct:
        document = deployed_configuration(hook.url)
        document["route"] |= {"group_wait": "1s", "group_interval": "1s"}
        with (
            RealAlertmanager(tmp_path, hook.url, document) as manager,
            mock.patch.object(derived_alerts, "FRESH_SECONDS", FRESH),
        ):
            configuration = prometheus_configuration(f"127.0.0.1:{port}", [rules], manager.url)
            configuration["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
            scene = Scene(stage, f"http://{listen}", manager, hook)
            scene.tick()
            with exporting(stage, port, direct.url, manager.url, stale_seconds=STALE):
                prometheus = start_prometheus(need("prometheus"), tmp_path, listen, configuration)
                try:
                    yield scene
                finally:
                    prometheus.stop(5.0)


def test_passes_that_stop_are_one_message_and_their_return_one(scene: Scene) -> None:
    scene.until(scene.has_scraped_events, "Prometheus has scraped new events")
    expected: list[tuple[str, str]] = []
    for collects, by_rule in ((False, COLLECTOR), (True, STALLED)):
        scene.collects, scene.judges = collects, False
        scene.until(
            lambda rule=by_rule: rule in scene.firing_rules(),  # type: ignore[misc]
            f"{by_rule} fires in Prometheus",
        )
        scene.until(
            lambda rule=by_rule: (rule, True) in scene.at_alertmanager(),  # type: ignore[misc]
            f"{by_rule} is open in Alertmanager",
        )
        tick_for(AFTER_SECONDS, scene.tick)
        expected.append((STALLED, "firing"))
        assert scene.messages() == expected
        assert scene.at_alertmanager() == {(STALLED, False), (by_rule, True)}
        scene.collects = scene.judges = True
        expected.append((STALLED, "resolved"))
        scene.until(
            lambda: (STALLED, "resolved") in scene.messages()[len(expected) - 1 :],
            "the resolution is delivered",
        )
        assert not scene.firing_rules()
        tick_for(AFTER_SECONDS, scene.tick)
        assert scene.messages() == expected

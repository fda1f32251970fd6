"""The rule files: what promtool says of them, and that no alert is without test, name or runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards.alerting import RUNBOOKS
from tests.conftest import ROOT, need
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark_exporters.signals import SIGNALS

PROMETHEUS = ROOT / "dashboards" / "prometheus"
FILES = sorted(PROMETHEUS.glob("*.yaml"))
TESTS = sorted(Path(__file__).parent.glob("*_test.yaml"))


def rules(path: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def promtool(*arguments: str) -> None:
    run = subprocess.run([need("promtool"), *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr


def every_rule() -> list[Any]:
    return [pytest.param(rule, id=rule["alert"]) for path in FILES for rule in rules(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_promtool_accepts_the_rules(path: Path) -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", str(path))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_rules_fire_and_end_as_written(path: Path) -> None:
    promtool("test", "rules", str(path))


def test_there_are_the_two_files() -> None:
    assert [path.name for path in FILES] == ["kafka-replication.yaml", "tidemark-health.yaml"]


@pytest.mark.parametrize("rule", every_rule())
def test_each_alert_is_seen_firing_by_a_test(rule: dict[str, Any]) -> None:
    firing = re.compile(rf'ALERTS{{alertname="{rule["alert"]}", alertstate="firing"')
    assert any(firing.search(path.read_text(encoding="utf-8")) for path in TESTS)


@pytest.mark.parametrize("rule", every_rule())
def test_each_alert_has_what_it_needs(rule: dict[str, Any]) -> None:
    annotations = rule["annotations"]
    assert annotations.keys() == {"summary", "description", "runbook_url"}
    assert annotations["runbook_url"] == f"{RUNBOOKS}#{rule['alert'].lower()}"
    assert "{{" not in annotations["summary"]
    # The severity is the rule's own, or comes with the series of the stream's open alerts.
    assert rule.get("labels", {}).get("severity") in {"critical", "warning", "info"} or "tidemark_alert_open{" in rule["expr"]
    assert set(re.findall(r"tidemark_\w+", rule["expr"])) <= SIGNALS.keys()
    if "committed data loss" in " ".join(annotations.values()).lower():
        assert rule["alert"] == "KafkaCommittedDataLoss"


def test_events_fire_at_once_and_states_wait() -> None:
    for rule in rules(PROMETHEUS / "kafka-replication.yaml"):
        event = rule["alert"] in {alert_name(d.id) for d in DETECTORS.values() if d.kind == "event"}
        assert ("for" in rule, "keep_firing_for" in rule, "increase(" in rule["expr"]) == (not event, event, event), rule["alert"]


def test_every_detector_has_its_rule_under_its_own_name() -> None:
    names = {rule["alert"] for rule in rules(PROMETHEUS / "kafka-replication.yaml")}
    assert names == {alert_name(detector) for detector in DETECTORS}


def test_only_the_replication_file_repeats_direct_delivery_and_says_so() -> None:
    assert "Only where direct delivery is off" in (PROMETHEUS / "kafka-replication.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert all(rule["alert"].startswith("Tidemark") for rule in rules(PROMETHEUS / "tidemark-health.yaml"))

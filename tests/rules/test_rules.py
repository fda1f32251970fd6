"""The rule files: promtool accepts them, and each alert has a test, a name and a runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import replication_rules
from tests.conftest import ROOT, need
from tests.rules.promtool import Case, event_cases, rolling_restart, state_cases, watched
from tidemark.core.identity import alert_name
from tidemark.core.links import RUNBOOK_URL
from tidemark.core.metric_table import METRICS
from tidemark.detect import DETECTORS
from tidemark_exporters.export.counters import EventCounters

PROMETHEUS = ROOT / "dashboards" / "prometheus"
FILES = sorted(PROMETHEUS.glob("*.yaml"))
TESTS = sorted(Path(__file__).parent.glob("*_test.yaml"))
REPLICATION = replication_rules.FILE.rules


def rules(path: Path) -> list[dict[str, Any]]:
    return [
        rule
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]


def promtool(*arguments: str) -> None:
    run = subprocess.run(
        [need("promtool"), *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, (run.stdout + run.stderr)[-6000:]


def check_cases(folder: Path, *cases: Case) -> None:
    document = {
        "rule_files": [str(PROMETHEUS / "kafka-replication.yaml")],
        "evaluation_interval": "15s",
        "tests": [case.document() for case in cases],
    }
    path = folder / "cases.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    promtool("test", "rules", str(path))


def every_rule() -> list[Any]:
    return [
        pytest.param(rule, id=f"{rule['alert']}-{number}")
        for path in FILES
        for number, rule in enumerate(rules(path))
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        *(("check", "rules", "--lint=all", "--lint-fatal", str(path)) for path in FILES),
        # The rules fire and end as the tests say.
        *(("test", "rules", str(path)) for path in TESTS),
    ],
    ids=[path.stem for path in (*FILES, *TESTS)],
)
def test_promtool_accepts_the_rules_and_their_tests(arguments: tuple[str, ...]) -> None:
    promtool(*arguments)


def test_each_replication_alert_fires_waits_and_ends(tmp_path: Path) -> None:
    """For every rule, also of future detectors: promtool.py has the cases."""
    cases = [*event_cases(REPLICATION), *state_cases(REPLICATION)]
    seen = {
        alert["alertname"]
        for case in cases
        for alerts in case.expected.values()
        for alert in alerts
    }
    assert seen == {rule.alert for rule in REPLICATION}
    check_cases(tmp_path, *cases, rolling_restart(REPLICATION))


def test_a_case_can_fail(tmp_path: Path) -> None:
    """An unexpected alert is a failure of promtool."""
    (case, *_) = event_cases(REPLICATION[:1])
    case.expected = {"330s": []}
    with pytest.raises(AssertionError, match="KafkaCommittedDataLoss"):
        check_cases(tmp_path, case)


def test_counters_of_rules_start_at_0() -> None:
    counters = EventCounters()
    counters.add_cluster("c")
    for rule in REPLICATION:
        metric, labels = watched(rule)
        if METRICS[metric].kind == "counter":
            assert (
                counters.values[metric][
                    ",".join(f'{label}="{labels[label]}"' for label in METRICS[metric].labels)
                ]
                == 0
            )


def test_there_are_two_files() -> None:
    assert [path.name for path in FILES] == ["kafka-replication.yaml", "tidemark-health.yaml"]


def test_each_health_alert_fires_in_a_test() -> None:
    text = (Path(__file__).parent / "health_test.yaml").read_text(encoding="utf-8")
    for rule in rules(PROMETHEUS / "tidemark-health.yaml"):
        assert re.search(rf'ALERTS{{alertname="{rule["alert"]}", alertstate="firing"', text), rule[
            "alert"
        ]


@pytest.mark.parametrize("rule", every_rule())
def test_each_alert_has_annotations_and_a_severity(rule: dict[str, Any]) -> None:
    annotations = rule["annotations"]
    assert annotations.keys() == {"summary", "description", "runbook_url"}
    assert annotations["runbook_url"] == f"{RUNBOOK_URL}#{rule['alert'].lower()}"
    assert "{{" not in annotations["summary"]
    # The severity is that of the rule, or a label of the series.
    own = rule.get("labels", {}).get("severity")
    assert (
        own in {"critical", "warning", "info"}
        or "tidemark_alert_open{" in rule["expr"]
        or "tidemark_alerts_fired_total{" in rule["expr"]
    )
    assert set(re.findall(r"tidemark_\w+", rule["expr"])) <= METRICS.keys()
    if "committed data loss" in " ".join(annotations.values()).lower():
        assert rule["alert"] == "KafkaCommittedDataLoss"


@pytest.mark.parametrize("rule", every_rule())
def test_no_join_needs_a_series_that_an_upgrade_duplicates(rule: dict[str, Any]) -> None:
    """`group_left` fails where its right side has two series of a target."""
    joins = rule["expr"].count("group_left")
    assert joins == rule["expr"].count("on (job, instance) group_left () max by (job, instance) (")
    assert "group_right" not in rule["expr"]


def test_events_fire_at_once_and_states_wait_longer_than_a_restart() -> None:
    cannot_wait = {alert_name(detector) for detector in replication_rules.HOLD}
    for rule in rules(PROMETHEUS / "kafka-replication.yaml"):
        event = rule["alert"] in {alert_name(d.id) for d in DETECTORS.values() if d.kind == "event"}
        assert ("for" in rule, "keep_firing_for" in rule, "increase(" in rule["expr"]) == (
            not event,
            event,
            event,
        ), rule["alert"]
        if not event:
            assert (rule["for"] == replication_rules.RESTART) == (rule["alert"] not in cannot_wait)


def test_every_detector_has_a_rule_of_its_name() -> None:
    names = {rule["alert"] for rule in rules(PROMETHEUS / "kafka-replication.yaml")}
    assert names == {alert_name(detector) for detector in DETECTORS}


def test_only_a_confirmed_unclean_election_is_critical() -> None:
    found = {
        rule["expr"]: rule["labels"]["severity"]
        for rule in rules(PROMETHEUS / "kafka-replication.yaml")
        if "unclean" in rule["expr"]
    }
    assert sorted(found.values()) == ["critical", "warning"]
    assert all(
        (severity == "critical") == ('kind="confirmed"' in expression)
        for expression, severity in found.items()
    )


def test_only_the_replication_file_repeats_direct_delivery() -> None:
    assert (
        "Only where direct delivery is off"
        in (PROMETHEUS / "kafka-replication.yaml").read_text(encoding="utf-8").splitlines()[0]
    )
    assert all(
        rule["alert"].startswith("Tidemark") for rule in rules(PROMETHEUS / "tidemark-health.yaml")
    )

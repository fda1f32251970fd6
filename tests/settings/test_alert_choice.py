"""Receivers that get nothing are refused; a part that gets nothing is a warning."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.settings.load import load, refused
from tests.verbs.run import tidemark
from tidemark.detect import DETECTORS
from tidemark.detect.detector_table import _MODULES
from tidemark.settings.alert_choice import SEVERITIES, choice_warnings
from tidemark.settings.forms import ALERTS

WORDS = {"critical", "warning", "info"}
DECLARED = {name: set(detector.severities) for name, detector in DETECTORS.items()}


def test_the_severities_are_those_of_the_documentation() -> None:
    documented = {}
    for line in (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 5 and cells[2] in DETECTORS:
            documented[cells[2]] = set(re.findall("|".join(WORDS), cells[4]))
    assert documented == DECLARED


def test_the_severities_are_those_that_the_detectors_write() -> None:
    written = {}
    for name in _MODULES:
        module = import_module(f"tidemark.detect.{name}")
        found = set()
        judging, _, _ = inspect.getsource(module).partition("\nDETECTOR = ")
        for node in ast.walk(ast.parse(judging)):
            if isinstance(node, ast.Constant) and node.value in WORDS:
                found.add(node.value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                # Of Context.
                found |= (
                    {"warning", "info"} if node.func.attr in ("severity", "escalated") else set()
                )
        written[module.DETECTOR.id] = found
    assert written == DECLARED
    assert SEVERITIES.keys() == set(ALERTS)


def receiver(options: str, rest: str = "") -> str:
    return f"notify: {{receivers: [{{name: r, url: 'http://r/', {options}}}]}}\n{rest}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            receiver("alerts: [KafkaUnderMinIsr], severities: [info]"),
            "notify.receivers[0]: it gets no alert: KafkaUnderMinIsr is never info; add critical",
        ),
        (
            receiver("alerts: [KafkaIsrChange, KafkaIsrChurn], severities: [critical]"),
            "is never critical; add info or warning to severities",
        ),
        (
            receiver("alerts: [KafkaIsrChange]", "detect: {disabled: [ISR_CHANGE]}"),
            "detectors in detect.disabled (ISR_CHANGE); enable one",
        ),
        (
            (
                "notify: {alertmanagers: [{name: m, urls: ['http://a'], alerts: [KafkaLossRisk], "
                "severities: [critical]}]}"
            ),
            "notify.alertmanagers[0]: it gets no alert",
        ),
    ],
)
def test_a_receiver_that_gets_no_alert_is_refused(text: str, message: str, tmp_path: Path) -> None:
    assert message in refused(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        receiver("severities: [info]"),
        # Info while its only replica is restarted.
        receiver("alerts: [KafkaOffline], severities: [info]"),
        receiver("alerts: [Tidemark.*], severities: [warning]"),
        receiver("alerts: ['Kafka.*']", "detect: {disabled: [ISR_CHANGE]}"),
        (
            "notify: {heartbeat_receiver: r, receivers: [{name: r, url: 'http://r/', alerts: "
            "[TidemarkWatchdog], severities: [critical]}]}"
        ),
    ],
)
def test_a_receiver_that_may_get_one_is_taken(text: str, tmp_path: Path) -> None:
    assert load(text, tmp_path).notify.receivers[0].name == "r"


def test_a_part_that_matches_nothing_is_a_warning(tmp_path: Path) -> None:
    text = (
        "clusters: [{name: east}]\n"
        "detect: {disabled: [ISR_CHANGE]}\n"
        "notify:\n"
        "  receivers:\n"
        "    - {name: r, url: 'http://r/', severities: [critical], clusters: [east, west],\n"
        "       alerts: [KafkaOffline, KafkaIsrChange, KafkaIsrChurn]}\n"
        "  maintenance:\n"
        "    - {name: m, clusters: [wset], start: '22:00', end: '23:00', days: [monday]}\n"
    )
    warnings = list(choice_warnings(load(text, tmp_path)))
    assert [line[:60] for line in warnings] == [
        "notify.receivers[0].alerts[1] adds nothing: its alerts are t",
        "notify.receivers[0].alerts[2] adds nothing: KafkaIsrChurn is",
        "notify.maintenance[0].clusters[0] matches no cluster of this",
        "notify.receivers[0].clusters[1] matches no cluster of this c",
    ]
    shown = tidemark("check-config", "--config", str(tmp_path / "tidemark.yaml"))
    assert shown.out.startswith("ok: ")
    assert shown.err.splitlines() == [f"warning: {line}" for line in warnings]


def test_an_exporter_without_clusters_has_no_warning(tmp_path: Path) -> None:
    settings = load(receiver("clusters: [west]"), tmp_path)
    assert list(choice_warnings(settings)) == []

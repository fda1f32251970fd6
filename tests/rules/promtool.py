"""Tests for promtool, generated from the rules: all the ways in which their series change.

Steps of 15 s. The counter of an event increases once, by many, together with its series, or while
nothing is scraped. A state lasts longer than the rule waits, or not as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dashboards.alerting import Rule
from tidemark.core.metric_table import METRICS

STEP = 15
# Values for labels without a matcher.
SAMPLES = {
    "kafka_cluster": "c",
    "severity": "warning",
    "broker": "2",
    "kind": "proven",
    "topic": "t",
    "receiver": "r",
}


@dataclass
class Case:
    """One promtool test: series with their values, and the firing alerts at given times."""

    name: str
    series: dict[str, str]
    expected: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        def sample(labels: dict[str, str]) -> dict[str, Any]:
            inside = ", ".join(
                f'{key}="{value}"' for key, value in {**labels, "alertstate": "firing"}.items()
            )
            return {"labels": f"ALERTS{{{inside}}}", "value": 1}

        return {
            "name": self.name,
            "interval": f"{STEP}s",
            "input_series": [
                {"series": series, "values": values} for series, values in self.series.items()
            ],
            "promql_expr_test": [
                {
                    "expr": 'ALERTS{alertstate="firing"}',
                    "eval_time": at,
                    "exp_samples": [sample(labels) for labels in alerts],
                }
                for at, alerts in self.expected.items()
            ],
        }


def watched(rule: Rule) -> tuple[str, dict[str, str]]:
    """The metric of a rule, and one label set of it."""
    metric = next(name for name in re.findall(r"tidemark_\w+", rule.expression) if name in METRICS)
    matched = re.search(rf"{metric}{{([^}}]*)}}", rule.expression)
    labels = {label: SAMPLES.get(label, "x") for label in METRICS[metric].labels}
    for label, operator, value in re.findall(r'(\w+)(=~?)"([^"]*)"', matched[1] if matched else ""):
        labels[label] = value.split("|")[0] if operator == "=~" else value
    return metric, labels


def text_of(metric: str, labels: dict[str, str]) -> str:
    inside = ", ".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{metric}{{{inside}}}" if inside else metric


def fired(rule: Rule, labels: dict[str, str]) -> list[dict[str, str]]:
    return [
        {
            **labels,
            "alertname": rule.alert,
            **({"severity": rule.severity} if rule.severity else {}),
        }
    ]


def seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60}[duration[-1]]


def events(
    rules: list[Rule], name: str, values: str, expected: dict[int, bool], *exporters: str
) -> Case:
    """The counters of all events take `values`. `expected`: second -> whether all of them fire.

    `exporters` are the samples of tidemark_build_info, by version.
    """
    queried = [(rule, *watched(rule)) for rule in rules if rule.hold is None]
    series = {text_of(metric, labels): values for _, metric, labels in queried}
    alerts = [alert for rule, _, labels in queried for alert in fired(rule, labels)]
    builds = {
        text_of(
            "tidemark_build_info", {"component": "export", "version": str(version), "python": "3"}
        ): samples
        for version, samples in enumerate(exporters or ["1x400"], start=1)
    }
    return Case(
        name,
        {**series, **builds},
        {f"{moment}s": alerts if fires else [] for moment, fires in expected.items()},
    )


_FIRES_THEN_ENDS = {285: False, 330: True, 1500: True, 2700: False}
# For 15 minutes, the window has both versions.
_UPGRADE = ("1x19 _x280", "_x20 1x280")
# Name, values, second -> whether it fires, samples of tidemark_build_info by version: the counters,
# and the version, change at step 20 (5 min). Window and keep_firing_for are 15 minutes each.
_EVENTS: tuple[tuple[str, str, dict[int, bool], tuple[str, ...]], ...] = (
    ("one event fires and ends", "0x20 1x280", _FIRES_THEN_ENDS, ()),
    ("a burst within one scrape fires", "3x20 400x280", _FIRES_THEN_ENDS, ()),
    ("a series that starts with its event fires", "_x20 1x280", _FIRES_THEN_ENDS, ()),
    ("a series that starts at 0 fires", "_x16 0x4 1x280", _FIRES_THEN_ENDS, ()),
    (
        "an event while nothing was scraped",
        "0x20 _x80 1x200",
        {1500: False, 1560: True, 3600: False},
        ("1x20 _x80 1x300",),
    ),
    (
        "an old event does not fire again after a gap",
        "1x100 _x80 1x200",
        {2730: False, 3600: False},
        ("1x100 _x80 1x300",),
    ),
    (
        "old events do not fire in a new Prometheus",
        "_x20 7x200",
        {330: False, 900: False},
        ("_x20 1x300",),
    ),
    (
        "the reset of a new exporter does not fire",
        "5x100 0x100",
        {1530: False, 2700: False},
        (),
    ),
    (
        "an event right after the start of a new exporter fires",
        "5x100 0x4 1x200",
        {1545: False, 1620: True},
        (),
    ),
    (
        "an event after an upgrade fires",
        "5x19 0x12 7x260",
        {315: False, 480: False, 510: True, 1140: True},
        _UPGRADE,
    ),
    (
        "a series that starts with its event after an upgrade fires",
        "_x32 7x260",
        {315: False, 510: True, 1140: True},
        _UPGRADE,
    ),
    (
        "an upgrade alone does not fire",
        "5x19 0x280",
        dict.fromkeys(range(285, 1500, 60), False),
        _UPGRADE,
    ),
)


def event_cases(rules: list[Rule]) -> Iterator[Case]:
    for name, values, expected, exporters in _EVENTS:
        yield events(rules, name, values, expected, *exporters)


def state_cases(rules: list[Rule]) -> Iterator[Case]:
    for hold in sorted({rule.hold for rule in rules if rule.hold is not None}):
        chosen = [rule for rule in rules if rule.hold == hold]
        yield from _state_cases(chosen, hold)


def _state_cases(rules: list[Rule], hold: str) -> Iterator[Case]:
    queried = [(rule, *watched(rule)) for rule in rules]
    alerts = [alert for rule, _, labels in queried for alert in fired(rule, labels)]
    steps = seconds(hold) // STEP
    began, ends = 20 * STEP, (40 + steps) * STEP

    def taking(values: str) -> dict[str, str]:
        return {text_of(metric, labels): values for _, metric, labels in queried}

    yield Case(
        f"states that last {hold} fire and end",
        taking(f"0x20 30x{steps + 20} 0x40"),
        {
            f"{began + (steps - 1) * STEP}s": [],
            f"{began + (steps + 4) * STEP}s": alerts,
            f"{ends}s": alerts,
            f"{ends + 4 * STEP}s": [],
        },
    )
    moments = range(20, 20 + steps + 20, 4)
    yield Case(
        f"states shorter than {hold} do not fire",
        taking(f"0x20 30x{steps - 2} 0x60"),
        {f"{step * STEP}s": [] for step in moments},
    )
    yield Case(f"unknown states do not fire ({hold})", taking("_x120"), {"1800s": []})


def rolling_restart(rules: list[Rule]) -> Case:
    """Three brokers, three minutes each: all states of a restart change, and no event happens."""
    series: dict[str, str] = {}
    for rule in rules:
        metric, labels = watched(rule)
        if rule.hold is None:
            series[text_of(metric, labels)] = "0x200"
        elif seconds(rule.hold) < 600:
            series[text_of(metric, labels)] = "0x20 2x2 0x10 2x2 0x10 2x2 0x150"
        elif "broker" in labels:
            for broker in range(3):
                series[text_of(metric, {**labels, "broker": str(broker)})] = (
                    f"0x{20 + 14 * broker} 30x12 0x160"
                )
        else:
            series[text_of(metric, labels)] = "0x20 30x12 0x2 30x12 0x2 30x12 0x140"
    return Case(
        "a rolling restart does not fire",
        series,
        {f"{moment}s": [] for moment in range(60, 3000, 120)},
    )

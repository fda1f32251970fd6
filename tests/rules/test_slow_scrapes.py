"""The annotations of the dashboards where Prometheus scrapes once a minute.

promtool evaluates them over samples 60 s apart, at moments between two scrapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.boards import FILES, load
from tests.dashboards.expected import ANNOTATIONS
from tests.rules.test_dashboards import filled
from tests.rules.test_rules import promtool

# Seconds between two scrapes, and the minute of the change.
SCRAPE, CHANGED = 60, 20
# Grafana's points of an hour: they lie anywhere between two scrapes.
MOMENTS = range(5 * SCRAPE, 35 * SCRAPE, 7)
# The samples of each series. A counter grows once, a state changes for one scrape.
COUNTER = f"5x{CHANGED - 1} 6x40"
PASS = 'tidemark_last_pass_timestamp_seconds{kafka_cluster="c"}'
CLUSTER = 'kafka_cluster="c"'
TOPIC = f'{CLUSTER}, topic="t"'
ALERT = 'alertname="A", severity="critical"'
# Annotation -> (series, samples, minutes from the change on in which it is shown)
CASES: dict[str, tuple[str, str, range]] = {
    "Loss or unclean election": (
        f'tidemark_unclean_elections_total{{{CLUSTER}, kind="confirmed"}}',
        COUNTER,
        range(2),
    ),
    "Records lost": (
        f'tidemark_committed_records_lost_total{{{CLUSTER}, kind="proven"}}',
        COUNTER,
        range(2),
    ),
    # It resolves between two scrapes.
    "Critical alert": (f"tidemark_alerts_fired_total{{{CLUSTER}, {ALERT}}}", COUNTER, range(2)),
    "Alerts not delivered": (
        'tidemark_deliveries_total{receiver="r", outcome="dropped"}',
        COUNTER,
        range(2),
    ),
    "Election": (
        f'tidemark_partition_leader_epoch{{{TOPIC}, partition="0"}}',
        COUNTER,
        range(2),
    ),
    "Broker silent": (
        f'tidemark_broker_up{{{CLUSTER}, broker="1"}}',
        f"1x{CHANGED - 1} 0 1x40",
        range(1),
    ),
    "Alert about the topic": (
        f"tidemark_topic_alert_open{{{TOPIC}, {ALERT}}}",
        f"0x{CHANGED - 1} 1 0x40",
        range(1),
    ),
    # Each pass is 5 s old at its scrape; from the change on there is no further one.
    "No fresh pass": (
        PASS,
        f"-5+{SCRAPE}x{CHANGED - 1} {SCRAPE * (CHANGED - 1) - 5}x40",
        range(40),
    ),
}


def each_annotation() -> Iterator[Any]:
    for path in FILES:
        for each in load(path)["annotations"]["list"]:
            yield pytest.param(each["name"], filled(each["expr"]), id=f"{path.stem}-{each['name']}")


def test_every_annotation_has_a_case() -> None:
    assert CASES.keys() == {name for board in ANNOTATIONS.values() for name in board}


@pytest.mark.parametrize(("name", "expression"), [*each_annotation()])
def test_an_annotation_is_shown_once_and_not_before(
    tmp_path: Path, name: str, expression: str
) -> None:
    series, samples, minutes = CASES[name]
    # From the scrape with the change on.
    shown = range((CHANGED + minutes.start) * SCRAPE, (CHANGED + minutes.stop) * SCRAPE)
    # Never before the change, nor three minutes after `shown`.
    quiet = [at for at in MOMENTS if at < CHANGED * SCRAPE or at >= shown.stop + 3 * SCRAPE]
    expected = {**dict.fromkeys(quiet, 0), **dict.fromkeys(filter(shown.__contains__, MOMENTS), 1)}
    assert {0, 1} == {*expected.values()}
    document = {
        "evaluation_interval": f"{SCRAPE}s",
        "tests": [
            {
                "interval": f"{SCRAPE}s",
                "input_series": [{"series": series, "values": samples}],
                "promql_expr_test": [
                    {
                        "expr": f"count({expression}) or vector(0)",
                        "eval_time": f"{at}s",
                        "exp_samples": [{"labels": "{}", "value": value}],
                    }
                    for at, value in expected.items()
                ],
            }
        ],
    }
    path = tmp_path / "annotation.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    promtool("test", "rules", str(path))

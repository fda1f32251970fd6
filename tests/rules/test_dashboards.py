"""The dashboards, as far as they can be proven without Grafana: nothing here says how they look."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.__main__ import generate, stale
from dashboards.promql import series
from tests.conftest import ROOT, need
from tidemark_exporters.signals import SIGNALS

FILES = sorted((ROOT / "dashboards" / "grafana").glob("*.json"))
PANELS = {"stat", "timeseries"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# What Grafana puts in for its variables.
VARIABLES = {"$__rate_interval": "1m", "$__range": "1h", "$kafka_cluster": "c"}

each_dashboard = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def expressions(value: Any) -> Iterator[str]:
    """Every query in a dashboard: panels, annotations, and the selector of each variable."""
    if isinstance(value, dict):
        if isinstance(value.get("expr"), str):
            yield value["expr"]
        if isinstance(value.get("query"), str) and (selector := re.fullmatch(r"label_values\((.*), \w+\)", value["query"])):
            yield selector[1]
        for inner in value.values():
            yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


def test_the_committed_files_are_what_the_builders_make() -> None:
    assert stale(generate()) == []


def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    for path, text in generate().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert stale(generate(), tmp_path) == []
    edited = Path("dashboards/grafana") / FILES[0].name
    left_over = Path("dashboards/prometheus/old.yaml")
    missing = Path("deploy/kubernetes/rules/kafka-replication.yaml")
    (tmp_path / edited).write_text("{}", encoding="utf-8")
    (tmp_path / left_over).write_text("{}", encoding="utf-8")
    (tmp_path / missing).unlink()
    assert stale(generate(), tmp_path) == sorted([edited, left_over, missing])


def test_check_by_the_command_line() -> None:
    run = subprocess.run([sys.executable, "-m", "dashboards", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")


@each_dashboard
def test_the_sdk_reads_back_every_key(path: Path) -> None:
    """A misspelt key would be lost on the way. The encoder adds `placement` again, which the builders take out."""
    document = load(path)
    again = json.loads(JSONEncoder().encode(Dashboard.from_json(document)))
    assert without_placement(again) == document


def without_placement(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_placement(v) for k, v in value.items() if (k, v) != ("placement", "inControlsMenu")}
    return [without_placement(item) for item in value] if isinstance(value, list) else value


@each_dashboard
def test_panels_keep_the_house_rules(path: Path) -> None:
    document = load(path)
    assert document["uid"] == path.stem
    assert len(document["uid"]) <= 40
    ids = [panel["id"] for panel in document["panels"]]
    assert sorted(ids) == list(range(1, len(ids) + 1))
    for panel in document["panels"]:
        name = panel["title"]
        assert panel["type"] in PANELS, name
        assert panel["description"], name
        assert panel["datasource"] == SOURCE, name
        assert panel["fieldConfig"]["defaults"]["unit"], name
        assert panel["targets"], name
        assert all(target["datasource"] == SOURCE for target in panel["targets"]), name
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs), name
        if panel["type"] == "timeseries":
            assert panel["options"]["legend"]["showLegend"] is True, name


@each_dashboard
def test_panels_stand_inside_the_grid_and_beside_one_another(path: Path) -> None:
    places = [panel["gridPos"] for panel in load(path)["panels"]]
    assert all(p["x"] >= 0 and p["x"] + p["w"] <= 24 and p["h"] > 0 for p in places)
    for a, b in itertools.combinations(places, 2):
        apart = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"] or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert apart, (a, b)


@each_dashboard
def test_variables_are_the_data_source_and_the_cluster(path: Path) -> None:
    variables = {variable["name"]: variable for variable in load(path)["templating"]["list"]}
    assert list(variables) == ["datasource", "kafka_cluster"]
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    assert (variables["kafka_cluster"]["multi"], variables["kafka_cluster"]["includeAll"]) == (True, True)
    assert variables["kafka_cluster"]["datasource"] == SOURCE


@each_dashboard
def test_queries_name_existing_metrics_and_invent_no_zero(path: Path) -> None:
    found = list(expressions(load(path)))
    assert len(found) > 10
    for expression in found:
        names = set(re.findall(r"tidemark_\w+", expression))
        assert names, expression
        assert names <= SIGNALS.keys(), expression
        assert "vector(" not in expression
        cluster_metrics = {name for name in names if "kafka_cluster" in SIGNALS[name].labels}
        if cluster_metrics and "$" in expression:
            assert 'kafka_cluster=~"$kafka_cluster"' in expression


@each_dashboard
def test_queries_are_promql(path: Path, tmp_path: Path) -> None:
    """promtool parses them as recording rules, with Grafana's variables put in."""
    recorded = []
    for number, expression in enumerate(expressions(load(path))):
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)  # noqa: PLW2901
        assert "$" not in expression
        recorded.append({"record": f"query:{number}", "expr": expression})
    rules = tmp_path / "queries.yaml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}), encoding="utf-8")
    run = subprocess.run([need("promtool"), "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_selectors_refuse_what_the_table_does_not_have() -> None:
    assert series("tidemark_alert_open", alertname="A", severity="=~critical|info") == (
        'tidemark_alert_open{alertname="A",severity=~"critical|info"}'
    )
    with pytest.raises(KeyError):
        series("tidemark_alerts_opn")
    with pytest.raises(ValueError, match="has no label topic"):
        series("tidemark_alert_open", topic="t")

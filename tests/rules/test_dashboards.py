"""The dashboards, as far as they can be checked without Grafana."""

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

from dashboards.__main__ import CHART, generate, links, stale, without_placement, write
from dashboards.metric_uses import USES
from dashboards.promql import ESTIMATED, EXACT, FEW, series
from tests.conftest import ROOT, need
from tests.dashboards.boards import FILES, load
from tests.metric_table import definition_of
from tidemark.core.metric_table import METRICS
from tidemark.settings import Notify
from tidemark_exporters.pages.page_definitions import PAGES

PANELS = {"stat", "timeseries", "state-timeline", "table"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Values for Grafana's variables.
VARIABLES = {
    "$__rate_interval": "1m",
    "$__range": "1h",
    "$kafka_cluster": "c",
    "$topic": "t",
    "$partition": "0",
    "$broker": "1",
}

BROKERS = ROOT / "dashboards" / "grafana" / "tidemark-brokers.json"
# A unit of the grid, with its gap.
GRID_PIXELS = 38
# What the values 0 and 1 of a query stand for has words.
ZERO_OR_ONE = r"_(up|online|ready|replica_in_sync|partition_leaderless|alert_open)\b|[<=>] bool"
COUNTS = ("sum(", "sum by (kafka_cluster) (", "count ")

# The metrics of the cluster variable.
FIRST = ("tidemark_last_pass_timestamp_seconds", "tidemark_leader_elections_total")

each_dashboard = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def filled(expression: str) -> str:
    """The expression with values for Grafana's variables."""
    return re.sub(r"\$\w+", lambda found: VARIABLES[found[0]], expression)


def expressions(value: Any) -> Iterator[str]:
    """Every query in a dashboard: panels, annotations, and the selector of each variable."""
    if isinstance(value, dict):
        if isinstance(value.get("expr"), str):
            yield value["expr"]
        if isinstance(value.get("query"), str) and (
            selector := re.fullmatch(r"label_values\((.*), \w+\)", value["query"])
        ):
            yield selector[1]
        for inner in value.values():
            yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


def test_the_committed_files_equal_the_output_of_the_builders() -> None:
    assert stale(generate()) == []


def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    write(generate(), tmp_path)
    assert stale(generate(), tmp_path) == []
    edited = Path("dashboards/grafana") / FILES[0].name
    left_over = Path("dashboards/prometheus/old.yaml")
    missing = Path("dashboards/prometheus/kafka-replication.yaml")
    copied = CHART / "dashboards" / FILES[-1].name
    (tmp_path / edited).write_text("{}", encoding="utf-8")
    (tmp_path / left_over).write_text("{}", encoding="utf-8")
    (tmp_path / missing).unlink()
    (tmp_path / copied).unlink()
    (tmp_path / copied).write_bytes(FILES[-1].read_bytes())
    assert stale(generate(), tmp_path) == sorted([edited, left_over, missing, copied])


def test_a_generated_file_is_committed_once_and_the_chart_links_to_it() -> None:
    assert {(ROOT / path).resolve() for path in links(generate())} == {
        ROOT / path for path in generate() if path.parts[0] == "dashboards"
    }


def test_check_by_the_command_line() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "dashboards", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "")


def test_a_metric_is_in_a_panel_or_a_rule_or_the_page_says_its_use_in_a_line() -> None:
    rules = [
        rule["expr"]
        for path in (ROOT / "dashboards" / "prometheus").glob("*.yaml")
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    ]
    queries = [*rules, *itertools.chain.from_iterable(expressions(load(path)) for path in FILES)]
    names = {name for query in queries for name in re.findall(r"\b(?:tidemark|kafka)_\w+", query)}
    labels = {label for each in METRICS.values() for label in each.labels}
    shown = {definition_of(name).name for name in names - labels}
    assert shown & USES.keys() == set()
    own = {name for name, each in METRICS.items() if not each.is_optional}
    assert shown | USES.keys() == own
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for name, use in USES.items():
        assert f"* `{name}`: {use}\n" in page
        assert use.endswith((".", "?")) and "\n" not in use


@each_dashboard
def test_the_sdk_reads_back_every_key(path: Path) -> None:
    """A misspelt key would be lost. The builders remove `placement`, which the encoder adds."""
    document = json.loads(path.read_text(encoding="utf-8"))
    again = json.loads(JSONEncoder().encode(Dashboard.from_json(document)))
    assert without_placement(again) == document


def how_exact(targets: list[dict[str, Any]]) -> set[str]:
    """The sentences that the queries' use of `increase` calls for."""
    grown = [target["expr"] for target in targets if "increase(" in target["expr"]]
    return {EXACT if "resets(" in expression else ESTIMATED for expression in grown}


def is_zero_or_one(panel: dict[str, Any]) -> bool:
    found = [each["expr"] for each in panel["targets"]]
    return all(re.search(ZERO_OR_ONE, each) and not each.startswith(COUNTS) for each in found)


def looks(panel: dict[str, Any], values: list[int]) -> int:
    """How many of the values a state timeline draws with a text and a colour of their own.

    As its source does: with `mergeValues` and colours by thresholds, a value is its threshold; else
    a mapping's text and colour, then the colour mode: a scale from the least to the largest value.
    """
    defaults = panel["fieldConfig"]["defaults"]
    mode = defaults["color"]["mode"]
    texts, colours = set(), set()
    for value in values:
        text, colour = str(value), str(value) if mode.startswith("continuous-") else mode
        if panel["options"]["mergeValues"] and mode == "thresholds":
            steps = [step["value"] or 0 for step in defaults["thresholds"]["steps"]]
            text = colour = str(sum(value >= step for step in steps))
        for mapping in defaults["mappings"]:
            options = mapping["options"]
            fits = value >= options["from"] if "from" in options else str(value) in options
            if fits and mode != "thresholds":
                result = options.get(str(value)) or options["result"]
                text, colour = result["text"], result["color"]
                break
        texts.add(text)
        colours.add(colour)
    return min(len(texts), len(colours))


def stated_exactness(description: str) -> set[str]:
    return {each for each in (ESTIMATED, EXACT) if each.lower() in description.lower()}


def broken_rules(panel: dict[str, Any]) -> Iterator[str]:
    """The rules of ours that a panel breaks."""
    defaults, targets = panel["fieldConfig"]["defaults"], panel["targets"]
    refs = [target["refId"] for target in targets]
    timed = panel["type"] in {"timeseries", "state-timeline"}
    rules = {
        "a panel type of ours": panel["type"] in PANELS,
        "a title of at most 60 letters": 0 < len(panel["title"]) <= 60,
        "a description in a sentence": panel["description"].endswith("."),
        "the data source variable": panel["datasource"] == SOURCE
        and all(target["datasource"] == SOURCE for target in targets),
        "a unit": bool(defaults["unit"]),
        "how exact an increase is": how_exact(targets) == stated_exactness(panel["description"]),
        "words for no data": bool(defaults["noValue"]),
        "queries, each with its own letter": bool(refs) and len(set(refs)) == len(refs),
        "instant queries for now, ranges for graphs": all(
            t.get("range", False) is timed and t.get("instant", False) is not timed for t in targets
        ),
        "a minimal interval where there is a time axis": (panel.get("interval") == "15s") is timed,
        "legends by series": panel["type"] == "table"
        or len(targets) == 1
        or all(target["legendFormat"] for target in targets),
        "no series counted from several clusters without saying so": not any(
            "kafka_cluster=~" in t["expr"]
            and "{{" in t["legendFormat"]
            and "{{kafka_cluster}}" not in t["legendFormat"]
            for t in targets
        ),
    }
    legends = " ".join(target["legendFormat"] for target in targets)
    if timed and re.search("{{(broker|cause|kind)}}", legends):
        queries = [t["expr"] for t in targets if 'partition="$partition"' not in t["expr"]]
        limits = [re.findall(r" and (?:top|bottom)k\((\d+), ", each) for each in queries]
        rules["at most six series of brokers or causes, and words for it"] = not queries or (
            all(limits)
            and sum(map(int, itertools.chain(*limits))) <= 6
            and FEW in panel["description"]
        )
    if panel["type"] in {"stat", "state-timeline"}:
        rules["words for 0 and 1"] = bool(defaults["mappings"]) or not is_zero_or_one(panel)
    if panel["type"] == "state-timeline":
        rules["values that differ look different"] = looks(panel, [0, 1]) == 2
    if panel["type"] == "timeseries":
        legend, custom, unit = panel["options"]["legend"], defaults["custom"], defaults["unit"]
        has_kinds = len(targets) > 1 or re.search(r"{{(kind|purgatory|operation|source)}}", legends)
        rules["a legend that is shown"] = legend["showLegend"] is True
        rules["the largest series first"] = legend["displayMode"] == "list" or (
            (legend.get("sortBy"), legend.get("sortDesc")) == ("Max", True)
        )
        rules["seconds that stay seconds, and words for rates"] = unit not in {"s", "cps"}
        rules["no axis to 100 of zeros"] = "axisSoftMax" in custom or unit not in {
            "short",
            "suffix:s",
            "percentunit",
        }
        rules["a word for estimates"] = (custom.get("axisLabel") == "estimated") is all(
            "increase(" in t["expr"] and "resets(" not in t["expr"] for t in targets
        )
        rules["lines of one broker that can be told apart"] = bool(
            panel["fieldConfig"]["overrides"]
        ) is bool("{{broker}}" in legends and has_kinds)
        rules["gaps where nothing is known"] = defaults["custom"]["spanNulls"] is False
        rules["a tooltip of all series"] = panel["options"]["tooltip"]["mode"] == "multi"
    if panel["type"] == "stat":
        rules["a single query with thresholds"] = len(targets) == 1 and bool(
            defaults["thresholds"]["steps"]
        )
        rules["a name only where there is one"] = panel["options"]["textMode"] == (
            "value_and_name" if targets[0]["legendFormat"] else "value"
        )
        if panel["gridPos"]["w"] < 8:
            rules["a title that fits"] = len(panel["title"]) <= 20
            rules["a line for each value"] = panel["options"]["orientation"] == "horizontal"
    if panel["type"] == "table":
        arranged = next(
            each["options"] for each in panel["transformations"] if each["id"] == "organize"
        )
        shown = [
            name
            for name in sorted(arranged["indexByName"], key=arranged["indexByName"].get)
            if not name.startswith("Value")
        ]
        coloured = {
            each["matcher"]["options"]
            for each in panel["fieldConfig"]["overrides"]
            if any(option["id"] == "thresholds" for option in each["properties"])
        }
        first = {each["displayName"] for each in panel["options"]["sortBy"] if each["desc"]}
        rules["the rows with a bad value first"] = coloured <= first
        rules["no column for the time"] = arranged["excludeByName"] == {"Time": True}
        rules["the labels that are shown and no others"] = all(
            t["expr"].startswith(f"max by ({', '.join(shown)}) (") for t in targets
        )
    yield from (rule for rule, kept in rules.items() if not kept)


@each_dashboard
def test_panels_keep_our_rules(path: Path) -> None:
    document = load(path)
    assert document["uid"] == path.stem
    assert len(document["uid"]) <= 40
    ids = [panel["id"] for panel in document["panels"]]
    assert len(set(ids)) == len(ids) and min(ids) > 0
    assert {panel["title"]: list(broken_rules(panel)) for panel in document["panels"]} == {
        panel["title"]: [] for panel in document["panels"]
    }


def test_a_broken_rule_is_found() -> None:
    panel = next(panel for panel in load(FILES[0])["panels"] if panel["type"] == "timeseries")
    panel["fieldConfig"]["defaults"]["unit"] = ""
    panel["targets"][0]["range"] = False
    assert list(broken_rules(panel)) == ["a unit", "instant queries for now, ranges for graphs"]


def test_a_state_timeline_that_merges_its_values_is_found() -> None:
    found = (p for path in FILES for p in load(path)["panels"] if p["type"] == "state-timeline")
    for panel in found:
        assert looks(panel, [0, 1]) == 2
        defaults = panel["fieldConfig"]["defaults"]
        defaults["color"] = {"mode": "thresholds"}
        defaults["thresholds"] = {"mode": "absolute", "steps": [{"value": None, "color": "blue"}]}
        assert looks(panel, [0, 1]) == 1
        assert "values that differ look different" in set(broken_rules(panel))


def test_a_panel_that_does_not_say_how_exact_it_is_is_found() -> None:
    panels = {each["id"]: each for each in load(FILES[2])["panels"]}
    assert FILES[2].stem == "tidemark-overview"
    for number, sentence in ((1, EXACT), (9, ESTIMATED)):
        panel = panels[number]
        assert list(broken_rules(panel)) == []
        panel["description"] = panel["description"].replace(f" {sentence}", "")
        assert list(broken_rules(panel)) == ["how exact an increase is"]


def test_ids_of_panels_do_not_change() -> None:
    """Links to single panels outlive releases: the id of a removed panel is not reused."""
    titles = {
        path.stem: {panel["id"]: panel["title"] for panel in load(path)["panels"]} for path in FILES
    }
    assert (
        titles["tidemark-overview"][1] == "Records lost" and 11 not in titles["tidemark-overview"]
    )
    assert {stem: max(ids) for stem, ids in titles.items()} == {
        "tidemark-brokers": 23,
        "tidemark-fleet": 7,
        "tidemark-overview": 16,
        "tidemark-partition": 19,
        "tidemark-pipeline": 18,
        "tidemark-topic": 15,
    }


@each_dashboard
def test_panels_are_inside_the_grid_and_do_not_overlap(path: Path) -> None:
    shown = json.loads(path.read_text(encoding="utf-8"))["panels"]
    for panels in (shown, *(row["panels"] for row in shown if row.get("panels"))):
        places = [panel["gridPos"] for panel in panels]
        assert all(p["x"] >= 0 and p["x"] + p["w"] <= 24 and p["h"] > 0 for p in places)
        for a, b in itertools.combinations(places, 2):
            apart = (
                a["x"] + a["w"] <= b["x"]
                or b["x"] + b["w"] <= a["x"]
                or a["y"] + a["h"] <= b["y"]
                or b["y"] + b["h"] <= a["y"]
            )
            assert apart, (a, b)


def test_the_brokers_dashboard_shows_first_what_every_cluster_has() -> None:
    shown = json.loads(BROKERS.read_text(encoding="utf-8"))["panels"]
    rows = {panel["title"]: panel for panel in shown if panel["type"] == "row"}
    assert {title for title, row in rows.items() if row["collapsed"]} == {"Disks", "JMX"}
    assert max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in shown) * GRID_PIXELS < 2400
    assert (
        len({row["id"] for row in rows.values()} - {p["id"] for p in load(BROKERS)["panels"]}) == 5
    )


VARIABLES_OF = {
    "tidemark-fleet": ["kafka_cluster"],
    "tidemark-overview": ["kafka_cluster"],
    "tidemark-topic": ["kafka_cluster", "topic"],
    "tidemark-partition": ["kafka_cluster", "topic", "partition"],
    "tidemark-brokers": ["kafka_cluster", "broker"],
    "tidemark-pipeline": ["kafka_cluster"],
}


@each_dashboard
def test_variables_are_the_data_source_and_the_labels_of_the_dashboard(path: Path) -> None:
    variables = {variable["name"]: variable for variable in load(path)["templating"]["list"]}
    assert list(variables) == ["datasource", *VARIABLES_OF[path.stem], "status_page"]
    assert variables["status_page"]["query"] == Notify().external_url
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == (
        "datasource",
        "prometheus",
    )
    for name in VARIABLES_OF[path.stem]:
        variable = variables[name]
        assert variable["datasource"] == SOURCE
        assert re.fullmatch(rf"label_values\(tidemark_\w+({{.*}})?, {name}\)", variable["query"])
        assert bool(variable.get("multi")) == bool(variable.get("includeAll"))


@each_dashboard
def test_only_a_variable_of_several_values_is_matched_as_a_pattern(
    path: Path,
) -> None:
    several = {v["name"]: bool(v.get("multi")) for v in load(path)["templating"]["list"]}
    for expression in expressions(load(path)):
        for operator, name in re.findall(r'(=~?)"\$(\w+)"', expression):
            assert (operator == "=~") == several[name], expression


@each_dashboard
def test_links_lead_to_existing_dashboards_and_set_all_their_variables(path: Path) -> None:
    document = load(path)
    assert [link["tags"] for link in document["links"]] == [["kafka", "tidemark"]] and document[
        "tags"
    ] == ["kafka", "tidemark"]
    assert document["links"][0]["includeVars"] and document["links"][0]["keepTime"]
    for url in re.findall(r'"url": "(/d/[^"]+)"', json.dumps(document)):
        uid, _, arguments = url.removeprefix("/d/").partition("?")
        assert uid in VARIABLES_OF, url
        assert {"${__url_time_range}", "${datasource:queryparam}"} <= set(arguments.split("&"))
        assert set(re.findall(r"var-(\w+)=", arguments)) == set(VARIABLES_OF[uid]), url
    takes = {name: VARIABLES_OF.get(f"tidemark-{name}", ["", "broker"])[1:] for name in PAGES}
    takes[""] = []
    pages = re.findall(r'{status_page:raw}/(\w*)\?cluster=\$([^"]+)', json.dumps(document))
    assert pages or path.stem == "tidemark-pipeline"
    for name, query in pages:
        assert re.findall(r"&(\w+)=\$", query) == takes[name]


def test_links_lead_from_the_overview_down_to_a_partition() -> None:
    links = {
        path.stem: set(re.findall(r'"url": "/d/([\w-]+)', path.read_text(encoding="utf-8")))
        for path in FILES
    }
    assert {"tidemark-topic", "tidemark-brokers"} <= links["tidemark-overview"]
    assert "tidemark-partition" in links["tidemark-topic"]
    assert "tidemark-brokers" in links["tidemark-partition"]


@each_dashboard
def test_queries_name_existing_metrics_and_have_no_artificial_zero(path: Path) -> None:
    found = list(expressions(load(path)))
    assert len(found) > 10
    for expression in found:
        names = [definition_of(name) for name in re.findall(r"tidemark_\w+", expression)]
        assert names, expression
        assert "vector(" not in expression
        selectors = re.findall(r"tidemark_\w+(?:{[^}]*})?", expression)
        for selector, signal in zip(selectors, names, strict=True):
            if (
                "kafka_cluster" in signal.labels
                and "label_values" not in expression
                and selector not in FIRST
            ):
                assert re.search(r'kafka_cluster=~?"\$kafka_cluster"', selector), expression


@each_dashboard
def test_queries_are_promql(path: Path, tmp_path: Path) -> None:
    """promtool parses them as recording rules, with Grafana's variables put in."""
    recorded = [
        {"record": f"query:{number}", "expr": filled(expression)}
        for number, expression in enumerate(expressions(load(path)))
    ]
    assert "$" not in str(recorded)
    rules = tmp_path / "queries.yaml"
    rules.write_text(
        yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}), encoding="utf-8"
    )
    run = subprocess.run(
        [need("promtool"), "check", "rules", str(rules)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_selectors_refuse_unknown_metrics_and_labels() -> None:
    assert series("tidemark_alert_open", alertname="A", severity="=~critical|info") == (
        'tidemark_alert_open{alertname="A",severity=~"critical|info"}'
    )
    with pytest.raises(KeyError):
        series("tidemark_alerts_opn")
    with pytest.raises(ValueError, match="has no label topic"):
        series("tidemark_alert_open", topic="t")

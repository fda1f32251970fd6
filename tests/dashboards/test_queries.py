"""Every query, variable and annotation of every dashboard, over a real Prometheus and exporter.

The appearance in Grafana is not tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.boards import FILES, load
from tests.dashboards.expected import ANNOTATIONS, CHOSEN, PANELS, VALUES, Expected
from tests.dashboards.stage import SCRAPE_SECONDS, Stage, staged
from tests.dashboards.story import HEALTHY, SCENES, UNCLEAN

DASHBOARDS: dict[str, dict[str, Any]] = {path.stem: load(path) for path in FILES}
# Grafana's own: four scrapes for a rate, and the time shown.
INTERVALS = {"__rate_interval": f"{4 * SCRAPE_SECONDS}s", "__range": "10m"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage")) as played:
        yield played


def filled(expression: str, choose: dict[str, str] | None = None) -> str:
    """The expression with values for Grafana's variables."""
    values = {**CHOSEN, **INTERVALS, **(choose or {})}
    return re.sub(r"\$(\w+)", lambda match: values[match[1]], expression)


def shown(
    stage: Stage, expression: str, expected: Expected, *, timed: bool
) -> list[tuple[dict[str, str], float]]:
    """(labels, value) of every series in the expected scene."""
    began, ended = stage.spans[expected.scene]
    query = filled(expression, expected.choose)
    if not timed and not expected.most:
        found = stage.ask("query", query=query, time=ended)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]
    # The first seconds of a scene still show the one before.
    found = stage.ask("query_range", query=query, start=began + 2, end=ended, step=SCRAPE_SECONDS)[
        "result"
    ]
    values = [
        (series["metric"], [float(value) for _, value in series["values"]]) for series in found
    ]
    return [(labels, max(numbers) if expected.most else numbers[-1]) for labels, numbers in values]


def check(found: list[tuple[dict[str, str], float]], expected: Expected) -> None:
    fitting = [value for labels, value in found if expected.labels.items() <= labels.items()]
    if expected.low is None or expected.high is None:
        assert fitting == [], found
        return
    assert fitting, found
    assert all(expected.low - 1e-9 <= value <= expected.high + 1e-9 for value in fitting), (
        found,
        expected,
    )


def targets() -> list[Any]:
    return [
        pytest.param(uid, panel, index, target["expr"], id=f"{uid}-{panel['id']}-{target['refId']}")
        for uid, board in DASHBOARDS.items()
        for panel in board["panels"]
        for index, target in enumerate(panel["targets"])
    ]


def panels() -> list[Any]:
    return [
        pytest.param(panel, id=f"{uid}-{panel['id']}")
        for uid, board in DASHBOARDS.items()
        for panel in board["panels"]
    ]


def each_annotation() -> list[Any]:
    return [
        pytest.param(uid, each, id=f"{uid}-{each['name']}")
        for uid, board in DASHBOARDS.items()
        for each in board["annotations"]["list"]
    ]


def each_variable() -> list[Any]:
    return [
        pytest.param(uid, each, id=f"{uid}-{each['name']}")
        for uid, board in DASHBOARDS.items()
        for each in board["templating"]["list"]
        if each["type"] == "query"
    ]


def test_every_query_and_annotation_has_an_expectation() -> None:
    assert {
        uid: {panel["id"]: len(panel["targets"]) for panel in board["panels"]}
        for uid, board in DASHBOARDS.items()
    } == {
        uid: {number: len(expected) for number, expected in panels.items()}
        for uid, panels in PANELS.items()
    }
    assert {
        uid: {each["name"] for each in board["annotations"]["list"]}
        for uid, board in DASHBOARDS.items()
    } == {uid: set(expected) for uid, expected in ANNOTATIONS.items()}


def test_a_wrong_value_and_a_missing_series_are_found() -> None:
    expected = Expected(HEALTHY, 1, 1, {"broker": "2"})
    for found in ([({"broker": "2"}, 0.0)], [({"broker": "3"}, 1.0)], []):
        with pytest.raises(AssertionError):
            check(found, expected)
    with pytest.raises(AssertionError):
        check([({}, 0.0)], Expected(HEALTHY, None, None, {}))


@pytest.mark.parametrize(("uid", "panel", "index", "expression"), targets())
def test_a_panel_shows_the_expected_values(
    stage: Stage, uid: str, panel: dict[str, Any], index: int, expression: str
) -> None:
    expected = PANELS[uid][panel["id"]][index]
    check(
        shown(stage, expression, expected, timed=panel["type"] in {"timeseries", "state-timeline"}),
        expected,
    )


@pytest.mark.parametrize("panel", panels())
def test_legends_are_unique(stage: Stage, panel: dict[str, Any]) -> None:
    """In every scene. A table has no legends."""
    if panel["type"] == "table":
        return
    for scene in SCENES:
        names = []
        for target in panel["targets"]:
            parts = re.split(r"{{(\w+)}}", target["legendFormat"])
            for series in stage.ask(
                "query", query=filled(target["expr"]), time=stage.spans[scene][1]
            )["result"]:
                labels = series["metric"]
                names.append(
                    "".join(
                        labels.get(part, "") if place % 2 else part
                        for place, part in enumerate(parts)
                    )
                )
        assert len(set(names)) == len(names), (scene, names)


@pytest.mark.parametrize(("uid", "annotation"), each_annotation())
def test_an_annotation_marks_its_scene_and_not_the_healthy_one(
    stage: Stage, uid: str, annotation: dict[str, Any]
) -> None:
    expected = ANNOTATIONS[uid][annotation["name"]]
    check(shown(stage, annotation["expr"], expected, timed=True), expected)
    began, ended = stage.spans[HEALTHY]
    healthy = stage.ask(
        "query_range",
        query=filled(annotation["expr"]),
        start=began + 2,
        end=ended,
        step=SCRAPE_SECONDS,
    )
    assert healthy["result"] == []


@pytest.mark.parametrize(("uid", "variable"), each_variable())
def test_a_variable_offers_the_existing_values(
    stage: Stage, uid: str, variable: dict[str, Any]
) -> None:
    asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
    assert asked is not None
    began, ended = stage.spans[SCENES[0]][0], stage.spans[SCENES[-1]][1]
    values = stage.ask(
        f"label/{asked[2]}/values", **{"match[]": filled(asked[1]), "start": began, "end": ended}
    )
    assert values == VALUES[variable["name"]]


def test_event_rules_fire_in_their_scene_and_nothing_critical_before(stage: Stage) -> None:
    """From the fault over the counter to the rule, within the scene."""

    def firing(scene: str) -> set[str]:
        found = stage.ask(
            "query",
            query='ALERTS{alertstate="firing", severity="critical"}',
            time=stage.spans[scene][1],
        )["result"]
        return {series["metric"]["alertname"] for series in found}

    assert firing(HEALTHY) == set()
    assert firing(UNCLEAN) == {"KafkaUncleanElection", "KafkaCommittedDataLoss"}


def test_prometheus_accepts_everything_that_is_served(stage: Stage, tmp_path: Path) -> None:
    found = stage.ask("targets", state="active")["activeTargets"]
    assert [target["lastError"] for target in found] == ["", "", ""]
    for name in ("scrape_samples_scraped", "scrape_samples_post_metric_relabeling"):
        assert len(stage.ask("query", query=name)["result"]) == 3

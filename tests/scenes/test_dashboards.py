"""The dashboards' queries over the data of the scenes' Prometheus, after the run.

tests/dashboards checks every panel's value in synthetic scenes. Here: the values that the real ones
must reach, and that no query fails or stays empty.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import missing
from tests.dashboards.boards import FILES, load
from tests.dashboards.stage import Stage, asking
from tests.dashboards.test_queries import filled
from tests.scenes.run import Scenes
from tests.scenes.test_report import row_of
from tidemark_lab.demo.expected_alerts import PAUSED, UNCLEAN
from tidemark_lab.demo.schedule import WATCHED
from tidemark_lab.demo.services import CLUSTER_NAME

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow]

BOARDS: dict[str, dict[str, Any]] = {path.stem: load(path) for path in FILES}
CHOSEN = {
    "kafka_cluster": CLUSTER_NAME,
    "topic": WATCHED,
    "partition": "0",
    "broker": "1|2|3",
    "__rate_interval": "10s",
    "__range": "20m",
}
STEP_SECONDS = 1
# From the fault to its last alert.
PAUSE = "the pause alone"
# Metrics of the collector and the stream, which do not listen in the demo; no series is dropped,
# every node reports its metadata, and no agent serves JMX.
EMPTY = {
    "tidemark-fleet": {(7, "A")},
    "tidemark-brokers": {(16, "A"), (17, "A"), (18, "A"), (19, "A"), (19, "B"), (20, "A")},
    "tidemark-pipeline": {
        (7, "A"),
        (8, "A"),
        (9, "B"),
        (10, "A"),
        (10, "B"),
        (11, "A"),
        (12, "A"),
        (14, "B"),
    },
}
# A replica lags in sync while it answers: on a busy machine only.
MAY_BE_EMPTY = {("tidemark-brokers", (23, "A"))}


@dataclass(frozen=True)
class Moved:
    """In `scene` the series with `labels` must have reached a value from `low` to `high`."""

    scene: str
    board: str
    panel: int
    ref: str
    low: float
    high: float
    labels: dict[str, str]


def moved(
    scene: str, board: str, panel: str, low: float, high: float = 1e12, **labels: str
) -> Moved:
    return Moved(scene, f"tidemark-{board}", int(panel[:-1]), panel[-1], low, high, labels)


# The watched partition and that of the consumers' offsets: both may change between two scrapes.
BOTH = 2
MOVED = [
    moved(PAUSED, "overview", "5A", 1, BOTH),
    moved(PAUSED, "overview", "7A", 2, 120, broker="2"),
    moved(PAUSED, "overview", "8A", 1),
    moved(PAUSED, "overview", "9A", 0.5, 3, broker="2"),
    moved(PAUSED, "overview", "13A", 0, 0, broker="2"),
    moved(PAUSED, "overview", "15A", 2, 120, topic=WATCHED),
    moved(PAUSED, "overview", "16A", 1, BOTH, alertname="KafkaFollowerLag"),
    moved(UNCLEAN, "overview", "2A", 1),
    moved(UNCLEAN, "overview", "3A", 1, BOTH),
    moved(UNCLEAN, "overview", "10A", 0.5, 3, kind="confirmed"),
    moved(UNCLEAN, "overview", "10B", 0.5, 5),
    moved(UNCLEAN, "overview", "10C", 0.5, 5),
    moved(PAUSED, "topic", "5A", 2, 120),
    moved(PAUSED, "topic", "9A", 1),
    moved(PAUSED, "topic", "12A", 1, 1, alertname="KafkaFollowerLag"),
    moved(UNCLEAN, "topic", "2A", 1, 1),
    moved(UNCLEAN, "topic", "12A", 1, 1, alertname="KafkaCommittedDataLoss"),
    moved(PAUSED, "partition", "8A", 1, 1e9, broker="2"),
    moved(PAUSED, "partition", "9A", 2, 120, broker="2"),
    moved(PAUSED, "partition", "10A", 1),
    moved(PAUSED, "partition", "11A", 1, 120),
    moved(PAUSED, "partition", "13A", 0, 0, broker="2"),
    moved(PAUSED, "partition", "15A", 0, 0, broker="2"),
    moved(UNCLEAN, "partition", "1A", 2, 2),
    moved(UNCLEAN, "partition", "5A", 1, 1),
    moved(PAUSED, "brokers", "1G", 0, 0, broker="2"),
    moved(PAUSED, "brokers", "4A", 0.5, 3, broker="2"),
    moved(PAUSED, "brokers", "5A", 0.5, 3, broker="1"),
    moved(PAUSED, "brokers", "9A", 1, BOTH, broker="2"),
    moved(UNCLEAN, "brokers", "1A", 1, BOTH, broker="1"),
]


@pytest.fixture(scope="module")
def stage(scenes: Scenes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    data = scenes.workdir / "prometheus"
    if not data.exists():
        missing("the scenes ran without Prometheus (make system installs it as root on Debian)")
    with asking(tmp_path_factory.mktemp("prometheus"), data) as stage:
        found = stage.ask(
            "query_range", query="up", start=time.time() - 3600, end=time.time(), step=5
        )["result"]
        assert found, "the scenes' Prometheus scraped nothing"
        paused, unclean = (
            min(
                row["fault_at"]
                for row in scenes.report
                if row["scene"] == scene and row["fault_at"]
            )
            for scene in (PAUSED, UNCLEAN)
        )
        ended = max(float(moment) for moment, _ in found[0]["values"])
        stage.spans = {
            "whole": (float(found[0]["values"][0][0]), ended),
            PAUSED: (paused, unclean),
            UNCLEAN: (unclean, ended),
        }
        # Without the rolling restart: its quick elections may be suspected.
        alerted_at = max(
            row["received_at"]
            for row in scenes.report
            if row["scene"] == PAUSED and row["expected"]
        )
        stage.spans[PAUSE] = (paused, alerted_at)
        yield stage


def over(stage: Stage, scene: str, expression: str) -> list[tuple[dict[str, str], list[float]]]:
    began, ended = stage.spans[scene]
    found = stage.ask(
        "query_range", query=filled(expression, CHOSEN), start=began, end=ended, step=STEP_SECONDS
    )["result"]
    return [(series["metric"], [float(value) for _, value in series["values"]]) for series in found]


def expression_of(board: str, panel: int, ref: str) -> str:
    (found,) = [each for each in BOARDS[board]["panels"] if each["id"] == panel]
    (target,) = [each for each in found["targets"] if each["refId"] == ref]
    return str(target["expr"])


@pytest.mark.parametrize(
    "each",
    MOVED,
    ids=lambda each: (
        f"{each.scene}-{each.board}-{each.panel}{each.ref}-{'-'.join(each.labels.values())}"
    ),
)
def test_a_scene_shows_in_its_panels(stage: Stage, each: Moved) -> None:
    found = over(stage, each.scene, expression_of(each.board, each.panel, each.ref))
    fitting = [
        value
        for labels, values in found
        if each.labels.items() <= labels.items()
        for value in values
    ]
    assert fitting, [labels for labels, _ in found]
    assert any(each.low <= value <= each.high for value in fitting), (min(fitting), max(fitting))


def test_the_overview_shows_the_proven_loss_of_the_report(stage: Stage, scenes: Scenes) -> None:
    start, end = row_of(scenes, UNCLEAN, "KafkaCommittedDataLoss")["proven"]
    found = over(stage, UNCLEAN, 'tidemark_committed_records_lost_total{kind="proven"}')
    assert max(value for _, values in found for value in values) == end - start


def test_no_query_fails_or_stays_empty(stage: Stage) -> None:
    empty = {
        uid: {
            (panel["id"], target["refId"])
            for panel in board["panels"]
            for target in panel["targets"]
            if (uid, (panel["id"], target["refId"])) not in MAY_BE_EMPTY
            and not over(stage, "whole", target["expr"])
        }
        for uid, board in BOARDS.items()
    }
    assert {uid: found for uid, found in empty.items() if found} == EMPTY


def test_annotations_mark_the_faults(stage: Stage) -> None:
    marks = {
        (uid, each["name"], scene): bool(over(stage, scene, each["expr"]))
        for uid, board in BOARDS.items()
        for each in board["annotations"]["list"]
        for scene in (PAUSED, PAUSE, UNCLEAN)
    }
    assert marks["tidemark-overview", "Loss or unclean election", UNCLEAN]
    assert not marks["tidemark-overview", "Loss or unclean election", PAUSE]
    assert marks["tidemark-brokers", "Broker silent", PAUSED]
    # The one ticket of a pause is about the broker.
    assert not marks["tidemark-topic", "Alert about the topic", PAUSED]
    assert marks["tidemark-topic", "Alert about the topic", UNCLEAN]
    assert marks["tidemark-partition", "Election", UNCLEAN]

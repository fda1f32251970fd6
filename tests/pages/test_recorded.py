"""Recorded faults of real brokers, reduced and shown on the pages."""

from __future__ import annotations

import pytest

from tests.pages.make import site
from tests.pages.markup import Element, page
from tests.verbs.recordings import trace
from tidemark.core.records import Alert, View, decode_record
from tidemark.detect.default_thresholds import Detection
from tidemark.observations.recorded_lines import Line, LineReducer
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages.responses import Pages

OF_TRACE: dict[str, object] = {"cluster": "trace", "topic": "trace", "partition": 0}


def replay(name: str, until: str | None = None) -> tuple[Pages, View, list[Alert]]:
    """The pages, the partition's view and all alerts: of a whole recording, or up to an alert."""
    reducer, table, alerts = LineReducer(Detection()), Table(), list[Alert]()
    for number, line in enumerate(trace(name), 1):
        for row in reducer.reduce(Line(0, number, line)):
            record = decode_record(row.value or b"")
            if isinstance(record, Alert):
                alerts.append(record)
            elif isinstance(record, View):
                table.apply(row.key.decode(), record, row.value)
        if until in {alert.labels["alertname"] for alert in alerts}:
            break
    (partition,) = table.partitions.values()
    return site(table, now=max(table.newest.values()) + 1, past=alerts), partition.view, alerts


def figure_of(pages: Pages) -> Element:
    return page(pages, "/partition", **OF_TRACE).one("svg", id="log-figure")


def epochs_of(figure: Element, broker: int) -> list[tuple[str, str, str]]:
    bars = figure.one("g", **{"data-broker": str(broker)}).all("rect", class_="segment")
    return [
        (bar.attributes["data-epoch"], bar.attributes["data-start"], bar.attributes["data-end"])
        for bar in bars
    ]


def test_an_unclean_election_shows_the_lost_records_once_proven() -> None:
    pages, _, alerts = replay("unclean", until="KafkaCommittedDataLoss")
    (loss,) = [each for each in alerts if each.labels["alertname"] == "KafkaCommittedDataLoss"]
    start, end = loss.evidence["proven"]
    (lost,) = figure_of(pages).all("rect", class_="lost")
    assert (lost.attributes["data-start"], lost.attributes["data-end"]) == (str(start), str(end))
    text = page(pages, "/partition", **OF_TRACE).one("main").text
    assert f"[{start}, {end}) offsets {start} to {end - 1}, {end - start} records" in text
    assert "Records lost committed records are proven lost" in text


def test_after_the_old_leader_returned_both_logs_have_the_same_epochs() -> None:
    pages, view, _ = replay("unclean")
    figure = figure_of(pages)
    assert epochs_of(figure, 1) == epochs_of(figure, 2) == [("0", "0", "5"), ("2", "5", "9")]
    assert view.in_sync_replicas == [1, 2]


@pytest.mark.parametrize("name", ["unclean", "kip101_modern", "loss_0102", "sigstop_follower"])
def test_the_end_of_every_recording_can_be_shown(name: str) -> None:
    pages, view, _ = replay(name)
    for path, parameters in (
        ("/", {}),
        ("/partition", OF_TRACE),
        ("/brokers", {}),
        ("/alerts", {}),
        ("/alerts", {"status": "past"}),
    ):
        assert page(pages, path, **parameters).one("h1").text
    bars = figure_of(pages).all("g", class_="replica")
    brokers = {bar.attributes["data-broker"] for bar in bars}
    assert brokers == {str(replica.broker) for replica in view.replicas}

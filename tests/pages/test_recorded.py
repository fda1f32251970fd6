"""Recorded faults of real brokers, through the reducer onto the page."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.pages.make import STALE_SECONDS
from tests.pages.markup import Element, page
from tests.verbs.recordings import trace
from tidemark.core.records import Alert, View, decode_record
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import Fold
from tidemark.reduce.group_state import GroupState
from tidemark.reduce.rows import RawRecord
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages.routes import Pages

OF_TRACE: dict[str, object] = {"cluster": "trace", "topic": "trace", "partition": 0}


class Played(NamedTuple):
    pages: Pages
    view: View
    alerts: list[Alert]


def play(name: str, until: str | None = None) -> Played:
    """The pages after a whole recording, or at the first view after an alert of that name."""
    fold, table, alerts, view = Fold(GroupState(), Detection(), 0, 1), Table(), [], None
    for number, line in enumerate(trace(name)):
        fold.record(RawRecord(0, number, 0.0, line))
        rows, fold.rows = fold.rows, []
        for row in rows:
            assert row.value is not None
            record = decode_record(row.value)
            if isinstance(record, Alert):
                alerts.append(record)
            elif isinstance(record, View):
                table.apply(row.key.decode(), record, row.value)
                view = record if record.scope == "partition" else view
        if until is not None and any(alert.labels["alertname"] == until for alert in alerts):
            break
    assert view is not None
    pages = Pages(table, STALE_SECONDS, list, clock=lambda: max(table.newest.values()) + 1)
    for alert in alerts:
        pages.history.take(alert)
    return Played(pages, view, alerts)


def figure_of(root: Element) -> Element:
    return root.one("svg", id="log-figure")


def epochs_of(figure: Element, broker: int) -> list[tuple[str, str, str]]:
    bars = figure.one("g", **{"data-broker": str(broker)}).all("rect", class_="segment")
    return [
        (bar.attributes["data-epoch"], bar.attributes["data-start"], bar.attributes["data-end"])
        for bar in bars
    ]


def test_an_unclean_election_shows_what_is_lost_when_it_is_proven() -> None:
    played = play("unclean", until="KafkaCommittedDataLoss")
    root = page(played.pages, "/partition", **OF_TRACE)
    (alert,) = [
        each for each in played.alerts if each.labels["alertname"] == "KafkaCommittedDataLoss"
    ]
    start, end = alert.evidence["proven"]
    (lost,) = figure_of(root).all("rect", class_="lost")
    assert (lost.attributes["data-start"], lost.attributes["data-end"]) == (str(start), str(end))
    assert (
        f"[{start}, {end}) offsets {start} to {end - 1}, {end - start} records"
        in root.one("main").text
    )
    assert "Records lost" in root.one("ul", class_="states").text


def test_after_the_old_leader_came_back_both_logs_hold_the_same_epochs() -> None:
    played = play("unclean")
    figure = figure_of(page(played.pages, "/partition", **OF_TRACE))
    assert epochs_of(figure, 1) == epochs_of(figure, 2) == [("0", "0", "5"), ("2", "5", "9")]
    assert played.view.in_sync_replicas == [1, 2]


@pytest.mark.parametrize("name", ["unclean", "kip101_modern", "loss_0102", "sigstop_follower"])
def test_every_moment_of_a_recording_can_be_shown(name: str) -> None:
    played = play(name)
    for path, parameters in (
        ("/", {}),
        ("/partition", OF_TRACE),
        ("/brokers", {}),
        ("/alerts", {}),
        ("/alerts", {"status": "past"}),
    ):
        assert page(played.pages, path, **parameters).one("h1").text
    drawn = figure_of(page(played.pages, "/partition", **OF_TRACE))
    shown = {group.attributes["data-broker"] for group in drawn.all("g", class_="replica")}
    assert shown == {str(replica.broker) for replica in played.view.replicas}

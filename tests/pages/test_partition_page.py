from __future__ import annotations

import pytest

from tests.export.make import NOW, cluster_view
from tests.pages.make import healthy_view, site, table
from tests.pages.markup import Element, items, page
from tests.pages.test_markup import PAYMENTS
from tidemark.core.records import AddingView, ReplicaView, View


def page_of(view: View, **window: int) -> Element:
    place = {"cluster": "east", "topic": view.topic, "partition": view.partition}
    return page(site(table([view])), "/partition", **place, **window)


def figures_of(root: Element) -> dict[str, str]:
    figures = root.one("dl", class_="figures").all("div")
    return {each.one("dt").text: each.one("dd").text for each in figures}


def test_bars_have_the_offsets_of_the_api() -> None:
    (item,) = items(site(), "partitions", topic="payments", partition=3)["items"]
    figure = page(site(), "/partition", **PAYMENTS).one("svg", id="log-figure")
    for replica in item["view"]["replicas"]:
        group = figure.one("g", **{"data-broker": str(replica["broker"])})
        log_end, high_watermark = str(replica["log_end_offset"]), str(replica["high_watermark"])
        assert group.one("svg", class_="leo").attributes["data-offset"] == log_end
        assert group.one("svg", class_="hw").attributes["data-offset"] == high_watermark
        assert group.all("rect", class_="segment")[-1].attributes["data-end"] == log_end
    committed = figure.one("line", id="tidemark").attributes["data-offset"]
    assert committed == str(item["view"]["high_watermark"])
    assert figure.one("rect", class_="lost").attributes["data-start"] == "1000240"


def test_the_tables_list_the_drawn_values_and_a_divergence_is_named() -> None:
    root = page(site(), "/partition", **PAYMENTS)
    rows = [
        [cell.text for cell in row.children if isinstance(cell, Element)]
        for row in root.one("table", id="epochs").one("tbody").all("tr")
    ]
    listed = [
        ["2", "7", "1000100", "1000271", "171", "its own log"],
        ["1", "8", "1000300", "1000312", "12", "the leader's log"],
        ["3", "unknown", "unknown", "1000180", "unknown", "unknown"],
        ["proven lost", "–", "1000240", "1000262", "22", "an alert's evidence"],
    ]
    assert [row for row in listed if row not in rows] == []
    replicas = {
        row.one("th").text: row.text
        for row in root.one("table", id="replicas").one("tbody").all("tr")
    }
    assert replicas["3"].startswith(
        "3 follower ! no unknown 1000150 1000180 unknown unknown unknown unknown ! timed out"
    )
    assert "Broker 2 diverges from the leader at offset 1000240" in root.one("main").text
    changes = [row.text for row in root.one("table", id="isr-changes").one("tbody").all("tr")]
    assert changes[0] == "2027-01-15 07:59:00 UTC1 min 2 s ago121"


def test_a_partition_that_was_not_seen() -> None:
    root = page_of(healthy_view("orders", 2, missed_passes=4, leaderless=True))
    assert root.one("ul", class_="states").text == (
        "? Not seen the last passes missed it, or none has read its offsets: neither healthy nor "
        "lost"
    )
    assert figures_of(root)["Seen"] == "not nowmissed by 4 passes"
    assert "the data below is old" in root.one("main").one("p", class_="notice").text
    assert not page_of(healthy_view("orders", 0)).one("main").all("p", class_="notice")


def test_an_unknown_lag_does_not_count_as_0() -> None:
    one = healthy_view("orders", 0)
    assert figures_of(page_of(one))["Highest lag"] == "0"
    one.replicas[2] = ReplicaView(broker=3, in_sync=True, error="timed_out")
    assert figures_of(page_of(one))["Highest lag"] == "01 unknown"


def test_a_partition_without_followers_has_no_lag() -> None:
    one = healthy_view("orders", 0, assigned=[1], in_sync_replicas=[1])
    one.replicas = one.replicas[:1]
    assert figures_of(page_of(one))["Highest lag"] == "–"
    pages = site(table([one, cluster_view(broker_outcomes={"1": "ok"})]))
    for path in ("/", "/topics", "/partitions", "/brokers"):
        assert not page(pages, path).one("main").all("span", class_="unknown-value"), path


def test_without_a_known_leader_no_replica_is_a_follower() -> None:
    root = page_of(healthy_view("orders", 0, leader=None))
    (row,) = root.one("table", id="replicas").all("tr", **{"data-key": "1"})
    assert row.all("td")[0].text == "unknown"
    assert root.one("ul", class_="states").text == (
        "? Unknown no broker reports its leader or its in-sync replicas"
    )


def test_a_partition_without_any_data_has_no_tables() -> None:
    bare = View(
        scope="partition",
        kafka_cluster="east",
        at=NOW,
        pass_number=1,
        collector="c",
        topic="new",
        partition=0,
    )
    root = page_of(bare)
    assert root.all("table") == []
    assert figures_of(root)["In sync"] == "unknownof unknown, min unknown"


def test_unknown_figures_are_shown_as_unknown() -> None:
    root = page(site(), "/partition", cluster="east", topic="audit-log", partition=0)
    assert list(figures_of(root).values())[3:7] == ["unknown"] * 4
    row = next(r for r in page(site(), "/topics").all("tr") if "audit-log" in r.text)
    assert row.text.count("unknown") >= 2


def test_large_offsets_keep_every_digit() -> None:
    first = 2**60 + 1
    offsets = {"high_watermark": first + 900, "log_end_offset": first + 1_001}
    one = healthy_view("orders", 0, uncommitted_records=2**53 + 1, **offsets)
    for replica in one.replicas:
        replica.log_start_offset = first
        replica.high_watermark, replica.log_end_offset = offsets.values()
    root = page_of(one, **{"from": first, "to": first + 1_001})
    text = root.one("main").text
    assert f"Offsets {first} to {first + 1001}" in text and "9,007,199,254,740,993" in text
    zoom_in = next(a for a in root.all("a") if a.text == "Zoom in").attributes["href"]
    assert f"from={first + 250}&to={first + 751}" in zoom_in
    assert page_of(one).all("line", id="tidemark")


@pytest.mark.parametrize(
    ("window", "links"),
    [
        ({}, set()),
        ({"from": 0, "to": 50}, {"Later"}),
        ({"from": 50, "to": 100}, {"Earlier"}),
        ({"from": 20, "to": 70}, {"Earlier", "Later"}),
    ],
)
def test_earlier_and_later_are_offered_where_records_are(
    window: dict[str, int], links: set[str]
) -> None:
    root = page_of(healthy_view("orders", 0), **window)
    others = {"Zoom in", "Whole logs", "Differences"}
    assert {a.text for a in root.one("p", class_="scale").all("a")} - others == links


def test_a_reassignment_shows_what_is_left_and_a_range() -> None:
    adding = [
        AddingView(
            broker=4,
            remaining_records=1200,
            remaining_bytes=2048,
            earliest_ms=61_000.0,
            latest_ms=125_000.0,
        ),
        AddingView(broker=5, remaining_records=7, earliest_ms=1500.0),
        AddingView(broker=6),
    ]
    view = healthy_view("orders", 1, adding=[4, 5, 6], adding_progress=adding)
    rows = page_of(view).one("table", id="adding").one("tbody").all("tr")
    assert [row.text for row in rows] == [
        "4 1,200 2.0 KiB 1 min 1 s to 2 min 5 s",
        "5 7 unknown 1.5 s or more",
        "6 unknown unknown unknown",
    ]
    pages = site(table([view, healthy_view("orders", 2), cluster_view()]))
    listed = items(pages, "partitions", state="reassigning")["items"]
    assert [each["partition"] for each in listed] == [1]
    clusters = page(pages, "/").one("main").text
    assert "east: 1 partition" in clusters
    assert "to copy" not in clusters, "unknown of broker 6"
    view.adding, view.adding_progress = [4], adding[:1]
    clusters = page(site(table([view, cluster_view()])), "/").one("main").text
    assert "1,200 records (2.0 KiB) to copy, done within 2 min 5 s" in clusters

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.export.make import NOW, alert, broker_view, cluster_view
from tests.pages.make import healthy_view, opened, site, table
from tests.pages.markup import Element, items, page, parse
from tests.pages.test_markup import PAYMENTS
from tidemark.assess.risky_configuration import MEANINGS
from tidemark.core.broker_report import BrokerConfiguration, LogDirectory
from tidemark.core.records import View
from tidemark_exporters.pages.alerts import AlertHistory
from tidemark_exporters.pages.responses import Pages

LOSS = (
    "[1000240, 1000262) offsets 1000240 to 1000261, 22 records",
    "after 2027-01-15 07:58:50 UTC and by 2027-01-15 07:58:56 UTC",
)


@pytest.mark.parametrize(
    ("path", "parameters", "texts"),
    [
        ("/", {}, LOSS),
        ("/partition", PAYMENTS, LOSS),
        ("/alerts", {}, LOSS),
        ("/alerts", {"status": "past"}, ("offsets 41 to 43, 3 records", "ended: acked")),
    ],
)
def test_a_loss_is_spelled_out(
    path: str, parameters: dict[str, object], texts: tuple[str, ...]
) -> None:
    main = page(site(), path, **parameters).one("main").text
    assert [text for text in texts if text not in main] == []


def test_past_alerts_that_are_still_loading_are_not_none() -> None:
    pages = site()
    for history, words in ((pages.history, "None kept."), (AlertHistory(), "Still loading.")):
        pages.history = history
        for path, of in (
            ("/topic", {"topic": "audit-log"}),
            ("/partition", {"topic": "audit-log", "partition": 0}),
            ("/broker", {"broker": 1}),
        ):
            assert words in page(pages, path, cluster="east", **of).one("main").text
    assert items(pages, "alerts", status="past")["waiting"] == ["past alerts"]
    assert items(pages, "alerts")["waiting"] == []


def test_all_alerts_are_one_link_away() -> None:
    many = [
        opened(alert("KafkaFollowerLag", topic="orders", partition="0", broker=str(n)))
        for n in range(23)
    ]
    pages = site(table([healthy_view("orders", 0, alerts=many)]))
    root = page(pages, "/topic", cluster="east", topic="orders")
    assert len(root.all("article", class_="alert")) == 20 + 1
    links = {a.text: a.attributes["href"] for a in root.all("a")}
    assert links["All 23"] == "alerts?cluster=east&topic=orders"
    total = page(pages, "/alerts", cluster="east", topic="orders").one("p", class_="total")
    assert total.text == "23 open alerts with topic orders"
    of_broker = page(site(), "/broker", cluster="east", broker=1).all("a")
    past = [a.attributes["href"] for a in of_broker if "status=past" in a.attributes["href"]]
    assert any("broker=1" in href for href in past)


def test_the_form_keeps_the_filters_of_a_link() -> None:
    root = page(site(), "/alerts", status="past", topic="payments", partition=3)
    assert "1 past alert with topic payments, partition 3;" in root.one("p", class_="total").text
    fields = {
        each.attributes["name"]: each.attributes["value"]
        for each in root.one("form").all("input", type="hidden")
    }
    assert fields == {"status": "past", "topic": "payments", "partition": "3"}


def test_a_page_beyond_the_last_links_to_the_last() -> None:
    root = page(site(), "/partitions", cluster="east", limit=4, page=99)
    assert root.one("p", class_="empty").text == "There are no more."
    assert "page=3" in root.one("a", rel="prev").attributes["href"]


def test_the_server_filters_and_pages() -> None:
    pages = site(table([healthy_view(f"topic-{number % 7}", number) for number in range(230)]))
    root = page(pages, "/partitions", q="TOPIC-3", limit=20)
    first = {each.text for each in root.all("tbody")[0].all("th")}
    following = root.one("a", rel="next").attributes["href"]
    assert following == "partitions?q=TOPIC-3&limit=20&page=2"
    next_page = parse(pages.answer("/partitions", following.partition("?")[2]).body.decode())
    second = {each.text for each in next_page.all("tbody")[0].all("th")}
    assert (len(first), len(second), first & second) == (20, 13, set())
    assert root.one("input", name="q").attributes["value"] == "TOPIC-3"


def test_a_cluster_without_any_data_is_not_healthy() -> None:
    pages = site(table([cluster_view("north", broker_outcomes={"1": "refused", "2": "timed_out"})]))
    main = page(pages, "/").one("main")
    assert "Healthy" not in main.text and "Unknown" in main.one("tr", **{"data-key": "north"}).text
    assert "No partition is known yet." in main.text
    assert "Safe" not in page(pages, "/brokers").one("tbody").text


def test_a_fleet_is_listed_worst_first_with_a_page_for_each_cluster() -> None:
    """A cluster that no pass has named is there, and no better than one that is not seen."""
    unseen: list[View] = [
        cluster_view("no-partition"),
        cluster_view("silent", at=NOW - 100),
        healthy_view("orders", 0, kafka_cluster="silent", at=NOW - 100),
    ]
    bad: dict[str, Any] = {
        "warned": {"alerts": [opened(alert("KafkaFollowerLag", cluster="warned"))]},
        "alerted": {"alerts": [opened(alert("KafkaX", severity="critical", cluster="alerted"))]},
        "shrunk": {"in_sync_replicas": [1, 2], "unclean_leader_election": True},
        "offline": {"leaderless": True, "leader": None},
        "calm": {},
    }
    made = [healthy_view("orders", 0, kafka_cluster=name, **bad[name]) for name in bad]
    filled = table([*unseen, *made, healthy_view("b", 1, kafka_cluster="calm")])
    pages = Pages(filled, 30.0, list, lambda: NOW, configured=["calm", "never-seen"])
    rows = page(pages, "/").all("tbody")[0].all("tr")
    expected = ["offline", "alerted", "never-seen", "no-partition", "silent", "shrunk", "warned"]
    assert [row.attributes["data-key"] for row in rows] == [*expected, "calm"]
    assert "? Stale ? Unknown 0 unknown unknown" in rows[2].text
    assert rows[6].all("td")[1].text.split() == ["1", "warning"]
    risks = page(pages, "/").one("section", **{"aria-labelledby": "risks"}).all("tr")[1:]
    assert "1 orders-0 shrunk 6" in risks[0].text
    link = rows[0].one("th").one("a").attributes["href"]
    shown = page(pages, "/", **dict(parse_qsl(link.partition("?")[2])))
    texts = [row.text.split()[0] for each in shown.all("tbody") for row in each.all("tr")]
    assert (shown.one("h1").text, texts[:2]) == ("offline", ["offline", "orders-0"])
    assert "never-seen is stale. No pass of it was evaluated yet." in shown.text


def test_fenced_and_restarting_brokers() -> None:
    made = [
        broker_view(1, outcome="ok", fenced=True),
        broker_view(2, outcome="refused", in_grace_until=NOW + 500),
        broker_view(3, outcome="refused", in_grace_until=NOW),
    ]
    rows = page(site(table([healthy_view("orders", 0), *made])), "/brokers").one("tbody").all("tr")
    assert [row.all("td")[0].text for row in rows] == ["! Fenced", "! Restarting", "✕ Refused"]


def test_risky_configuration_is_one_list_with_links() -> None:
    known: dict[str, Any] = {"throttled_replicas": [], "in_sync_on_one_rack": False}
    views = [
        healthy_view("orders", n, unclean_leader_election=n < 5, **known) for n in range(6)
    ] + [healthy_view("old", 0, effective_min_in_sync_replicas=1, **known)]
    configuration = BrokerConfiguration(replication_throttles={"leader": 9})
    made = [cluster_view(reassigning=0), broker_view(2, outcome="ok", configuration=configuration)]
    pages = site(table([*views, *made]))
    section = page(pages, "/").one("section", **{"aria-labelledby": "risks"})
    unclean = MEANINGS["unclean_leader_election"].text
    rows = [row.text for row in section.one("tbody").all("tr")]
    assert rows == [
        f"Min ISR 1{MEANINGS['min_isr_1'].text} 1 old-0 0",
        f"Unclean elections on{unclean} 5 orders-0, orders-1, orders-2, … 1",
        f"Throttle left behind{MEANINGS['leftover_throttle'].text} 0 2 0",
    ]
    shown = page(pages, "/partitions", cluster="east", risk="unclean_leader_election")
    assert len(shown.one("tbody").all("tr")) == 5


def broker_page(**report: Any) -> Element:
    made = broker_view(1, outcome="ok", **report)
    return page(site(table([healthy_view("orders", 0), made])), "/broker", cluster="east", broker=1)


def test_a_broker_page_shows_what_the_broker_reports_of_itself() -> None:
    root = broker_page(
        rack="a",
        log_directories=[
            LogDirectory(path="/a<b>", total_bytes=2**40, usable_bytes=3 * 2**29),
            LogDirectory(path="/b", cordoned=True),
            LogDirectory(path="/c", error="KAFKA_STORAGE_ERROR"),
        ],
        configuration=BrokerConfiguration(
            replica_lag_time_max_ms=30_000,
            replica_selector_class="RackAware",
            replication_throttles={"leader": 1_048_576},
        ),
    )
    rows = root.one("table", id="log-directories").one("tbody").all("tr")
    assert [row.text for row in rows] == [
        "/a<b> ✓ online 1.5 GiB 1.0 TiB",
        "/b ✓ onlinecordoned: takes no new replicas unknown unknown",
        "/c ! KAFKA_STORAGE_ERROR unknown unknown",
    ]
    text = root.one("section", **{"aria-labelledby": "configuration"}).text
    for shown in ("yesRackAware", "30.0 s", "leader 1.0 MiB/s", "Default min ISRunknown"):
        assert shown in text, text


def test_a_broker_that_may_not_be_asked_is_unknown() -> None:
    text = broker_page().one("main").text
    assert "DescribeLogDirs needs the right Describe on the cluster" in text
    assert "DescribeConfigs needs the right DescribeConfigs on the cluster" in text


def test_a_broker_that_only_leads_has_no_lag() -> None:
    _, _, west = page(site(), "/brokers").all("table")
    assert [row.all("td")[-1].text for row in west.one("tbody").all("tr")] == ["–", "0", "0"]


def test_a_stop_is_only_called_safe_when_it_is_known_to_be() -> None:
    east, _, west = page(site(), "/brokers").all("table")
    assert "Not safe" in east.one("tbody").all("tr")[0].text
    assert "✓ Safe" in west.one("tbody").all("tr")[0].text
    for pages in (site(now=NOW + 60), site(waiting=["partition views"])):
        text = page(pages, "/brokers").one("main").text
        assert "✓ Safe" not in text
        assert "No current data" in text


def test_an_empty_exporter_names_the_next_step() -> None:
    pages = site(table([]))
    assert "Start tidemark collect and tidemark stream" in page(pages, "/").one("main").text
    for path in ("/topics", "/partitions", "/brokers", "/alerts"):
        assert page(pages, path).all("p", class_="empty")

"""The pages as they leave the exporter: the same figures as the API, escaped, and sound for a keyboard and a reader."""

from __future__ import annotations

import gzip
import itertools
import re
from collections import Counter
from typing import Any

import pytest

from tests.export.make import NOW, alert, cluster_view
from tests.pages.make import HOSTILE, TRICKY, healthy_view, opened, site, table
from tests.pages.markup import Element, ask, items, page, parse
from tidemark.core.records import ReplicaView, View
from tidemark_exporters.pages.history import History
from tidemark_exporters.pages.html import PAGES
from tidemark_exporters.pages.routes import POLICY, static_file, static_version
from tidemark_exporters.pages.text import visible

PAYMENTS: dict[str, object] = {"cluster": "east", "topic": "payments", "partition": 3}
HOSTILES: dict[str, object] = {"cluster": "east", "topic": HOSTILE, "partition": 0}
EVERY: list[tuple[str, dict[str, object]]] = [
    ("/", {}),
    ("/topics", {}),
    ("/topics", {"q": HOSTILE}),
    ("/topic", {"cluster": "east", "topic": "payments"}),
    ("/topic", {"cluster": "east", "topic": HOSTILE}),
    ("/topic", {"cluster": "east", "topic": TRICKY}),
    ("/partitions", {}),
    ("/partitions", {"state": "unhealthy", "limit": 2, "page": 2}),
    ("/partition", PAYMENTS),
    ("/partition", HOSTILES),
    ("/partition", {"cluster": "east", "topic": TRICKY, "partition": 0}),
    ("/partition", {"cluster": "east", "topic": "audit-log", "partition": 0}),
    ("/partition", {**PAYMENTS, "from": 0, "to": 2_000_000}),
    ("/brokers", {}),
    ("/broker", {"cluster": "east", "broker": 1}),
    ("/broker", {"cluster": "east", "broker": 3}),
    ("/alerts", {}),
    ("/alerts", {"status": "past"}),
    ("/alerts", {"q": HOSTILE}),
]
every = pytest.mark.parametrize(("path", "parameters"), EVERY, ids=range(len(EVERY)))


@every
def test_every_page_is_sound(path: str, parameters: dict[str, object]) -> None:
    root = page(site(), path, **parameters)
    ids = Counter(each.attributes["id"] for each in root.walk() if "id" in each.attributes)
    assert [name for name, times in ids.items() if times > 1] == []
    for each in root.walk():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(each.attributes.get(name, "").split()) <= ids.keys(), each
        assert not [name for name in each.attributes if name.startswith("on") or name == "style"], (
            each
        )
    assert root.one("html").attributes["lang"] == "en"
    assert len(root.all("h1")) == len(root.all("main")) == 1
    levels = [int(each.tag[1]) for each in root.walk() if re.fullmatch("h[1-6]", each.tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    for each in root.all("table"):
        assert each.one("caption").text
        assert all(cell.attributes.get("scope") in {"col", "row"} for cell in each.all("th"))
    for each in root.all("svg", role="img"):
        assert each.one("title").text and each.one("desc").text
    for each in [*root.all("input"), *root.all("select")]:
        assert each.attributes.get("type") == "hidden" or (
            each.parent is not None and each.parent.tag == "label"
        )
    assert root.one("a", class_="skip").attributes["href"] == "#main"


@every
def test_no_name_off_a_topic_becomes_markup(path: str, parameters: dict[str, object]) -> None:
    root = page(site(), path, **parameters)
    assert root.all("img") == []
    (script,) = root.all("script")
    assert script.attributes["src"] == f"static/tidemark.js?v={static_version()}"
    assert all(
        not each.attributes["href"].lower().startswith(("javascript:", "data:"))
        for each in root.all("a")
    )


def test_hostile_names_stand_as_text_where_they_belong() -> None:
    root = page(site(), "/partition", **HOSTILES)
    assert root.one("h1").text == f"{HOSTILE}-0"
    (article,) = root.all("article", class_="alert")
    assert article.one("h3").text.count(HOSTILE) == 2
    assert root.all("title")[0].text == f"{HOSTILE}-0 · Tidemark"
    assert page(site(), "/topic", cluster="east", topic=TRICKY).one("h1").text == " ".join(
        visible(TRICKY).split()
    )
    assert HOSTILE in page(site(), "/topics", q=HOSTILE).one("input", name="q").attributes["value"]


def test_bars_carry_the_offsets_of_the_api() -> None:
    (item,) = items(site(), "partitions", topic="payments", partition=3)["items"]
    figure = page(site(), "/partition", **PAYMENTS).one("svg", id="log-figure")
    for replica in item["view"]["replicas"]:
        group = figure.one("g", **{"data-broker": str(replica["broker"])})
        assert group.one("svg", class_="leo").attributes["data-offset"] == str(
            replica["log_end_offset"]
        )
        assert group.one("svg", class_="hw").attributes["data-offset"] == str(
            replica["high_watermark"]
        )
        assert group.all("rect", class_="segment")[-1].attributes["data-end"] == str(
            replica["log_end_offset"]
        )
    assert figure.one("line", id="tidemark").attributes["data-offset"] == str(
        item["view"]["high_watermark"]
    )
    assert figure.one("rect", class_="lost").attributes["data-start"] == "1000240"


def test_the_tables_hold_what_is_drawn() -> None:
    root = page(site(), "/partition", **PAYMENTS)
    rows = [
        [cell.text for cell in row.children if isinstance(cell, Element)]
        for row in root.one("table", id="epochs").one("tbody").all("tr")
    ]
    assert ["2", "7", "1000100", "1000271", "171", "its own log"] in rows
    assert ["1", "8", "1000300", "1000312", "12", "the leader's log"] in rows
    assert ["3", "unknown", "unknown", "1000180", "unknown", "not known"] in rows
    assert ["proven lost", "–", "1000240", "1000262", "22", "an alert's evidence"] in rows
    replicas = {
        row.one("th").text: row.text
        for row in root.one("table", id="replicas").one("tbody").all("tr")
    }
    assert replicas["3"].startswith(
        "3 follower ! no unknown 1000150 1000180 unknown unknown unknown ! timed out"
    )
    changes = [row.text for row in root.one("table", id="isr-changes").one("tbody").all("tr")]
    assert changes[0] == "2027-01-15 07:59:00 UTC1 min 2 s ago121"


def test_a_loss_is_readable_where_it_is_shown() -> None:
    for path, parameters in (("/", {}), ("/partition", PAYMENTS), ("/alerts", {})):
        text = page(site(), path, **parameters).one("main").text
        assert "[1000240, 1000262) offsets 1000240 to 1000261, 22 records" in text
        assert "after 2027-01-15 07:58:50 UTC and by 2027-01-15 07:58:56 UTC" in text
    past = page(site(), "/alerts", status="past").one("main").text
    assert "offsets 41 to 43, 3 records" in past
    assert "ended: acked" in past


def test_divergence_is_told_in_words() -> None:
    assert (
        "Broker 2 parts from the leader at offset 1000240"
        in page(site(), "/partition", **PAYMENTS).one("main").text
    )


def test_a_partition_that_was_not_seen_says_so() -> None:
    root = page(site(), "/partition", cluster="east", topic="orders", partition=2)
    assert (
        root.one("ul", class_="states").text
        == "? Not seen the last passes did not see it: neither healthy nor lost"
    )
    assert "Seen not now 4 passes missed it".replace(" ", "") in root.one(
        "dl", class_="figures"
    ).text.replace(" ", "")
    assert "the last that was known, not what is" in root.one("main").one("p", class_="notice").text
    assert (
        not page(site(), "/partition", cluster="east", topic="orders", partition=0)
        .one("main")
        .all("p", class_="notice")
    )


def figures_of(view: View) -> dict[str, str]:
    root = page(
        site(table([view])),
        "/partition",
        cluster="east",
        topic=view.topic,
        partition=view.partition,
    )
    return {
        div.one("dt").text: div.one("dd").text
        for div in root.one("dl", class_="figures").all("div")
    }


def test_a_follower_that_nobody_measured_is_not_counted_as_0() -> None:
    one = healthy_view("orders", 0)
    assert figures_of(one)["Furthest behind"] == "0"
    one.replicas[2] = ReplicaView(broker=3, in_sync=True, error="timed_out")
    assert figures_of(one)["Furthest behind"] == "01 unknown"


def test_a_partition_without_followers_has_no_lag_and_none_unknown() -> None:
    one = healthy_view("orders", 0, assigned=[1], in_sync_replicas=[1])
    one.replicas = one.replicas[:1]
    assert figures_of(one)["Furthest behind"] == "–"
    pages = site(table([one, cluster_view(broker_outcomes={"1": "ok"})]))
    for path in ("/", "/topics", "/partitions", "/brokers"):
        assert not page(pages, path).one("main").all("span", class_="unk"), path


def test_where_nobody_told_who_leads_nobody_is_called_a_follower() -> None:
    root = page(
        site(table([healthy_view("orders", 0, leader=None)])),
        "/partition",
        cluster="east",
        topic="orders",
        partition=0,
    )
    assert [
        row.all("td")[0].text
        for row in root.one("table", id="replicas").all("tr", **{"data-key": "1"})
    ] == ["unknown"]
    assert (
        root.one("ul", class_="states").text
        == "? Unknown no broker told its leader or its in-sync replicas"
    )


def test_a_partition_of_which_nothing_is_known_has_no_empty_table() -> None:
    bare = View(
        scope="partition",
        kafka_cluster="east",
        at=NOW,
        pass_number=1,
        collector="c",
        topic="new",
        partition=0,
    )
    root = page(site(table([bare])), "/partition", cluster="east", topic="new", partition=0)
    assert root.all("table") == []
    assert "unknownof unknown, min unknown" in root.one("dl", class_="figures").text


def test_large_offsets_keep_every_digit() -> None:
    first = 2**60 + 1
    one = healthy_view(
        "orders",
        0,
        high_watermark=first + 900,
        log_end_offset=first + 1_001,
        uncommitted_records=2**53 + 1,
    )
    for replica in one.replicas:
        replica.log_start_offset, replica.high_watermark, replica.log_end_offset = (
            first,
            first + 900,
            first + 1_001,
        )
    root = page(
        site(table([one])),
        "/partition",
        cluster="east",
        topic="orders",
        partition=0,
        **{"from": first, "to": first + 1_001},
    )
    text = root.one("main").text
    assert f"Offsets {first} to {first + 1001}" in text and "9,007,199,254,740,993" in text
    closer = next(a for a in root.all("a") if a.text == "Closer").attributes["href"]
    assert f"from={first + 250}&to={first + 751}" in closer
    assert page(site(table([one])), "/partition", cluster="east", topic="orders", partition=0).all(
        "line", id="tidemark"
    )


def test_earlier_and_later_lead_to_where_something_is() -> None:
    pages = site(table([healthy_view("orders", 0)]))

    def links(**window: int) -> set[str]:
        root = page(pages, "/partition", cluster="east", topic="orders", partition=0, **window)
        return {a.text for a in root.one("p", class_="scale").all("a")} - {
            "Closer",
            "Whole logs",
            "What differs",
        }

    assert links() == set()
    assert links(**{"from": 0, "to": 50}) == {"Later"}
    assert links(**{"from": 50, "to": 100}) == {"Earlier"}
    assert links(**{"from": 20, "to": 70}) == {"Earlier", "Later"}


def test_past_alerts_that_are_still_being_read_are_not_called_none() -> None:
    pages = site()
    for history, words in ((pages.history, "None kept."), (History(), "Still being read.")):
        pages.history = history
        for path, of in (
            ("/topic", {"topic": "audit-log"}),
            ("/partition", {"topic": "audit-log", "partition": 0}),
            ("/broker", {"broker": 1}),
        ):
            assert words in page(pages, path, cluster="east", **of).one("main").text
    assert items(pages, "alerts", status="past")["waiting"] == ["past alerts"]
    assert items(pages, "alerts")["waiting"] == []


def test_more_alerts_than_are_shown_are_a_link_away() -> None:
    many = [
        opened(alert("KafkaFollowerLag", topic="orders", partition="0", broker=str(n)))
        for n in range(23)
    ]
    pages = site(table([healthy_view("orders", 0, alerts=many)]))
    root = page(pages, "/topic", cluster="east", topic="orders")
    assert len(root.all("article", class_="alert")) == 20 + 1
    assert ("All 23", "alerts?cluster=east&topic=orders") in [
        (a.text, a.attributes["href"]) for a in root.all("a")
    ]
    assert (
        page(pages, "/alerts", cluster="east", topic="orders").one("p", class_="total").text
        == "23 open alerts with topic orders"
    )
    assert any(
        "status=past" in a.attributes["href"] and "broker=1" in a.attributes["href"]
        for a in page(site(), "/broker", cluster="east", broker=1).all("a")
    )


def test_the_form_keeps_what_a_link_asked_for() -> None:
    root = page(site(), "/alerts", status="past", topic="payments", partition=3)
    assert "1 past alert with topic payments, partition 3;" in root.one("p", class_="total").text
    fields = {
        each.attributes["name"]: each.attributes["value"]
        for each in root.one("form").all("input", type="hidden")
    }
    assert fields == {"status": "past", "topic": "payments", "partition": "3"}


def test_a_page_beyond_the_last_leads_back_to_it() -> None:
    root = page(site(), "/partitions", cluster="east", limit=4, page=99)
    assert root.one("p", class_="empty").text == "There are no more."
    assert "page=3" in root.one("a", rel="prev").attributes["href"]


def test_a_cluster_of_which_nothing_is_known_is_not_called_healthy() -> None:
    pages = site(table([cluster_view("north", broker_outcomes={"1": "refused", "2": "timed_out"})]))
    main = page(pages, "/").one("main")
    assert "Healthy" not in main.text and "Unknown" in main.one("tr", **{"data-key": "north"}).text
    assert "No partition is known yet." in main.text
    assert "Safe" not in page(pages, "/brokers").one("tbody").text


def test_a_fenced_and_a_restarting_broker_are_named_so() -> None:
    def broker(number: int, **changes: Any) -> View:
        return View(
            scope="broker",
            kafka_cluster="east",
            broker=number,
            at=NOW,
            pass_number=7,
            collector="c1",
            **changes,
        )

    made = [
        broker(1, outcome="ok", fenced=True),
        broker(2, outcome="refused", in_grace_until=NOW + 500),
        broker(3, outcome="refused", in_grace_until=NOW),
    ]
    rows = page(site(table([healthy_view("orders", 0), *made])), "/brokers").one("tbody").all("tr")
    assert [row.all("td")[0].text for row in rows] == ["! Fenced", "! Restarting", "✕ Refused"]


def test_unknown_is_shown_as_unknown() -> None:
    root = page(site(), "/partition", cluster="east", topic="audit-log", partition=0)
    assert [each.text for each in root.one("dl", class_="figures").all("dd")][3:7] == [
        "unknown"
    ] * 4
    row = next(r for r in page(site(), "/topics").all("tr") if "audit-log" in r.text)
    assert row.text.count("unknown") >= 2


def test_a_stop_is_called_safe_only_where_it_is() -> None:
    east, west = page(site(), "/brokers").all("table")
    assert "Not safe" in east.one("tbody").all("tr")[0].text
    assert "✓ Safe" in west.one("tbody").all("tr")[0].text
    for pages in (site(now=NOW + 60), site(waiting=["partition views"])):
        text = page(pages, "/brokers").one("main").text
        assert "✓ Safe" not in text
        assert "Cannot be said now" in text


def test_catching_up_and_stale_are_said_on_every_page() -> None:
    for path, parameters in EVERY:
        notices = (
            page(site(waiting=["alerts", "partition views"], now=NOW + 90), path, **parameters)
            .one("div", id="notices")
            .text
        )
        # How old the newest view is cannot be said before all were read.
        assert (
            notices
            == "Catching up. Still reading alerts and partition views: what follows is not complete yet."
        )
        assert (
            "east is stale."
            in page(site(now=NOW + 90), path, **parameters).one("div", id="notices").text
        )
        assert page(site(), path, **parameters).one("div", id="notices").text == ""


def test_pages_and_filters_are_the_servers() -> None:
    pages = site(table([healthy_view(f"topic-{number % 7}", number) for number in range(230)]))
    root = page(pages, "/partitions", q="TOPIC-3", limit=20)
    links = root.all("tbody")[0].all("th")
    assert len(links) == 20
    following = root.one("a", rel="next").attributes["href"]
    assert following == "partitions?q=TOPIC-3&limit=20&page=2"
    second = parse(pages.answer("/partitions", following.partition("?")[2]).body.decode())
    assert len(second.all("tbody")[0].all("th")) == 13
    assert not {each.text for each in links} & {
        each.text for each in second.all("tbody")[0].all("th")
    }
    assert root.one("input", name="q").attributes["value"] == "TOPIC-3"


def test_an_empty_exporter_says_what_to_do() -> None:
    pages = site(table([]))
    assert "Start tidemark collect and tidemark stream" in page(pages, "/").one("main").text
    for path in ("/topics", "/partitions", "/brokers", "/alerts"):
        assert page(pages, path).all("p", class_="empty")


@pytest.mark.parametrize(
    ("path", "parameters", "status", "words"),
    [
        ("/nothing", {}, 404, "There is no page `/nothing`."),
        ("/deep/er/still", {}, 404, "There is no page `/deep/er/still`."),
        (
            "/topic",
            {"cluster": "east", "topic": "gone"},
            404,
            "Nothing is known of topic `gone` of cluster `east`: it was deleted, is not watched, or was not seen yet.",
        ),
        ("/topic", {"cluster": "east"}, 400, "Topic is missing."),
        (
            "/partition",
            {**PAYMENTS, "partition": 9},
            404,
            "Nothing is known of partition 9 of topic `payments` of cluster `east`: it was deleted",
        ),
        ("/partition", {**PAYMENTS, "partition": "x"}, 400, "Partition must be a whole number"),
        (
            "/partition",
            {**PAYMENTS, "from": 5},
            400,
            "From and to must be given together, from below to.",
        ),
        (
            "/partition",
            {**PAYMENTS, "from": 5, "to": 5},
            400,
            "From and to must be given together, from below to.",
        ),
        (
            "/broker",
            {"cluster": "east", "broker": 77},
            404,
            "Nothing is known of a broker 77 of cluster `east`: no replica lives on it",
        ),
        ("/partitions", {"state": HOSTILE}, 400, "State must be one of unhealthy, offline, lost"),
        ("/", {"x": 1}, 400, "Unknown parameter `x`; there are: none."),
    ],
)
def test_what_cannot_be_answered_is_told_in_one_line(
    path: str, parameters: dict[str, object], status: int, words: str
) -> None:
    response = ask(site(), path, **parameters)
    root = parse(response.body.decode())
    assert response.status == status
    assert words in root.one("main").text
    assert (
        root.all("link", rel="stylesheet")[0]
        .attributes["href"]
        .startswith("../" * (path.count("/") - 1) + "static/")
    )


def test_an_unknown_name_may_still_come_while_it_catches_up() -> None:
    text = ask(
        site(waiting=["partition views"]), "/topic", cluster="east", topic="gone"
    ).body.decode()
    assert "It may still come" in text


def test_headers() -> None:
    for path, kind in (("/", "text/html; charset=utf-8"), ("/api/v1/topics", "application/json")):
        headers = dict(ask(site(), path).headers)
        assert headers["Content-Type"] == kind
        assert headers["Cache-Control"] == "no-store"
        assert headers["Content-Security-Policy"] == POLICY
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'; ")


def test_large_answers_are_compressed_for_those_who_take_it() -> None:
    plain, packed = site().answer("/partitions", ""), site().answer("/partitions", "", "gzip, br")
    assert dict(packed.headers)["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert "Content-Encoding" not in dict(plain.headers)


@pytest.mark.parametrize("name", ["tidemark.css", "tidemark.js", "icon.svg"])
def test_files_are_kept_by_their_content(name: str) -> None:
    body, tag = static_file(name)
    first = site().answer(f"/static/{name}", "v=x")
    assert (first.status, first.body, dict(first.headers)["ETag"]) == (200, body, tag)
    assert "immutable" in dict(first.headers)["Cache-Control"]
    again = site().answer(f"/static/{name}", "", if_none_match=tag)
    assert (again.status, again.body) == (304, b"")
    assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"")
    assert b"https://" not in body


@pytest.mark.parametrize(
    "name", ["", "../routes.py", "..%2froutes.py", "templates/base.html", "nothing.css"]
)
def test_no_other_file_is_served(name: str) -> None:
    assert site().answer(f"/static/{name}", "").status == 404


def test_each_page_has_its_template() -> None:
    assert {f"/{path}" for path in PAGES} == {path for path, _ in EVERY}


def test_a_broker_that_only_leads_has_no_lag_to_know() -> None:
    _, west = page(site(), "/brokers").all("table")
    assert [row.all("td")[-1].text for row in west.one("tbody").all("tr")] == ["–", "0", "0"]

"""The status page in Chromium: what is really drawn, what really runs, what a keyboard reaches.

Pictures of every page, light and dark, wide and narrow, are left in build/screenshots: look at them after a change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
import requests

from tests.browser.chromium import Chromium, Tab
from tests.conftest import ROOT, need
from tests.export.make import NOW, alert
from tests.pages.make import (
    HOSTILE,
    TRICKY,
    healthy_view,
    key_of,
    lossy_view,
    opened,
    past_alerts,
    table,
)
from tidemark_exporters.export.http import Site, serve
from tidemark_exporters.export.table import Table
from tidemark_exporters.pages.board import Boards
from tidemark_exporters.pages.routes import Pages, Response

pytestmark = pytest.mark.browser

SHOTS = ROOT / "build" / "screenshots"
PARTITION = "/partition?" + urlencode({"cluster": "east", "topic": "payments", "partition": 3})


class Exporter:
    """The exporter's HTTP side over a table of the test, with a switch that makes it fail."""

    def __init__(self) -> None:
        self.broken = False
        self.table = Table()
        self.site = Site(bytes, self._pages(), list)
        self._server = serve(self.site, "127.0.0.1:0")
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def fill(self, filled: Table) -> None:
        """Serves this table from now on; time stands still."""
        self.table, self.broken = filled, False
        self.site.pages = self._pages()
        for each in past_alerts():
            self.site.pages.history.take(each)
        self.site.pages.history.complete = True

    def put(self, made: Any) -> None:
        """A new view, shown at once."""
        self.table.apply(key_of(made), made)
        self.site.pages._boards = Boards(self.table, 30.0, lambda: True, clock=lambda: NOW + 2)

    def get(self, path: str) -> Any:
        return requests.get(self.url + path, timeout=5).json()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _pages(self) -> Pages:
        made = _Breakable(self.table, 30.0, list, clock=lambda: NOW + 2)
        made.exporter = self
        return made


class _Breakable(Pages):
    exporter: Exporter

    def answer(
        self, path: str, query: str, accept_encoding: str = "", if_none_match: str = ""
    ) -> Response:
        if self.exporter.broken and not path.startswith("/static/"):
            return Response(
                HTTPStatus.BAD_GATEWAY,
                [("Content-Type", "text/html")],
                b"<p>a proxy's own words</p>",
            )
        return super().answer(path, query, accept_encoding, if_none_match)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(need("chromium"), tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture(scope="module")
def server() -> Iterator[Exporter]:
    made = Exporter()
    yield made
    made.stop()


@pytest.fixture
def exporter(server: Exporter) -> Exporter:
    server.fill(table())
    return server


def opened_page(chromium: Chromium, exporter: Exporter, path: str, **options: Any) -> Tab:
    tab = chromium.page(**options)
    tab.open(exporter.url + path)
    return tab


# The middle of a thing, as an offset of the scale that the drawing names.
MEASURE = """
(() => {
  const figure = document.getElementById("log-figure");
  const box = figure.getBoundingClientRect();
  const from = Number(figure.dataset.from), to = Number(figure.dataset.to);
  const offset = (x) => from + (to - from) * (x - box.left) / box.width;
  const replicas = {};
  for (const group of figure.querySelectorAll("g.replica")) {
    const bars = [...group.querySelectorAll("rect.segment")].map((rect) => {
      const at = rect.getBoundingClientRect();
      return { from: offset(at.left), to: offset(at.right), start: Number(rect.dataset.start), end: Number(rect.dataset.end), epoch: rect.dataset.epoch, colour: getComputedStyle(rect).fill };
    });
    const place = (name) => {
      const mark = group.querySelector(`svg.${name} .mark`);
      if (!mark) return null;
      const at = mark.getBoundingClientRect();
      return offset(name === "start" ? at.left : name === "leo" ? at.right : (at.left + at.right) / 2);
    };
    replicas[group.dataset.broker] = { bars, hw: place("hw"), leo: place("leo"), start: place("start") };
  }
  const line = document.getElementById("tidemark").getBoundingClientRect();
  const lost = [...figure.querySelectorAll("rect.lost")].map((rect) => { const at = rect.getBoundingClientRect(); return [offset(at.left), offset(at.right)]; });
  return { from, to, pixel: (to - from) / box.width, replicas, tidemark: offset((line.left + line.right) / 2), lost };
})()
"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("window", ["", "&from=0&to=1100000", "&from=1000200&to=1000320"])
def test_bars_are_drawn_where_the_api_says(
    chromium: Chromium, exporter: Exporter, width: int, window: str
) -> None:
    drawn = opened_page(chromium, exporter, PARTITION + window, width=width).run(MEASURE)
    (item,) = exporter.get("/api/v1/partitions?topic=payments&partition=3")["items"]
    # Strokes are two pixels wide.
    near = 2.5 * drawn["pixel"] + 0.5

    def in_sight(offset: int) -> bool:
        return bool(drawn["from"] <= offset <= drawn["to"])

    for replica in item["view"]["replicas"]:
        shown = drawn["replicas"][str(replica["broker"])]
        for mark, field in (
            ("leo", "log_end_offset"),
            ("hw", "high_watermark"),
            ("start", "log_start_offset"),
        ):
            offset = replica.get(field)
            if offset is None or not in_sight(offset):
                assert shown[mark] is None
            else:
                assert shown[mark] == pytest.approx(offset, abs=near), (replica["broker"], mark)
        for bar in shown["bars"]:
            assert bar["from"] == pytest.approx(max(bar["start"], drawn["from"]), abs=near)
            assert bar["to"] == pytest.approx(min(bar["end"], drawn["to"]), abs=near)
        if shown["bars"]:
            assert shown["bars"][-1]["to"] == pytest.approx(
                min(replica["log_end_offset"], drawn["to"]), abs=near
            )
    ends = dict(item["view"]["lineage"])
    for bar in drawn["replicas"]["1"]["bars"][:-1]:
        # What is older than the lineage has no epoch.
        assert bar["end"] == (
            ends[int(bar["epoch"])] if bar["epoch"] else item["view"]["lineage"][0][1]
        )
    assert drawn["tidemark"] == pytest.approx(item["view"]["high_watermark"], abs=near)
    (lost,) = drawn["lost"]
    start, end = item["view"]["alerts"][0]["evidence"]["proven"]
    # However few records: a loss is never too narrow to be seen.
    narrowest = 0.003 * (drawn["to"] - drawn["from"])
    assert lost == pytest.approx([start, max(end, start + narrowest)], abs=near)


def test_an_epoch_has_one_colour_and_its_neighbour_another(
    chromium: Chromium, exporter: Exporter
) -> None:
    for dark in (False, True):
        drawn = opened_page(chromium, exporter, PARTITION, dark=dark).run(MEASURE)
        colours: dict[str, set[str]] = {}
        for replica in drawn["replicas"].values():
            for bar in replica["bars"]:
                colours.setdefault(bar["epoch"], set()).add(bar["colour"])
        assert set(colours) == {"", "6", "7", "8"}
        assert all(len(found) == 1 for found in colours.values())
        assert len(set.union(*colours.values())) == 4


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/topics?" + urlencode({"q": HOSTILE}),
        "/topic?" + urlencode({"cluster": "east", "topic": HOSTILE}),
        "/partition?" + urlencode({"cluster": "east", "topic": HOSTILE, "partition": 0}),
        "/partition?" + urlencode({"cluster": "east", "topic": TRICKY, "partition": 0}),
        "/alerts",
        "/" + HOSTILE.replace("?", ""),
    ],
    ids=range(7),
)
def test_hostile_names_stay_text_and_nothing_runs(
    chromium: Chromium, exporter: Exporter, path: str
) -> None:
    tab = opened_page(chromium, exporter, path)
    assert ("<script>" if "script" in path or "?" not in path else "{{7*7}}") in tab.run(
        "document.body.innerText"
    )
    tab.run("for (const each of document.querySelectorAll('details')) each.open = true")
    assert tab.run("document.title").endswith(" · Tidemark")
    assert (
        tab.run(
            "document.querySelectorAll('main script, main img, main iframe, [onerror], [style]').length"
        )
        == 0
    )
    assert tab.run("[...document.links].filter((a) => a.protocol !== 'http:').length") == 0
    # Nothing was refused by the policy, for nothing was tried.
    assert [text for text in tab.complaints() if "404" not in text] == []
    assert {
        re.sub(r"^(http://[^/]+).*", r"\1", url)
        for url in tab.requested()
        if not url.startswith("about:")
    } == {exporter.url}


def test_a_script_that_did_get_in_would_not_run(chromium: Chromium, exporter: Exporter) -> None:
    """The policy alone holds, were the escaping to fail."""
    tab = opened_page(chromium, exporter, "/")
    tab.run(
        "(() => { const a = document.createElement('div'); a.innerHTML = '<img src=x onerror=\"document.title=1\">'; document.body.append(a);"
        " const s = document.createElement('script'); s.textContent = 'document.title=2'; document.body.append(s); })()"
    )
    tab.wait_until("document.querySelector('body > div > img').complete")
    assert tab.run("document.title") == "Clusters · Tidemark"
    assert any("Content Security Policy" in text for text in tab.complaints())


def test_every_page_works_without_scripts(chromium: Chromium, exporter: Exporter) -> None:
    tab = opened_page(chromium, exporter, "/", scripts=False)
    assert tab.run("document.getElementById('pause').checkVisibility()") is False
    assert "payments-3" in tab.run("document.querySelector('main').innerText")
    follow(tab, "a[href^='partition?']", "payments-0")
    assert tab.run("document.querySelectorAll('#log-figure rect.segment').length") == 3
    tab.open(exporter.url + "/partitions")
    tab.run("document.querySelector('input[name=q]').value = 'orders'")
    tab.run("document.querySelector('select[name=state]').value = 'blind'")
    submit(tab)
    assert tab.run("[...document.querySelectorAll('tbody th')].map((th) => th.innerText)") == [
        "orders-2"
    ]
    tab.open(exporter.url + PARTITION)
    tab.run("document.querySelector('.figures-of summary').click()")
    assert tab.run("document.getElementById('epochs').checkVisibility()") is True


def follow(tab: Tab, selector: str, title: str) -> None:
    tab.run(f'document.querySelector("{selector}").click()')
    tab.wait_until(f"document.title === '{title} · Tidemark' && document.readyState === 'complete'")


def submit(tab: Tab) -> None:
    before = tab.run("performance.timeOrigin")
    tab.run("document.querySelector('form.filter button').click()")
    tab.wait_until(f"performance.timeOrigin !== {before} && document.readyState === 'complete'")


def quick(tab: Tab) -> None:
    """Lets the page ask for itself several times a second, as if time went faster."""
    tab.call(
        "Page.addScriptToEvaluateOnNewDocument",
        source="const slow = setTimeout; window.setTimeout = (f, ms) => slow(f, ms / 20);",
    )


def test_the_page_keeps_itself_new_and_leaves_the_reader_alone(
    chromium: Chromium, exporter: Exporter
) -> None:
    tab = chromium.page(height=500)
    quick(tab)
    tab.open(exporter.url + PARTITION)
    tab.run("document.querySelector('.figures-of summary').click()")
    tab.run("document.querySelector('#replicas a').focus({preventScroll: true})")
    tab.run("window.kept = document.activeElement; window.scrollTo(0, 400); undefined")
    newer = lossy_view()
    newer.replicas[1].log_end_offset = 1_000_309
    newer.log_end_offset = newer.replicas[0].log_end_offset = 1_000_555
    exporter.put(newer)
    tab.wait_until("document.querySelector('#replicas').innerText.includes('1000555')")
    assert (
        tab.run("document.querySelector('g[data-broker=\"1\"] svg.leo').dataset.offset")
        == "1000555"
    )
    assert (
        tab.run("document.activeElement === window.kept && document.activeElement.isConnected")
        is True
    )
    assert tab.run("window.scrollY") == 400
    assert tab.run("document.querySelector('.figures-of').open") is True
    drawn = tab.run(MEASURE)
    assert drawn["replicas"]["1"]["leo"] == pytest.approx(1_000_555, abs=2.5 * drawn["pixel"] + 0.5)


def test_rows_move_and_go_while_the_focus_stays_on_its_own(
    chromium: Chromium, exporter: Exporter
) -> None:
    exporter.fill(table([healthy_view("t", number) for number in range(6)]))
    tab = chromium.page()
    quick(tab)
    tab.open(exporter.url + "/partitions")
    tab.run("[...document.querySelectorAll('tbody a')].find((a) => a.innerText === 't-4').focus()")
    tab.run("document.querySelector('input[name=q]').value = 'half typed'")
    exporter.put(healthy_view("t", 5, leaderless=True))
    exporter.put(healthy_view("t", 4, in_sync_replicas=[1]))
    exporter.table.apply("east/t/0", None)
    exporter.put(healthy_view("t", 7))
    expected = ["t-5", "t-4", "t-1", "t-2", "t-3", "t-7"]
    tab.wait_until(
        f"JSON.stringify([...document.querySelectorAll('tbody th')].map((th) => th.innerText)) === JSON.stringify({expected})"
    )
    assert tab.run("document.activeElement.innerText") == "t-4"
    assert tab.run("document.querySelector('input[name=q]').value") == "half typed"
    assert tab.run("document.querySelector('.total').innerText") == "6 partitions"


def test_a_partition_that_is_deleted_while_it_is_looked_at_is_said_to_be_gone_until_it_is_back(
    chromium: Chromium, exporter: Exporter
) -> None:
    exporter.fill(table([healthy_view("orders", 0), healthy_view("orders", 1)]))
    tab = chromium.page()
    quick(tab)
    tab.open(exporter.url + "/partition?cluster=east&topic=orders&partition=1")
    drawn = "document.querySelectorAll('#log-figure g.replica').length"
    assert tab.run(drawn) == 3
    exporter.table.apply("east/orders/1", None)
    exporter.put(healthy_view("orders", 0))
    tab.wait_until(
        "document.querySelector('main').innerText.includes('it was deleted, is not watched, or was not seen yet')"
    )
    assert tab.run(drawn) == 0
    assert tab.run("document.getElementById('stale').checkVisibility()") is False
    exporter.put(healthy_view("orders", 1))
    tab.wait_until(f"{drawn} === 3")


def test_an_exporter_that_stops_answering_is_told_and_forgiven(
    chromium: Chromium, exporter: Exporter
) -> None:
    tab = chromium.page()
    quick(tab)
    tab.open(exporter.url + "/")
    assert tab.run("document.getElementById('stale').checkVisibility()") is False
    exporter.broken = True
    tab.wait_until(
        "document.getElementById('stale').innerText.startsWith('Stale: the exporter has not answered since 2')"
    )
    assert tab.run("document.getElementById('stale').getAttribute('role')") == "status"
    assert "payments-3" in tab.run("document.querySelector('main').innerText")
    exporter.broken = False
    tab.wait_until("!document.getElementById('stale').checkVisibility()")


def test_refreshing_can_be_paused(chromium: Chromium, exporter: Exporter) -> None:
    tab = chromium.page()
    quick(tab)
    tab.open(exporter.url + "/")
    tab.run("document.getElementById('pause').click()")
    assert tab.run(
        "[document.getElementById('pause').innerText, document.getElementById('pause').getAttribute('aria-pressed')]"
    ) == [
        "Resume",
        "true",
    ]
    exporter.put(healthy_view("late", 0, leaderless=True))
    tab.run("new Promise((done) => setTimeout(done, 20000))")
    assert "late-0" not in tab.run("document.querySelector('main').innerText")
    tab.run("document.getElementById('pause').click()")
    tab.wait_until("document.querySelector('main').innerText.includes('late-0')")


def test_the_keyboard_reaches_everything_in_reading_order(
    chromium: Chromium, exporter: Exporter
) -> None:
    tab = opened_page(chromium, exporter, PARTITION)
    expected = tab.run(
        "document.querySelectorAll('a[href], button:not([hidden]), input, select, summary, [tabindex=\"0\"]').length"
    )
    places: list[dict[str, Any]] = []
    for _ in range(expected + 5):
        tab.press("Tab")
        focused = tab.run(
            "(() => { const a = document.activeElement; if (a === document.body) return null; const r = a.getBoundingClientRect(); const s = getComputedStyle(a);"
            " window.order ??= new Map(); if (!window.order.has(a)) window.order.set(a, window.order.size);"
            " return { n: window.order.get(a), text: (a.innerText || a.getAttribute('aria-label') || a.tagName).slice(0, 40), seen: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2,"
            " width: r.width, after: window.before ? Boolean(window.before.compareDocumentPosition(a) & 4) : true, was: (window.before = a, 1) }; })()"
        )
        if focused is None or (places and focused["n"] == 0):
            break
        places.append(focused)
    assert places[0]["text"] == "Skip to the content"
    assert [place["n"] for place in places] == list(range(len(places)))
    assert all(place["after"] for place in places)
    assert [place["text"] for place in places if not place["seen"] or not place["width"]] == []
    hidden = tab.run(
        "[...document.querySelectorAll('details:not([open]) [href], details:not([open]) [tabindex=\"0\"]')].length"
    )
    assert len(places) == expected - hidden


def test_skipping_leads_to_the_content(chromium: Chromium, exporter: Exporter) -> None:
    tab = opened_page(chromium, exporter, "/topics")
    tab.press("Tab")
    tab.press("Enter")
    tab.wait_until("document.activeElement.id === 'main'")
    tab.press("Tab")
    assert tab.run("document.activeElement.name") == "q"


def test_a_reader_hears_names_roles_and_figures(chromium: Chromium, exporter: Exporter) -> None:
    tab = opened_page(chromium, exporter, PARTITION)
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    heard = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
    ]
    roles = {role for role, _ in heard}
    assert {
        "banner",
        "navigation",
        "main",
        "contentinfo",
        "table",
        "columnheader",
        "rowheader",
        "heading",
    } <= roles
    pictures = [name for role, name in heard if role in {"image", "img"}]
    assert pictures == ["Replica logs of payments-3", "In-sync replicas of payments-3 over time"]
    assert [
        role
        for role, name in heard
        if role in {"link", "button", "textbox", "combobox", "searchbox"} and not name
    ] == []
    headings = [name for role, name in heard if role == "heading"]
    assert headings[:4] == [
        "payments-3",
        "Replica logs",
        "In-sync replicas over time",
        "Open alerts",
    ]


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_runs_out_of_the_page_sideways(
    chromium: Chromium, exporter: Exporter, width: int
) -> None:
    tab = chromium.page(width=width)
    for path in (
        "/",
        "/topics",
        "/partitions",
        PARTITION,
        "/brokers",
        "/broker?cluster=east&broker=1",
        "/alerts",
    ):
        tab.open(exporter.url + path)
        assert tab.run("document.documentElement.scrollWidth") <= width, path


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_large_offsets_and_many_replicas_stay_in_the_page(
    chromium: Chromium, exporter: Exporter, width: int
) -> None:
    name, first = "a" * 200 + "._-" * 16 + "z", 2**62
    view = healthy_view(
        name, 0, high_watermark=first + 900, log_end_offset=first + 1_000, assigned=[*range(1, 65)]
    )
    model = view.replicas[0]
    view.replicas = [
        msgspec.structs.replace(
            model, broker=b, log_start_offset=first, log_end_offset=first + 900 + b
        )
        for b in view.assigned
    ]
    exporter.fill(table([view]))
    tab = chromium.page(width=width)
    for path in (
        "/",
        "/topics",
        "/partitions",
        "/partition?" + urlencode({"cluster": "east", "topic": name, "partition": 0}),
    ):
        tab.open(exporter.url + path)
        assert tab.run("document.documentElement.scrollWidth") <= width, path
    # A number that is cut in two is read wrongly.
    mark = f"[...document.querySelectorAll('.figures dd')].find((dd) => dd.innerText.includes('{first + 900}'))"
    assert (
        tab.run(
            f"(() => {{ const range = document.createRange(); range.selectNodeContents({mark}); return range.getClientRects().length; }})()"
        )
        == 1
    )


def shown(exporter: Exporter) -> dict[str, str]:
    """What a picture is taken of; names as real ones are."""
    calm = [view for view in (lossy_view(), *sane_views()) if view]
    exporter.fill(table(calm))
    query = urlencode({"cluster": "east", "topic": "orders", "partition": 0})
    return {
        "clusters": "/",
        "topics": "/topics",
        "topic": "/topic?cluster=east&topic=payments",
        "partitions": "/partitions",
        "partition": PARTITION,
        "partition-healthy": f"/partition?{query}",
        "brokers": "/brokers",
        "broker": "/broker?cluster=east&broker=1",
        "alerts": "/alerts",
        "alerts-past": "/alerts?status=past",
        "not-found": "/topic?cluster=east&topic=gone",
    }


# The others are taken wide and light, and narrow and dark.
FOUR_WAYS = {"clusters", "partition", "alerts"}


def sane_views() -> list[Any]:
    hostile = (HOSTILE, TRICKY)
    lag = alert(
        "KafkaFollowerLag",
        topic="clickstream.page-views",
        partition="5",
        broker="2",
        description="Follower 2 is 4.2 s behind.",
    )
    slow = healthy_view("clickstream.page-views", 5, alerts=[opened(lag)])
    slow.replicas[1].lag_ms, slow.replicas[1].lag_records, slow.replicas[1].log_end_offset = (
        4_200.0,
        61,
        39,
    )
    made = (
        [row.view for row in table().partitions.values()]
        + list(table().clusters.values())
        + list(table().brokers.values())
    )
    many = [healthy_view("clickstream.page-views", number) for number in range(24) if number != 5]
    return [*(view for view in made if view.topic not in hostile), *many, slow]


def test_pictures_of_every_page(chromium: Chromium, exporter: Exporter) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    pages = shown(exporter)
    taken: list[Path] = []
    for dark, width in ((False, 1280), (True, 1280), (False, 390), (True, 390)):
        tab = chromium.page(width=width, height=844 if width < 600 else 900, dark=dark)
        for name, path in pages.items():
            if dark is (width == 1280) and name not in FOUR_WAYS:
                continue
            tab.open(exporter.url + path)
            taken.append(SHOTS / f"{name}-{'dark' if dark else 'light'}-{width}.png")
            tab.screenshot(taken[-1])
        assert [text for text in tab.complaints() if "404" not in text] == []
    assert len({each.read_bytes() for each in taken}) == len(taken)

"""Every page: sound markup, usable by keyboard and screen reader, and no markup from a topic."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import pytest

from tests.export.make import NOW
from tests.pages.make import HOSTILE, TRICKY, site
from tests.pages.markup import page
from tidemark_exporters.pages.page_definitions import PAGES
from tidemark_exporters.pages.responses import static_version
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
    ("/docs", {}),
]
every = pytest.mark.parametrize(("path", "parameters"), EVERY, ids=range(len(EVERY)))


def test_every_page_is_tested() -> None:
    assert {f"/{path}" for path in PAGES} == {path for path, _ in EVERY}


@every
def test_every_page_is_sound(path: str, parameters: dict[str, object]) -> None:
    root = page(site(), path, **parameters)
    ids = Counter(each.attributes["id"] for each in root.walk() if "id" in each.attributes)
    assert [name for name, times in ids.items() if times > 1] == []
    for each in root.walk():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(each.attributes.get(name, "").split()) <= ids.keys(), each
        handlers = [name for name in each.attributes if name.startswith("on") or name == "style"]
        assert handlers == [], each
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
def test_no_name_from_a_topic_becomes_markup(path: str, parameters: dict[str, object]) -> None:
    root = page(site(), path, **parameters)
    assert root.all("img") == []
    (script,) = root.all("script")
    assert script.attributes["src"] == f"static/tidemark.js?v={static_version()}"
    links = [each.attributes["href"].lower() for each in root.all("a")]
    assert [link for link in links if link.startswith(("javascript:", "data:"))] == []


def test_hostile_names_are_shown_as_text() -> None:
    root = page(site(), "/partition", **HOSTILES)
    assert root.one("h1").text == f"{HOSTILE}-0"
    (article,) = root.all("article", class_="alert")
    assert article.one("h3").text.count(HOSTILE) == 2
    assert root.all("title")[0].text == f"{HOSTILE}-0 · Tidemark"
    heading = page(site(), "/topic", cluster="east", topic=TRICKY).one("h1").text
    assert heading == " ".join(visible(TRICKY).split())
    assert HOSTILE in page(site(), "/topics", q=HOSTILE).one("input", name="q").attributes["value"]


@every
def test_every_page_names_incomplete_and_stale_data(
    path: str, parameters: dict[str, object]
) -> None:
    def notices(waiting: list[str], now: float) -> str:
        return (
            page(site(waiting=waiting, now=now), path, **parameters).one("div", id="notices").text
        )

    # Whether a cluster is stale is not known before all views are read.
    assert notices(["alerts", "partition views"], NOW + 90) == (
        "Catching up. Still reading alerts and partition views: this page is not complete yet."
    )
    assert "east is stale." in notices([], NOW + 90)
    assert notices([], NOW + 2) == ""

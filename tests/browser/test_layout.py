"""Every page fits the screen. Check the pictures in build/screenshots after a change."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from tests.browser.chromium import Chromium
from tests.browser.conftest import PARTITION, Exporter
from tests.conftest import ROOT
from tests.export.make import alert
from tests.pages.make import HOSTILE, TRICKY, healthy_view, opened, table, views

pytestmark = pytest.mark.browser

SHOTS = ROOT / "build" / "screenshots"
SHOWN = {
    "clusters": "/",
    "topics": "/topics",
    "topic": "/topic?cluster=east&topic=payments",
    "partitions": "/partitions",
    "partition": PARTITION,
    "partition-healthy": "/partition?cluster=east&topic=orders&partition=0",
    "brokers": "/brokers",
    "broker": "/broker?cluster=east&broker=1",
    "alerts": "/alerts",
    "alerts-past": "/alerts?status=past",
    "document": "/docs/runbooks",
    "not-found": "/topic?cluster=east&topic=gone",
}
# Of the cells that have words: the width of the narrowest, and the most lines for 100 characters.
CELLS = """
  const cells = [...document.querySelectorAll("main td, main tbody th, main dd, main article p")]
    .filter((cell) => cell.checkVisibility() && cell.innerText.length > 24);
  const lines = (cell) => cell.clientHeight / parseFloat(getComputedStyle(cell).lineHeight);
  [Math.min(...cells.map((cell) => cell.clientWidth), 390),
   Math.max(...cells.map((cell) => 100 * (lines(cell) - 1) / cell.innerText.length), 0)]
"""
# The others are taken wide and light, and narrow and dark.
FOUR_WAYS = {"clusters", "partition", "alerts"}


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_scrolls_sideways(chromium: Chromium, exporter: Exporter, width: int) -> None:
    tab = chromium.page(width=width)
    for path in SHOWN.values():
        tab.open(exporter.url + path)
        assert tab.run("document.documentElement.scrollWidth") <= width, path


def test_on_a_phone_no_column_collapses(chromium: Chromium, exporter: Exporter) -> None:
    exporter.fill(table(realistic_views()))
    tab = chromium.page(width=390, height=844)
    for path in SHOWN.values():
        tab.open(exporter.url + path)
        narrowest, lines = tab.run(CELLS)
        assert narrowest >= 140 and lines <= 6, path


def test_an_open_incident_is_on_the_first_screen(chromium: Chromium, exporter: Exporter) -> None:
    for width, height in ((390, 844), (1280, 900)):
        tab = exporter.open(chromium, PARTITION, width=width, height=height)
        shown, bottom = tab.run(
            "const first = document.querySelector('.first');"
            "[first.innerText, first.getBoundingClientRect().bottom]"
        )
        assert bottom <= height
        for words in ("22 committed records", "[1000240, 1000262)", "broker 2", "Do this first"):
            assert words in shown
        tab.run("document.querySelector('.first .next a').click()")
        tab.wait_until("document.body?.innerText.includes('/broker-2')")


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_large_offsets_and_many_replicas_fit(
    chromium: Chromium, exporter: Exporter, width: int
) -> None:
    name, first = "a" * 200 + "._-" * 16 + "z", 2**62
    offsets = {"high_watermark": first + 900, "log_end_offset": first + 1_000}
    view = healthy_view(name, 0, assigned=[*range(1, 65)], **offsets)
    view.replicas = [
        msgspec.structs.replace(
            view.replicas[0], broker=b, log_start_offset=first, log_end_offset=first + 900 + b
        )
        for b in view.assigned
    ]
    exporter.fill(table([view]))
    tab = chromium.page(width=width)
    partition = "/partition?" + urlencode({"cluster": "east", "topic": name, "partition": 0})
    for path in ("/", "/topics", "/partitions", partition):
        tab.open(exporter.url + path)
        assert tab.run("document.documentElement.scrollWidth") <= width, path
    # A number that breaks into two lines is misread.
    lines = f"""
      const figures = [...document.querySelectorAll(".figures dd")];
      const range = document.createRange();
      range.selectNodeContents(figures.find((dd) => dd.innerText.includes("{first + 900}")));
      range.getClientRects().length
    """
    assert tab.run(lines) == 1


def realistic_views() -> list[Any]:
    """The views of the other tests under valid names, and a topic of many partitions."""
    lag = alert(
        "KafkaFollowerLag",
        topic="clickstream.page-views",
        partition="5",
        broker="2",
        description="Follower 2 is 4.2 s behind.",
    )
    slow = healthy_view("clickstream.page-views", 5, alerts=[opened(lag)])
    follower = slow.replicas[1]
    follower.lag_ms, follower.lag_records, follower.log_end_offset = 4_200.0, 61, 39
    many = [healthy_view("clickstream.page-views", number) for number in range(24) if number != 5]
    return [*(view for view in views() if view.topic not in {HOSTILE, TRICKY}), *many, slow]


def test_pictures_of_every_page(chromium: Chromium, exporter: Exporter) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    exporter.fill(table(realistic_views()))
    taken = []
    for dark, width in ((False, 1280), (True, 1280), (False, 390), (True, 390)):
        tab = chromium.page(width=width, height=844 if width < 600 else 900, dark=dark)
        for name, path in SHOWN.items():
            if dark is (width == 1280) and name not in FOUR_WAYS:
                continue
            tab.open(exporter.url + path)
            taken.append(SHOTS / f"{name}-{'dark' if dark else 'light'}-{width}.png")
            tab.screenshot(taken[-1])
        assert [text for text in tab.complaints() if "404" not in text] == []
    assert len({each.read_bytes() for each in taken}) == len(taken)

"""An open page: it refreshes itself and leaves focus, scroll position and input alone."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Chromium, Tab
from tests.browser.conftest import PARTITION, Exporter
from tests.browser.test_figures import MEASURE
from tests.pages.make import healthy_view, lossy_view, table

pytestmark = pytest.mark.browser

IS_STALE = "document.getElementById('stale').checkVisibility()"
MAIN = "document.querySelector('main').innerText"
# What a refresh changes, and what it must not: focus, scroll position, open details, input.
KEPT = """[
  document.querySelector("[data-broker='1'] svg.leo").dataset.offset,
  document.activeElement === window.kept, window.kept.isConnected,
  window.scrollY, document.querySelector(".epoch-details").open,
]"""
TYPED = """[
  document.activeElement.innerText, document.querySelector("input[name=q]").value,
  document.querySelector(".total").innerText,
]"""


def open_fast(chromium: Chromium, exporter: Exporter, path: str, height: int = 900) -> Tab:
    """A page that refreshes several times a second: its timers run 20 times as fast."""
    tab = chromium.page(height=height)
    faster = "const slow = setTimeout; window.setTimeout = (f, ms) => slow(f, ms / 20);"
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=faster)
    tab.open(exporter.url + path)
    return tab


def test_new_data_appears_and_the_readers_place_stays(
    chromium: Chromium, exporter: Exporter
) -> None:
    tab = open_fast(chromium, exporter, PARTITION, height=500)
    tab.run("document.querySelector('.epoch-details summary').click()")
    tab.run("document.querySelector('#replicas a').focus({preventScroll: true})")
    tab.run("window.kept = document.activeElement; window.scrollTo(0, 400); undefined")
    newer = lossy_view()
    newer.replicas[1].log_end_offset = 1_000_309
    newer.log_end_offset = newer.replicas[0].log_end_offset = 1_000_555
    exporter.put(newer)
    tab.wait_until("document.querySelector('#replicas').innerText.includes('1000555')")
    assert tab.run(KEPT) == ["1000555", True, True, 400, True]
    drawn = tab.run(MEASURE)
    assert drawn["replicas"]["1"]["leo"] == pytest.approx(1_000_555, abs=2.5 * drawn["pixel"] + 0.5)


def test_rows_move_and_the_focus_stays_on_its_row(chromium: Chromium, exporter: Exporter) -> None:
    exporter.fill(table([healthy_view("t", number) for number in range(6)]))
    tab = open_fast(chromium, exporter, "/partitions")
    tab.run("[...document.querySelectorAll('tbody a')].find((a) => a.innerText === 't-4').focus()")
    tab.run("document.querySelector('input[name=q]').value = 'half typed'")
    exporter.put(healthy_view("t", 5, leaderless=True))
    exporter.put(healthy_view("t", 4, in_sync_replicas=[1]))
    exporter.table.apply("east/t/0", None)
    exporter.put(healthy_view("t", 7))
    rows = "[...document.querySelectorAll('tbody th')].map((th) => th.innerText).join(' ')"
    tab.wait_until(f"{rows} === 't-5 t-4 t-1 t-2 t-3 t-7'")
    assert tab.run(TYPED) == ["t-4", "half typed", "6 partitions"]


def test_a_deleted_partition_is_gone_until_it_is_back(
    chromium: Chromium, exporter: Exporter
) -> None:
    exporter.fill(table([healthy_view("orders", 0), healthy_view("orders", 1)]))
    tab = open_fast(chromium, exporter, "/partition?cluster=east&topic=orders&partition=1")
    drawn = "document.querySelectorAll('#log-figure g.replica').length"
    assert tab.run(drawn) == 3
    exporter.table.apply("east/orders/1", None)
    exporter.put(healthy_view("orders", 0))
    tab.wait_until(f"{MAIN}.includes('it was deleted, is not watched, or was not seen yet')")
    assert tab.run(drawn) == 0
    assert tab.run(IS_STALE) is False
    exporter.put(healthy_view("orders", 1))
    tab.wait_until(f"{drawn} === 3")


def test_a_page_is_stale_while_the_exporter_does_not_answer(
    chromium: Chromium, exporter: Exporter
) -> None:
    tab = open_fast(chromium, exporter, "/")
    assert tab.run(IS_STALE) is False
    exporter.fail()
    tab.wait_until(
        "document.querySelector('#stale[role=status]').innerText"
        ".startsWith('Stale: the exporter has not answered since 2')"
    )
    assert "payments-3" in tab.run(MAIN)
    exporter.fill(table())
    tab.wait_until(f"!{IS_STALE}")


def test_refreshing_can_be_paused(chromium: Chromium, exporter: Exporter) -> None:
    tab = open_fast(chromium, exporter, "/")
    tab.run("document.getElementById('pause').click()")
    state = "(({ innerText, ariaPressed }) => [innerText, ariaPressed])"
    assert tab.run(f"{state}(document.getElementById('pause'))") == ["Resume", "true"]
    exporter.put(healthy_view("late", 0, leaderless=True))
    tab.run("new Promise((done) => setTimeout(done, 20000))")
    assert "late-0" not in tab.run(MAIN)
    tab.run("document.getElementById('pause').click()")
    tab.wait_until(f"{MAIN}.includes('late-0')")

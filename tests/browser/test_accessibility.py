"""The keyboard and the accessibility tree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.chromium import Chromium
from tests.browser.conftest import PARTITION, Exporter

pytestmark = pytest.mark.browser

TARGETS = "a[href], button:not([hidden]), input, select, summary, [tabindex='0']"
# In details that are closed.
HIDDEN = "details:not([open]) [href], details:not([open]) [tabindex='0']"
# The focused element: its number in the order of focus, and whether it follows the one before.
FOCUSED = """
(() => {
  const element = document.activeElement;
  if (element === document.body) return null;
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  window.order ??= new Map();
  if (!window.order.has(element)) window.order.set(element, window.order.size);
  const before = window.before;
  window.before = element;
  return {
    n: window.order.get(element),
    text: (element.innerText || element.getAttribute("aria-label") || element.tagName).slice(0, 40),
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    width: box.width,
    follows: before ? Boolean(before.compareDocumentPosition(element) & 4) : true,
  };
})()
"""


def test_the_keyboard_reaches_everything_in_reading_order(
    chromium: Chromium, exporter: Exporter
) -> None:
    tab = exporter.open(chromium, PARTITION)
    targets = tab.run(f'document.querySelectorAll("{TARGETS}").length')
    places: list[dict[str, Any]] = []
    for _ in range(targets + 5):
        tab.press("Tab")
        focused = tab.run(FOCUSED)
        if focused is None or (places and focused["n"] == 0):
            break
        places.append(focused)
    assert places[0]["text"] == "Skip to the content"
    assert [place["n"] for place in places] == list(range(len(places)))
    assert all(place["follows"] for place in places)
    assert [p["text"] for p in places if not p["outlined"] or not p["width"]] == []
    assert len(places) == targets - tab.run(f'document.querySelectorAll("{HIDDEN}").length')


def test_the_skip_link_leads_to_the_content(chromium: Chromium, exporter: Exporter) -> None:
    tab = exporter.open(chromium, "/topics")
    tab.press("Tab")
    tab.press("Enter")
    tab.wait_until("document.activeElement.id === 'main'")
    tab.press("Tab")
    assert tab.run("document.activeElement.name") == "q"


def test_a_screen_reader_gets_names_roles_and_figures(
    chromium: Chromium, exporter: Exporter
) -> None:
    tab = exporter.open(chromium, PARTITION)
    nodes = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tab.call("Accessibility.getFullAXTree")["nodes"]
        if not node["ignored"]
    ]
    assert {
        *("banner", "navigation", "main", "contentinfo", "heading"),
        *("table", "columnheader", "rowheader"),
    } <= {role for role, _ in nodes}
    figures = [name for role, name in nodes if role in {"image", "img"}]
    assert figures == ["Replica logs of payments-3", "In-sync replicas of payments-3 over time"]
    controls = {"link", "button", "textbox", "combobox", "searchbox"}
    assert [role for role, name in nodes if role in controls and not name] == []
    assert [name for role, name in nodes if role == "heading"][:6] == [
        "payments-3",
        "Replica logs",
        "If the leader died now",
        "Incident",
        "In-sync replicas over time",
        "Open alerts",
    ]

"""The drawn logs, measured in the browser."""

from __future__ import annotations

import pytest
import requests

from tests.browser.chromium import Chromium
from tests.browser.conftest import PARTITION, Exporter

pytestmark = pytest.mark.browser

# Positions on the screen as offsets of the drawing's axis.
MEASURE = """
(() => {
  const figure = document.getElementById("log-figure");
  const box = figure.getBoundingClientRect();
  const from = Number(figure.dataset.from), to = Number(figure.dataset.to);
  const offset = (x) => from + (to - from) * (x - box.left) / box.width;
  const left = (element) => offset(element.getBoundingClientRect().left);
  const right = (element) => offset(element.getBoundingClientRect().right);
  const middle = (element) => (left(element) + right(element)) / 2;
  const replicas = {};
  for (const group of figure.querySelectorAll("g.replica")) {
    const bars = [...group.querySelectorAll("rect.segment")].map((rect) => ({
      from: left(rect), to: right(rect),
      start: Number(rect.dataset.start), end: Number(rect.dataset.end),
      epoch: rect.dataset.epoch, colour: getComputedStyle(rect).fill,
    }));
    const place = (name, side) => {
      const mark = group.querySelector(`svg.${name} .mark`);
      return mark ? side(mark) : null;
    };
    replicas[group.dataset.broker] = {
      bars, hw: place("hw", middle), leo: place("leo", right), start: place("start", left),
    };
  }
  const lost = [...figure.querySelectorAll("rect.lost")].map((rect) => [left(rect), right(rect)]);
  const tidemark = middle(document.getElementById("tidemark"));
  return { from, to, pixel: (to - from) / box.width, replicas, tidemark, lost };
})()
"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("window", ["", "&from=0&to=1100000", "&from=1000200&to=1000320"])
def test_bars_are_drawn_at_the_offsets_of_the_api(
    chromium: Chromium, exporter: Exporter, width: int, window: str
) -> None:
    drawn = exporter.open(chromium, PARTITION + window, width=width).run(MEASURE)
    api = exporter.url + "/api/v1/partitions?topic=payments&partition=3"
    (item,) = requests.get(api, timeout=5).json()["items"]
    # Strokes are two pixels wide.
    near = 2.5 * drawn["pixel"] + 0.5
    for replica in item["view"]["replicas"]:
        shown = drawn["replicas"][str(replica["broker"])]
        for mark, field in (
            ("leo", "log_end_offset"),
            ("hw", "high_watermark"),
            ("start", "log_start_offset"),
        ):
            offset = replica.get(field)
            if offset is None or not drawn["from"] <= offset <= drawn["to"]:
                assert shown[mark] is None
            else:
                assert shown[mark] == pytest.approx(offset, abs=near), (replica["broker"], mark)
        for bar in shown["bars"]:
            assert bar["from"] == pytest.approx(max(bar["start"], drawn["from"]), abs=near)
            assert bar["to"] == pytest.approx(min(bar["end"], drawn["to"]), abs=near)
        if shown["bars"]:
            end = min(replica["log_end_offset"], drawn["to"])
            assert shown["bars"][-1]["to"] == pytest.approx(end, abs=near)
    ends = dict(item["view"]["lineage"])
    for bar in drawn["replicas"]["1"]["bars"][:-1]:
        # Records before the lineage have no epoch.
        first_end = item["view"]["lineage"][0][1]
        assert bar["end"] == (ends[int(bar["epoch"])] if bar["epoch"] else first_end)
    assert drawn["tidemark"] == pytest.approx(item["view"]["high_watermark"], abs=near)
    (lost,) = drawn["lost"]
    start, end = item["view"]["alerts"][0]["evidence"]["proven"]
    # However few records are lost, the range is wide enough to see.
    narrowest = 0.003 * (drawn["to"] - drawn["from"])
    assert lost == pytest.approx([start, max(end, start + narrowest)], abs=near)


@pytest.mark.parametrize("dark", [False, True])
def test_each_epoch_has_its_own_colour(chromium: Chromium, exporter: Exporter, dark: bool) -> None:
    drawn = exporter.open(chromium, PARTITION, dark=dark).run(MEASURE)
    colours: dict[str, set[str]] = {}
    for replica in drawn["replicas"].values():
        for bar in replica["bars"]:
            colours.setdefault(bar["epoch"], set()).add(bar["colour"])
    assert set(colours) == {"", "6", "7", "8"}
    assert all(len(found) == 1 for found in colours.values())
    assert len(set.union(*colours.values())) == 4

"""The stories of the model as files: what a browser draws is what `tidemark model show` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Chromium, Tab
from tests.verbs.run import tidemark
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.scenarios import SCENARIOS

pytestmark = pytest.mark.browser

# The drawing and the table of a run, as the cells of `model show`.
SHOWN = """
(id => {
  const run = document.getElementById(id);
  const drawn = [...run.querySelectorAll('g.replica')].map(one => [
    {leads: '*', down: '-', follows: ''}[one.dataset.state], one.dataset.logEndOffset,
    one.dataset.highWatermark, one.dataset.epochs].join(' ').trim().replace(/ +/g, ' '));
  const boxes = [...run.querySelectorAll('g.replica')].map(one =>
    one.querySelectorAll('rect.segment').length);
  const rows = [...run.querySelectorAll('table.values tbody tr')].map(row =>
    [...row.querySelectorAll('td')].map(cell => cell.textContent));
  const text = run.querySelector('.event b').textContent.replace(/^\\d+ of \\d+: /, '');
  const effects = run.querySelector('.effects').textContent;
  return {drawn, boxes, rows, happens: effects ? `${text}: ${effects}` : text,
          broken: [...run.querySelectorAll('.lights .broken')].map(one => one.textContent.slice(2)),
          step: run.dataset.step, protocol: run.dataset.protocol};
})
"""
PLAY = """
(protocol => {
  const choice = document.getElementById('protocol');
  choice.value = protocol; choice.dispatchEvent(new Event('change'));
  document.getElementById('first').click();
  const found = [shown('main-run')];
  while (!document.getElementById('on').disabled) {
    document.getElementById('on').click();
    found.push(shown('main-run'));
  }
  return found;
})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stories")
    assert "open" in tidemark("model", "export", str(made)).out
    return made


def opened(chromium: Chromium, folder: Path, name: str, **options: Any) -> Tab:
    tab = chromium.page(**options)
    tab.open((folder / f"{name}.html").as_uri())
    return tab


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_step_is_what_the_command_prints(chromium: Chromium, folder: Path, name: str) -> None:
    tab = opened(chromium, folder, name)
    tab.run(f"window.shown = {SHOWN}")
    for protocol in PROTOCOLS:
        printed = json.loads(tidemark("model", "show", name, "--protocol", protocol, "--json").out)
        played = tab.run(f"{PLAY}({json.dumps(protocol)})")
        assert len(played) == len(printed["steps"])
        for found, row in zip(played, printed["steps"], strict=True):
            cells = [" ".join(cell.split()) for key, cell in row.items() if " LEO HW" in key]
            assert found["drawn"] == cells
            assert [" ".join(each[:2]) for each in found["rows"]] == [
                " ".join(cell.lstrip("*- ").split()[:2]) for cell in cells
            ]
            known = [
                each[2]
                for each, cell in zip(found["rows"], cells, strict=True)
                if cell.startswith("*")
            ]
            assert sorted(known) == sorted(row["remote LEOs"].split(" | ")) or not known
            assert found["happens"] == row["what happens"]
    assert tab.complaints() == []
    assert all(url.startswith("file:") for url in tab.requested())


def test_keys_step_on_and_back_and_the_branch_follows(chromium: Chromium, folder: Path) -> None:
    tab = opened(chromium, folder, "epoch-without-records")
    tab.run(f"window.shown = {SHOWN}")
    for _ in range(25):
        tab.press("ArrowRight")
    main, beside = tab.run("shown('main-run')"), tab.run("shown('beside-run')")
    assert (main["step"], main["drawn"][1]) == ("25", "1 1 0@0")
    assert (beside["protocol"], beside["drawn"][1]) == ("kip-279", "2 1 0@0")
    assert "WeakIsr" in main["broken"] and beside["broken"] == []
    tab.press("ArrowLeft")
    assert tab.run("shown('main-run')")["drawn"][1] == "3 1 0@0 1@2"
    tab.press("End")
    assert "LOST: m1" in tab.run("document.querySelector('#main-run .outcome').textContent")
    assert "No committed" in tab.run("document.querySelector('#beside-run .outcome').textContent")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_a_story_fits_its_screen(
    chromium: Chromium, folder: Path, width: int, dark: bool, tmp_path: Path
) -> None:
    for name in ("index", "two-replica-write", "epoch-without-records", "zombie-leader"):
        tab = opened(chromium, folder, name, width=width, dark=dark)
        if name != "index":
            tab.press("End")
        assert tab.run("document.documentElement.scrollWidth") <= width, name
        # As a card, a row says what its cells are.
        cells = "[...document.querySelectorAll('.values tbody > tr > *')]"
        assert tab.run(f"{cells}.every(cell => cell.dataset.label)"), name
        tab.screenshot(tmp_path / f"{name}.png")


def test_an_exercise_hides_the_values_until_they_are_asked_for(
    chromium: Chromium, folder: Path
) -> None:
    tab = opened(chromium, folder, "two-replica-write")
    tab.run("document.getElementById('hide').click()")
    tab.press("ArrowRight")
    seen = "getComputedStyle(document.querySelector('#main-run table.values td')).visibility"
    assert tab.run(seen) == "hidden"
    tab.run("document.querySelector('#main-run .reveal').click()")
    assert tab.run(seen) == "visible"

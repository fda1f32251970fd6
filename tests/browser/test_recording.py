"""A recording played on the page: forward, back, by the slider and by its links."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.chromium import Chromium
from tidemark.detect.default_thresholds import Detection
from tidemark.settings import load_settings
from tidemark.verbs.top.recorded import SHIPPED, RecordedCluster
from tidemark.verbs.top.site import RecordedSite

pytestmark = pytest.mark.browser

NUMBER = "Number(document.getElementById('recording-at').dataset.number)"


@pytest.fixture(scope="module")
def site() -> Iterator[RecordedSite]:
    recorded = RecordedCluster(str(SHIPPED["unclean-election"]), Detection(), None)
    found = RecordedSite(load_settings(None, {}), recorded, "127.0.0.1:0")
    yield found
    found.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_it_plays_forward_and_back(chromium: Chromium, site: RecordedSite, width: int) -> None:
    tab = chromium.page(width=width)
    tab.open(f"{site.note}pass/1/partition?cluster=drill&topic=orders&partition=0")
    tab.run("document.getElementById('speed').value = '60'")
    lost = "document.getElementById('main').textContent.includes('proven lost')"
    assert tab.run(lost) is False
    for button, end, is_lost in (("play", 42, True), ("play-back", 1, False)):
        tab.run(f"document.getElementById('{button}').click()")
        tab.wait_until(f"{NUMBER} === {end} && location.pathname.startsWith('/pass/{end}/')", 60.0)
        tab.wait_until(f"document.getElementById('{button}').ariaPressed === 'false'")
        assert tab.run(lost) is is_lost
    tab.run("document.querySelector('#moments a').click()")
    tab.wait_until(f"{NUMBER} === 7 && document.getElementById('position').value === '7'")
    tab.run(
        "const slider = document.getElementById('position'); slider.value = 30;"
        "slider.dispatchEvent(new Event('input'))"
    )
    tab.wait_until(f"{NUMBER} === 30")
    assert tab.run("document.documentElement.scrollWidth <= innerWidth") is True
    assert tab.complaints() == []


def test_without_scripts_the_links_lead_on(chromium: Chromium, site: RecordedSite) -> None:
    tab = chromium.page(scripts=False)
    tab.open(f"{site.note}pass/3/brokers?cluster=drill")
    hidden = "document.querySelector('.player').hidden"
    address = "document.querySelector('[aria-label=\"A pass on\"]').href"
    assert tab.run(hidden) is True
    assert tab.run(address) == f"{site.note}pass/4/brokers?cluster=drill"

"""What runs in the browser: nothing from a topic, and no page needs a script."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import pytest

from tests.browser.chromium import Chromium, Tab
from tests.browser.conftest import PARTITION, Exporter
from tests.pages.make import HOSTILE, TRICKY

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", "<script>"),
        (f"/topics?q={quote(HOSTILE)}", "<script>"),
        (f"/topic?cluster=east&topic={quote(HOSTILE)}", "<script>"),
        (f"/partition?cluster=east&partition=0&topic={quote(HOSTILE)}", "<script>"),
        (f"/partition?cluster=east&partition=0&topic={quote(TRICKY)}", "{{7*7}}"),
        ("/alerts", "<script>"),
        ("/" + HOSTILE.replace("?", ""), "<script>"),
    ],
    ids=range(7),
)
def test_hostile_names_stay_text(
    chromium: Chromium, exporter: Exporter, path: str, shown: str
) -> None:
    tab = exporter.open(chromium, path)
    assert shown in tab.run("document.body.innerText")
    tab.run("for (const each of document.querySelectorAll('details')) each.open = true")
    assert tab.run("document.title").endswith(" · Tidemark")
    injected = "main script, main img, main iframe, [onerror], [style]"
    assert tab.run(f"document.querySelectorAll('{injected}').length") == 0
    assert tab.run("[...document.links].filter((a) => a.protocol !== 'http:').length") == 0
    # The policy refused nothing: nothing was tried.
    assert [text for text in tab.complaints() if "404" not in text] == []
    requested = [urlsplit(url) for url in tab.requested() if not url.startswith("about:")]
    assert {f"{url.scheme}://{url.netloc}" for url in requested} == {exporter.url}


INJECTION = """
(() => {
  const element = document.createElement("div");
  element.innerHTML = "<img src=x onerror='document.title=1'>";
  const script = document.createElement("script");
  script.textContent = "document.title=2";
  document.body.append(element, script);
})()
"""


def test_the_policy_stops_an_injected_script(chromium: Chromium, exporter: Exporter) -> None:
    tab = exporter.open(chromium, "/")
    tab.run(INJECTION)
    tab.wait_until("document.querySelector('body > div > img').complete")
    assert tab.run("document.title") == "Clusters · Tidemark"
    assert any("Content Security Policy" in text for text in tab.complaints())


def test_every_page_works_without_scripts(chromium: Chromium, exporter: Exporter) -> None:
    tab = exporter.open(chromium, "/", scripts=False)
    assert tab.run("document.getElementById('pause').checkVisibility()") is False
    assert "payments-3" in tab.run("document.querySelector('main').innerText")
    click(tab, "a[href^='partition?']")
    assert tab.run("document.title") == "payments-0 · Tidemark"
    assert tab.run("document.querySelectorAll('#log-figure rect.segment').length") == 3
    tab.open(exporter.url + "/partitions")
    tab.run("document.querySelector('input[name=q]').value = 'orders'")
    tab.run("document.querySelector('select[name=state]').value = 'blind'")
    click(tab, "form.filter button")
    rows = "[...document.querySelectorAll('tbody th')].map((th) => th.innerText)"
    assert tab.run(rows) == ["orders-2"]
    tab.open(exporter.url + PARTITION)
    tab.run("document.querySelector('.epoch-details summary').click()")
    assert tab.run("document.getElementById('epochs').checkVisibility()") is True


def click(tab: Tab, selector: str) -> None:
    """Clicks what leads to another page, and waits for that page."""
    before = tab.run("performance.timeOrigin")
    tab.run(f'document.querySelector("{selector}").click()')
    tab.wait_until(f"performance.timeOrigin !== {before} && document.readyState === 'complete'")

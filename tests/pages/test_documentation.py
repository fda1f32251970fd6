"""The documents as pages: sound markup, links that lead to something, an anchor for each alert."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urljoin

import pytest

from tests.conftest import ROOT
from tests.docs.test_docs import anchors
from tests.pages.make import site
from tests.pages.markup import page
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark_exporters.pages.documentation import CHAPTERS, DOCUMENTS, PAGES

every = pytest.mark.parametrize("name", sorted(PAGES))


@every
def test_a_document_is_a_page_and_its_links_lead_to_pages(name: str) -> None:
    root = page(site(), f"/docs/{name}")
    static = urljoin(f"/docs/{name}", root.one("link", rel="stylesheet").attributes["href"])
    assert static.startswith("/static/")
    (article,) = root.all("article")
    ids = {each.attributes["id"] for each in article.walk() if "id" in each.attributes}
    assert ids == anchors(ROOT / "docs" / f"{name}.md")
    for link in article.all("a"):
        target = link.attributes.get("href", "")
        if not target or target.startswith(("http://", "https://")):
            continue
        document, _, anchor = urljoin(f"/docs/{name}", target).partition("#")
        assert document.removeprefix("/docs/") in PAGES, target
        assert anchor in {"", *anchors(ROOT / f"{document[1:]}.md")}, target


def test_the_contents_list_the_headings() -> None:
    contents = page(site(), "/docs/runbooks").one("nav", class_="contents")
    assert {link.attributes["href"] for link in contents.all("a")} >= {
        f"#{alert_name(detector).lower()}" for detector in DETECTORS
    }


def test_the_list_has_every_document_of_the_project() -> None:
    titles = [link.text for link in page(site(), "/docs").one("main").all("a")]
    assert titles == list(DOCUMENTS.values())
    present = {path.stem for path in (ROOT / "docs").glob("*.md")}
    # Of interest to who changes Tidemark.
    assert present - DOCUMENTS.keys() == {"architecture"}


def test_a_chapter_is_in_the_list_of_its_document() -> None:
    listed = {
        link.attributes["href"].partition("#")[0]
        for link in page(site(), "/docs/replication").one("article").all("a")
        if "href" in link.attributes
    }
    assert {*CHAPTERS} <= listed
    present = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").glob("*/*.md")}
    assert {path.with_suffix("").as_posix() for path in present} == {*CHAPTERS}


def test_an_address_in_the_former_page_leads_on_to_the_chapter() -> None:
    """A fragment does not reach the server: its entry in the contents is the link."""
    article = page(site(), "/docs/replication").one("article")
    *_, entry = (item for item in article.all("li") if item.all("a", id="zombie-leader"))
    assert entry.all("a")[-1].attributes["href"] == (
        "replication/leader-epochs#a-leader-that-does-not-know-about-its-successor"
    )


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        *(
            (path, "", HTTPStatus.NOT_FOUND)
            for path in (
                *("/docs/nothing", "/docs/", "/docs/../pyproject", "/docs/runbooks/", "/docs/a/b"),
            )
        ),
        # A document takes no parameters.
        ("/docs/runbooks", "q=1", HTTPStatus.BAD_REQUEST),
    ],
)
def test_another_address_is_refused(path: str, query: str, status: HTTPStatus) -> None:
    assert site().answer(path, query).status is status

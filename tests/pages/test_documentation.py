"""The documents as pages: sound markup, links that lead to something, an anchor for each alert."""

from __future__ import annotations

import html
import os
import shlex
import subprocess
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.conftest import ROOT
from tests.docs.test_docs import anchors
from tests.pages.make import site
from tests.pages.markup import body, page
from tidemark_exporters.pages.documentation import CHAPTERS, DOCUMENTS, PAGES, runbooks
from tidemark_exporters.pages.runbook_values import fill

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
        document = document.removeprefix("/docs/")
        assert document in PAGES | runbooks().keys(), target
        assert not anchor or anchor in anchors(ROOT / "docs" / f"{document}.md"), target


def test_the_runbooks_lead_on_from_their_former_anchors_with_the_values() -> None:
    root = page(site(), "/docs/runbooks", cluster="east", topic="a b")
    (entry,) = [item for item in root.all("li") if item.all("a", id="kafkaoffline")]
    address = entry.all("a")[-1].attributes["href"]
    assert address == "runbooks/kafkaoffline?cluster=east&topic=a+b"
    single = page(site(), "/docs/runbooks/kafkaoffline", cluster="east", topic="a b")
    assert single.one("article").all("p")[0].text.startswith("Do first. ")
    links = {link.attributes.get("href") for link in single.one("article").all("a")}
    assert "../runbooks?cluster=east&topic=a+b#save-a-log" in links
    assert "../runbooks/kafkaquorumunhealthy?cluster=east&topic=a+b" in links
    assert "../guide#before-you-elect-a-leader" in links


def read_by_a_shell(script: str, **environment: str) -> list[str]:
    """The words that each command of a runbook gets; those that a shell refuses are left out."""
    printed = "".join(f"(printf '%s\\0' {line}\n)\n" for line in script.splitlines())
    ran = subprocess.run(
        ["sh", "-c", printed], env=environment, capture_output=True, text=True, check=False
    )
    return ran.stdout.split("\0")


@pytest.mark.parametrize(
    "topic", ["orders", "-x.y_z", "a b", "$(id)`id`", "'\"\\;&|<b>*?#", "ä$HOME"]
)
def test_a_value_stays_one_word_of_its_command(topic: str) -> None:
    script = "a $TOPIC-$PARTITION \"t=$TOPIC&x\" '$TOPIC' # it's $TOPIC\n"
    filled = fill(script, {"topic": topic, "partition": "3"})
    words = ["a", f"{topic}-3", f"t={topic}&x", "$TOPIC"]
    assert read_by_a_shell(filled)[:-1] == words
    shown = page(site(), "/docs/runbooks/kafkacommitteddataloss", topic=topic, partition=3)
    copied = next(each.text for each in shown.all("pre") if "cp -a" in each.text)
    assert f"/{shlex.quote(topic)}-3 " in copied


def test_a_value_that_is_not_known_is_not_run() -> None:
    script = 'export TOPIC=example\ncp $LOGDIR/$TOPIC "$SAFE/x"\n'
    assert read_by_a_shell(fill(script, {"topic": "a"}))[:-1] == ["export", "TOPIC=a"]
    assert fill(script, {}).startswith("# export TOPIC=example\n")
    known = read_by_a_shell(fill(script.splitlines()[1], {"topic": "a"}), LOGDIR="/d e", SAFE="/s")
    assert known[:-1] == ["cp", "/d e/a", "/s/x"]


def test_the_search_finds_sections_and_the_runbook_first() -> None:
    first = page(site(), "/docs", q="kafkaoffline").one("main").all("a")[0]
    assert first.attributes["href"] == "docs/runbooks/kafkaoffline#kafkaoffline"
    assert "No section" in page(site(), "/docs", q="no-such-word").one("main").text


def test_the_list_has_every_document_of_the_project() -> None:
    titles = [link.text for link in page(site(), "/docs").one("ul", class_="documents").all("a")]
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


def test_the_commands_save_the_log_of_each_holder_and_of_no_other(tmp_path: Path) -> None:
    """On the hosts of brokers 3, 13 and 1, with one folder for all copies."""
    values = {"topic": "a", "partition": 0, "old_leader": 1, "holders": "1,3"}
    text = body(site(), "/docs/runbooks/kafkacommitteddataloss", **values)
    shown = html.unescape(text.partition('<code class="language-sh">')[2].partition("</code>")[0])
    for host in (3, 13, 1):
        data, safe = tmp_path / str(host), tmp_path / "safe"
        (data / "a-0").mkdir(parents=True)
        (data / "a-0" / "0.log").write_text(str(host))
        (data / "meta.properties").write_text(f"version=1\nnode.id={host}\n")
        (data / "recovery-point-offset-checkpoint").touch()
        where = {**os.environ, "SAFE": str(safe), "LOGDIR": str(data)}
        subprocess.run(["sh", "-c", shown], env=where, check=True)
    found = {path.parent.parent.name: path.read_text() for path in safe.glob("*/a-0/0.log")}
    assert found == {"broker-1": "1", "broker-3": "3"}
    assert (safe / "broker-3" / "meta.properties").exists()


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        *(
            (path, "", HTTPStatus.NOT_FOUND)
            for path in (
                *("/docs/nothing", "/docs/", "/docs/../pyproject", "/docs/runbooks/", "/docs/a/b"),
            )
        ),
        # Only runbooks take parameters, and each its own kind.
        ("/docs/guide", "topic=a", HTTPStatus.BAD_REQUEST),
        ("/docs/runbooks", "q=1", HTTPStatus.BAD_REQUEST),
        ("/docs/runbooks/kafkaoffline", "old_leader=$(id)", HTTPStatus.BAD_REQUEST),
        ("/docs/runbooks/kafkaoffline", "topic=a%1b%5b201~b", HTTPStatus.BAD_REQUEST),
        ("/docs/runbooks/kafkaoffline", f"topic={'a' * 256}", HTTPStatus.BAD_REQUEST),
    ],
)
def test_another_address_is_refused(path: str, query: str, status: HTTPStatus) -> None:
    assert site().answer(path, query).status is status

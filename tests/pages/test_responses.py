"""Errors, headers and static files."""

from __future__ import annotations

import gzip

import pytest

from tests.pages.make import HOSTILE, site
from tests.pages.markup import ask, parse
from tests.pages.test_markup import PAYMENTS
from tidemark.web.exchange import POLICY
from tidemark_exporters.pages.responses import static_file


@pytest.mark.parametrize(
    ("path", "parameters", "status", "message"),
    [
        ("/nothing", {}, 404, "Page `/nothing` does not exist."),
        ("/deep/er/still", {}, 404, "Page `/deep/er/still` does not exist."),
        (
            "/topic",
            {"cluster": "east", "topic": "gone"},
            404,
            "Topic `gone` of cluster `east` is not known: it was deleted, is not watched, or was",
        ),
        ("/topic", {"cluster": "east"}, 400, "Topic is missing."),
        (
            "/partition",
            {**PAYMENTS, "partition": 9},
            404,
            "Partition 9 of topic `payments` of cluster `east` is not known: it was deleted",
        ),
        ("/partition", {**PAYMENTS, "partition": "x"}, 400, "Partition must be a whole number"),
        (
            "/partition",
            {**PAYMENTS, "from": 5},
            400,
            "From and to must be given together, and from must be below to.",
        ),
        (
            "/partition",
            {**PAYMENTS, "from": 5, "to": 5},
            400,
            "From and to must be given together, and from must be below to.",
        ),
        (
            "/broker",
            {"cluster": "east", "broker": 77},
            404,
            "Broker 77 of cluster `east` is not known: it has no replica",
        ),
        ("/partitions", {"state": HOSTILE}, 400, "State must be one of unhealthy, offline, lost"),
        ("/", {"x": 1}, 400, "Unknown parameter `x`; known parameters: cluster."),
    ],
)
def test_an_error_page_has_one_line(
    path: str, parameters: dict[str, object], status: int, message: str
) -> None:
    response = ask(site(), path, **parameters)
    root = parse(response.body.decode())
    assert response.status == status
    assert message in root.one("main").text
    style = root.all("link", rel="stylesheet")[0].attributes["href"]
    assert style.startswith("../" * (path.count("/") - 1) + "static/")


def test_an_unknown_name_may_appear_while_views_are_being_read() -> None:
    response = ask(site(waiting=["partition views"]), "/topic", cluster="east", topic="gone")
    assert "it may appear soon" in response.body.decode()


def test_headers() -> None:
    for path, kind in (("/", "text/html; charset=utf-8"), ("/api/v1/topics", "application/json")):
        assert {
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
        } <= set(ask(site(), path).headers)
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'; ")


def test_large_answers_are_compressed_for_clients_that_accept_it() -> None:
    plain, packed = site().answer("/partitions", ""), site().answer("/partitions", "", "gzip, br")
    assert dict(packed.headers)["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert "Content-Encoding" not in dict(plain.headers)


@pytest.mark.parametrize("name", ["tidemark.css", "tidemark.js", "icon.svg"])
def test_a_static_file_is_cached_by_its_content(name: str) -> None:
    body, etag = static_file(name)
    first = site().answer(f"/static/{name}", "v=x")
    assert (first.status, first.body, dict(first.headers)["ETag"]) == (200, body, etag)
    assert "immutable" in dict(first.headers)["Cache-Control"]
    again = site().answer(f"/static/{name}", "", if_none_match=etag)
    assert (again.status, again.body) == (304, b"")
    assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"")
    assert b"https://" not in body


@pytest.mark.parametrize(
    "name", ["", "../responses.py", "..%2fresponses.py", "templates/base.html", "nothing.css"]
)
def test_no_other_file_is_served(name: str) -> None:
    assert site().answer(f"/static/{name}", "").status == 404

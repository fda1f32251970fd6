"""A browser, and the exporter's HTTP side over a table of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.browser.chromium import Chromium, Tab
from tests.conftest import need
from tests.export.make import key_of
from tests.pages.make import site, table
from tidemark.core.records import View
from tidemark.web.exchange import Response
from tidemark.web.health import Health
from tidemark_exporters.export.table import Table
from tidemark_exporters.http_server import Site, serve_site

PARTITION = "/partition?" + urlencode({"cluster": "east", "topic": "payments", "partition": 3})


class Exporter:
    """Its time is fixed."""

    def __init__(self) -> None:
        self.table = Table()
        self._site = Site(bytes, site(self.table))
        self.server = serve_site(self._site, Health(), "127.0.0.1:0")
        self.url = f"http://127.0.0.1:{self.server.port}"

    def fill(self, filled: Table) -> None:
        """Serves this table from now on."""
        self.table = filled
        self._site.pages = site(self.table)

    def put(self, view: View) -> None:
        """Applies a view; the next request shows it."""
        self.table.apply(key_of(view), view)
        self._site.pages = site(self.table)

    def fail(self) -> None:
        """Answers every request as a proxy without an upstream does, until `fill`."""
        error = Response(HTTPStatus.BAD_GATEWAY, [("Content-Type", "text/html")], b"<p>502</p>")
        self._site.pages.answer = lambda *_: error  # type: ignore[method-assign]

    def open(self, chromium: Chromium, path: str, **options: Any) -> Tab:
        tab = chromium.page(**options)
        tab.open(self.url + path)
        return tab


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with closing(Chromium(need("chromium"), tmp_path_factory.mktemp("chromium"))) as started:
        yield started


@pytest.fixture(scope="session")
def server() -> Iterator[Exporter]:
    exporter = Exporter()
    yield exporter
    exporter.server.close()


@pytest.fixture
def exporter(server: Exporter) -> Exporter:
    server.fill(table())
    return server

"""A page as a tree of elements with attributes and text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

from tidemark.web.exchange import Response
from tidemark_exporters.pages.responses import Pages

VOID = {"meta", "link", "img", "input", "br", "rect", "line", "path", "circle", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: Element | None
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(c if isinstance(c, str) else c.text for c in self.children).split())

    def walk(self) -> list[Element]:
        found = [self]
        for child in self.children:
            if isinstance(child, Element):
                found += child.walk()
        return found

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Elements below with these attributes; `class_` means one of the classes."""
        return [
            each
            for each in self.walk()
            if each.tag == tag
            and all(
                value in each.attributes.get("class", "").split()
                if name == "class_"
                else each.attributes.get(name) == value
                for name, value in attributes.items()
            )
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        (found,) = self.all(tag, **attributes)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {}, None)
        self._place = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self._place)
        self._place.children.append(element)
        if tag not in VOID:
            self._place = element

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._place.tag == tag, f"</{tag}> closes <{self._place.tag}>"
        assert self._place.parent is not None
        self._place = self._place.parent

    def handle_data(self, data: str) -> None:
        self._place.children.append(data)


def parse(html: str) -> Element:
    """The page as a tree. Fails on elements that are not closed in order."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader._place is reader.root, f"<{reader._place.tag}> is not closed"
    return reader.root


def ask(pages: Pages, path: str, **parameters: object) -> Response:
    return pages.answer(path, urlencode(parameters))


def body(pages: Pages, path: str, **parameters: object) -> str:
    response = ask(pages, path, **parameters)
    assert response.status == 200, response.body.decode()
    return response.body.decode()


def page(pages: Pages, path: str, **parameters: object) -> Element:
    return parse(body(pages, path, **parameters))


def items(pages: Pages, name: str, **parameters: object) -> Any:
    """The API's answer, decoded."""
    return json.loads(body(pages, f"/api/v1/{name}", **parameters))

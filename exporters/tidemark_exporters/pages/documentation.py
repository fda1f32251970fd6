"""The documents that come with Tidemark, as pages: an alert's runbook is one click away."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from posixpath import normpath
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from tidemark.assets import read_asset
from tidemark_exporters.pages.query import NotFoundError, quote

# Name in the address -> title. Each is docs/<name>.md.
DOCUMENTS: Final = {
    "runbooks": "Runbooks",
    "alerts": "Alerts explained",
    "install": "Install",
    "guide": "Guide",
    "shadow": "Adopt in shadow",
    "operations": "Operations",
    "replication": "How Kafka replicates",
    "deploy": "Deployment",
    "permissions": "Permissions",
    "escrow": "Escrow",
    "web": "Health, TLS and users",
    "versions": "Versions of Kafka",
    "drills": "Drills",
    "performance": "Performance",
    "metrics": "Metrics",
    "api": "API",
    "comparison": "Comparison",
}
# Chapters of a document, which lists them: each is docs/<name>.md too.
CHAPTERS: Final = tuple(
    f"replication/{name}"
    for name in (
        "terms",
        "writes",
        "high-watermark",
        "acknowledgements",
        "in-sync-replicas",
        "min-isr",
        "elections",
        "truncation-to-high-watermark",
        "leader-epochs",
        "protocols",
        "losses",
        "offsets-that-move-back",
        "disk",
        "in-tidemark",
        "claims",
    )
)
PAGES: Final = frozenset((*DOCUMENTS, *CHAPTERS))
PREFIX: Final = "docs"
_LINK = re.compile(r"(?P<path>[a-z./-]+)\.md(?P<anchor>#[^#]*)?")


class Document(NamedTuple):
    title: str
    # HTML, made from our own file alone.
    content: Markup
    # (level, anchor, heading) down to the second level
    headings: list[tuple[int, str, str]]


@lru_cache(maxsize=len(PAGES))
def read_document(name: str) -> Document:
    """Raises NotFoundError for another name, and TidemarkError where none is installed."""
    if name not in PAGES:
        raise NotFoundError(f"document {quote(name)} does not exist.")
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(read_asset(f"docs/{name}.md"))
    headings = list(_name_headings(tokens))
    for token in tokens:
        _point_links_at_pages(token, name)
    content = Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 ours
    return Document(DOCUMENTS.get(name, headings[0][2]), content, headings)


def anchor_of(heading: str) -> str:
    """As GitHub names it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _name_headings(tokens: list[Token]) -> list[tuple[int, str, str]]:
    found = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            level, anchor = int(token.tag[1:]), anchor_of(inline.content)
            token.attrSet("id", anchor)
            if level <= 2:
                found.append((level, anchor, inline.content))
    return found


def _point_links_at_pages(token: Token, name: str) -> None:
    """A link to another document leads to its page, one to a file of the source to nothing."""
    folder, _, _ = name.rpartition("/")
    to_root = "../" * name.count("/")
    children = token.children or []
    for child in children:
        if child.type != "link_open":
            continue
        target = str(child.attrGet("href") or "")
        link = _LINK.fullmatch(target)
        page = normpath(f"{folder}/{link['path']}").lstrip("/") if link else ""
        if link is not None and page in PAGES:
            child.attrSet("href", f"{to_root}{page}{link['anchor'] or ''}")
        elif not target.startswith(("#", "http://", "https://")):
            del child.attrs["href"]
            child.attrSet("title", target)

"""The documents that come with Tidemark, as pages: an alert's runbook is one click away.

A search finds words in all of them, without an index on disk and without a script.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple
from urllib.parse import urljoin

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from tidemark.assets import read_asset
from tidemark_exporters.pages.query import NotFoundError, quote
from tidemark_exporters.pages.runbook_values import VARIABLE, Values, fill_for_each
from tidemark_exporters.pages.text import page_address

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
RUNBOOKS: Final = "runbooks"
# Of runbooks.md, the section of an alert: a page of its own.
_RUNBOOK: Final = re.compile(
    r"^## ((?:Kafka|Tidemark)\w+)\n(.*?)(?=^##? |\Z)", re.MULTILINE | re.DOTALL
)
MAX_RENDERED: Final = 128

MAX_WORDS: Final = 8
MAX_FOUND: Final = 30
# A fenced block, which can have lines like headings; a heading.
_BLOCK: Final = re.compile(r"^ *```.*?^ *```$|^#{1,3} ([^\n]+)$", re.MULTILINE | re.DOTALL)
# Marks of Markdown, and addresses of links.
_MARKS: Final = re.compile(r"\]\([^)]*\)|<[^>]*>|[`*\[\]|#]+|\s+")


class Document(NamedTuple):
    title: str
    # HTML, made from our own file alone.
    content: Markup
    # (level, anchor, heading) down to the second level
    headings: list[tuple[int, str, str]]


@lru_cache(maxsize=1)
def runbooks() -> dict[str, str]:
    """Name in the address, once an anchor -> the runbook of an alert. Raises TidemarkError."""
    found = _RUNBOOK.findall(read_asset(f"docs/{RUNBOOKS}.md"))
    return {f"{RUNBOOKS}/{name.lower()}": f"# {name}\n{text}" for name, text in found}


def source(name: str) -> str:
    """Raises NotFoundError for another name, and TidemarkError where none is installed."""
    if name in runbooks():
        return runbooks()[name]
    if name not in PAGES:
        raise NotFoundError(f"document {quote(name)} does not exist.")
    text = read_asset(f"docs/{name}.md")
    # Former addresses lead to the entries.
    return _RUNBOOK.sub(
        lambda each: f'* <a id="{each[1].lower()}"></a>[{each[1]}](#{each[1].lower()})\n', text
    )


@lru_cache(maxsize=MAX_RENDERED)
def read_document(name: str, values: Values = ()) -> Document:
    """`values`: what the commands of the runbooks are filled in with. Raises as `source` does."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(source(name))
    headings = list(_name_headings(tokens))
    for token in tokens:
        _point_links_at_pages(token, name, page_address("", **dict(values)))
        if name.startswith(RUNBOOKS):
            _fill_in(token, dict(values))
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


def _fill_in(token: Token, values: dict[str, str]) -> None:
    """The renderer escapes what is filled in."""
    if token.type == "fence":
        token.content = fill_for_each(token.content, values)
    for child in token.children or []:
        named = VARIABLE.fullmatch(child.content) if child.type == "code_inline" else None
        if named is not None:
            child.content = values.get(named[1].lower(), child.content)


def _point_links_at_pages(token: Token, name: str, query: str) -> None:
    """A link to another document leads to its page, one to a file of the source to nothing.

    `query`: what runbooks hand on to one another.
    """
    for child in token.children or []:
        target = child.attrGet("href") if child.type == "link_open" else None
        if not isinstance(target, str):
            continue
        found = _page_of(target, name)
        if found is not None:
            page, anchor = found
            handed = query if page.startswith(RUNBOOKS) and name.startswith(RUNBOOKS) else ""
            elsewhere = f"{'../' * name.count('/')}{page}{handed}{anchor}"
            child.attrSet("href", anchor if anchor and page == name else elsewhere)
        elif not target.startswith(("http://", "https://")):
            del child.attrs["href"]
            child.attrSet("title", target)


def _page_of(target: str, name: str) -> tuple[str, str] | None:
    """(page, anchor) that a link of page `name` leads to; None: to no page."""
    file = RUNBOOKS if name.startswith(RUNBOOKS) else name
    path, mark, anchor = urljoin(f"{file}.md", target).partition("#")
    page, single = path.removesuffix(".md"), f"{RUNBOOKS}/{anchor}"
    if page == RUNBOOKS and single in runbooks():
        return single, ""
    return (page, mark + anchor) if page in PAGES and page != path else None


class Section(NamedTuple):
    document: str
    heading: str
    # Below the root.
    address: str
    text: str


@lru_cache(maxsize=1)
def _sections() -> list[Section]:
    found = []
    for name in (*runbooks(), *DOCUMENTS, *CHAPTERS):
        text, title = source(name), DOCUMENTS.get(name.partition("/")[0], name)
        starts = [each for each in _BLOCK.finditer(text) if each[1]]
        for start, end in zip(starts, [*(each.start() for each in starts[1:]), None], strict=True):
            address = f"docs/{name}#{anchor_of(start[1])}"
            heading, words = (_MARKS.sub(" ", raw) for raw in (start[1], text[start.end() : end]))
            found.append(Section(title, heading, address, words))
    return found


def search(text: str) -> list[Section]:
    """The sections with all the words, those that have them in their heading first.

    In place of their text is what is around the first word.
    """
    words = text.casefold().split()[:MAX_WORDS]

    def has_all(where: str) -> bool:
        return all(word in where.casefold() for word in words)

    found = [each for each in _sections() if words and has_all(f"{each.heading} {each.text}")]
    found.sort(key=lambda each: not has_all(each.heading))
    return [each._replace(text=_excerpt(each.text, words[0])) for each in found[:MAX_FOUND]]


def _excerpt(text: str, word: str) -> str:
    around = re.search(rf"\b.{{0,60}}{re.escape(word)}.{{0,160}}", text, re.IGNORECASE)
    return f"… {around[0]} …" if around else text[:220]

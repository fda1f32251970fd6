"""A search over all documents by words, without an index on disk and without a script."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from tidemark_exporters.pages.documentation import CHAPTERS, DOCUMENTS, anchor_of, runbooks, source

MAX_WORDS: Final = 8
MAX_FOUND: Final = 30
# A fenced block, which can have lines like headings; a heading.
_BLOCK: Final = re.compile(r"^ *```.*?^ *```$|^#{1,3} ([^\n]+)$", re.MULTILINE | re.DOTALL)
# Marks of Markdown, and addresses of links.
_MARKS: Final = re.compile(r"\]\([^)]*\)|<[^>]*>|[`*\[\]|#]+|\s+")


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

"""What the reducer said wrongly, or did not say, in one history."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple


class Finding(NamedTuple):
    """`number`: at which pass."""

    kind: str
    number: int
    text: str


class Findings:
    """The first of each kind, so that counts are of histories; and counts of what was judged."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.counts = Counter[str]()

    def add(self, kind: str, number: int, text: str) -> None:
        if not any(finding.kind == kind for finding in self.found):
            self.found.append(Finding(kind, number, text))

"""Each cell of a table with its heading: on a narrow screen the style sheet shows rows as cards."""

from __future__ import annotations

import re
from typing import Final

_TABLE: Final = re.compile(r"<table\b.*?</table>", re.DOTALL)
_HEADING: Final = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_ROW: Final = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL: Final = re.compile(r"<t[dh]\b")
_TAG: Final = re.compile(r"<[^>]*>")


def label_cells(page: str) -> str:
    """The page with `data-label` in the cells of all tables. Text in it is escaped already."""
    return _TABLE.sub(lambda table: _labelled(table[0]), page)


def _labelled(table: str) -> str:
    head, end, body = table.partition("</thead>")
    labels = [_TAG.sub("", each).strip().replace('"', "&quot;") for each in _HEADING.findall(head)]

    def labelled_row(row: re.Match[str]) -> str:
        names = iter(labels)
        return _CELL.sub(lambda cell: f'{cell[0]} data-label="{next(names, "")}"', row[0])

    return head + end + _ROW.sub(labelled_row, body)

"""Renders the templates. Every value is escaped, and a name that is not set is an error.

Each cell of a table has its heading: on a narrow screen the style sheet shows rows as cards.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from tidemark import __version__
from tidemark.assess.causes import by_cause
from tidemark.assess.health import SEVERITIES, STALE, STATES, Level, severity_level
from tidemark.assess.incident.step import happenings
from tidemark.assess.leader_death import range_text
from tidemark.assess.risky_configuration import MEANINGS
from tidemark.assess.safe_to_stop import EFFECT_TEXTS
from tidemark.assess.watermarks import above_log_end, high_watermark_lag, low_watermark
from tidemark.assess.while_down import SAVES, cost_of_saving, while_down
from tidemark.core.links import below, dashboard_path, runbook_path
from tidemark_exporters.evidence import holders_text
from tidemark_exporters.pages import evidence_text, text
from tidemark_exporters.pages.alerts import count_by_severity
from tidemark_exporters.pages.listing import STATE_CHOICES
from tidemark_exporters.pages.snapshot import TableSnapshot

_TABLE: Final = re.compile(r"<table\b.*?</table>", re.DOTALL)
_HEADING: Final = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_ROW: Final = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL: Final = re.compile(r"<t[dh]\b")
_TAG: Final = re.compile(r"<[^>]*>")

# How often an open page reloads its data.
REFRESH_SECONDS: Final = 5
# Colour is never the only sign of a level.
SIGNS: Final[dict[Level, str]] = {
    "critical": "✕",
    "warning": "!",
    "unknown": "?",
    "info": "i",
    "ok": "✓",
}


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


def render(template: str, snapshot: TableSnapshot, **context: Any) -> str:
    """`context`: what base.html needs (waiting, path, root, static) and what the template needs."""
    open_alerts = count_by_severity(snapshot.open_alerts)
    page = (
        _environment()
        .get_template(template)
        .render(snapshot=snapshot, now=snapshot.now, open_alerts=open_alerts, **context)
    )
    return label_cells(page)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tidemark_exporters.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "age": text.age,
        "broker_list": text.broker_list,
        "count": text.count,
        "counted": text.counted,
        "duration": text.duration,
        "iso_time": text.iso_time,
        "offset": text.offset,
        "size": text.size,
        "utc_time": text.utc_time,
    }
    environment.globals |= {
        "EFFECT_TEXTS": EFFECT_TEXTS,
        "SEVERITIES": SEVERITIES,
        "SIGNS": SIGNS,
        "SAVES": SAVES,
        "RISKS": MEANINGS,
        "STATES": {**STATES, STALE.name: STALE},
        "STATE_CHOICES": STATE_CHOICES,
        "above_log_end": above_log_end,
        "evidence_facts": evidence_text.evidence_facts,
        "level_of": severity_level,
        "happenings": happenings,
        "holders_text": holders_text,
        "by_cause": by_cause,
        "lost_ranges": evidence_text.lost_ranges,
        "high_watermark_lag": high_watermark_lag,
        "low_watermark": low_watermark,
        "range_text": range_text,
        "dashboard": lambda base, labels: below(base, dashboard_path(labels)),
        "runbook": runbook_path,
        "cost_of_saving": cost_of_saving,
        "while_down": while_down,
        "refresh_seconds": REFRESH_SECONDS,
        "url": text.page_address,
        "version": __version__,
        "written_between": evidence_text.written_between,
    }
    return environment


def _make_visible(value: Any) -> Any:
    """Applied to each {{ value }}."""
    return text.visible(value) if type(value) is str else value

"""The files of the pages: an index, one page for each story, and what they share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

import tidemark_exporters.pages
from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.pages.document import story_document
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.fates import settings_lines
from tidemark_lab.model.scenarios.glossary import GLOSSARY, LEADER_EPOCH
from tidemark_lab.model.scenarios.invariants import CHECKED
from tidemark_lab.model.scenarios.render import render_scenario
from tidemark_lab.model.scenarios.scenario import Scenario

INDEX: Final = "index.html"
STATIC: Final = ("tidemark.css", "play.css", "play.js")
# In the order of reading the first two are the exercises of the articles.
EXERCISES: Final = ("two-replica-write", "three-replica-write")
_EXERCISE: Final = (
    '<p class="notice info"><b>An exercise.</b> Hide the values. Before each step, say the log end '
    "offset and the high watermark of every replica, and what the leader knows of its followers. "
    "Then step on, and show them.</p>"
)
_LEAD: Final = (
    '<p class="lead">Each story is one partition, step by step. Two protocols play the same '
    "schedule side by side. Begin with the two exercises.</p>"
)
TEXT_WIDTH: Final = 170


def file_names() -> list[str]:
    return [INDEX, *STATIC, *(f"{name}.html" for name in SCENARIOS)]


def render_file(name: str) -> bytes:
    """The content of one of `file_names`."""
    if name in STATIC:
        return _static(name)
    main = _index() if name == INDEX else _story(SCENARIOS[name.removesuffix(".html")])
    title = "Stories of replication" if name == INDEX else name.removesuffix(".html")
    page = Template(_text("page.html")).substitute(title=escape(title), main=main)
    if name == INDEX:
        page = page.replace('<script src="play.js" defer></script>\n', "")
    return page.encode()


def _static(name: str) -> bytes:
    """The pages of the exporter and these have one style."""
    package = tidemark_exporters.pages.__name__ if name == "tidemark.css" else __package__
    return files(package or "").joinpath("static", name).read_bytes()


def _text(name: str) -> str:
    return _static(name).decode()


def _index() -> str:
    return "\n".join(
        (
            "<h1>Stories of replication</h1>",
            _LEAD,
            "<ol>",
            *(
                f'<li><p><a href="{name}.html">{name}</a>{" (exercise)" * (name in EXERCISES)}<br>'
                f"{escape(scenario.question)}</p></li>"
                for name, scenario in SCENARIOS.items()
            ),
            "</ol>",
        )
    )


def _story(scenario: Scenario) -> str:
    before, after = _neighbours(scenario.name)
    # No end tag and no comment can begin in it.
    data = json.dumps(story_document(scenario), ensure_ascii=False).replace("<", "\\u003c")
    return Template(_text("story.html")).substitute(
        title=scenario.name,
        question=escape(scenario.question),
        exercise=_EXERCISE if scenario.name in EXERCISES else "",
        before=before,
        after=after,
        leader_epoch=escape(LEADER_EPOCH),
        settings=_settings(scenario),
        glossary=_definitions(GLOSSARY.items()),
        invariants=_definitions(
            (each.name, f"{each.plain} Exactly: {each.statement} It holds {each.holds_where}.")
            for each in map(INVARIANTS.__getitem__, CHECKED)
        ),
        texts="\n".join(_text_of(scenario, protocol) for protocol in scenario.protocols),
        data=data,
    )


def _definitions(entries: Iterable[tuple[str, str]]) -> str:
    return "\n".join(
        f"<dt>{escape(word)}</dt><dd>{escape(meaning)}</dd>" for word, meaning in entries
    )


def _settings(scenario: Scenario) -> str:
    lines = settings_lines(scenario)
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    title = "<h2>What the same steps lose under each protocol, and with another setting</h2>"
    return f"{title}\n<ul>{items}</ul>" if lines else ""


def _text_of(scenario: Scenario, protocol: str) -> str:
    text = escape("\n".join(render_scenario(scenario, protocol, width=TEXT_WIDTH)))
    return (
        f"<details><summary>The whole story as text, under {protocol}</summary>"
        f'<pre tabindex="0">{text}</pre></details>'
    )


def _neighbours(name: str) -> Iterator[str]:
    names = list(SCENARIOS)
    at = names.index(name)
    for other, words in ((at - 1, "first story"), (at + 1, "last story")):
        inside = 0 <= other < len(names)
        yield f'<a href="{names[other]}.html">{names[other]}</a>' if inside else words

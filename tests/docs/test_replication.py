"""docs/replication shows what the model prints, proves its claims, and links to its sources."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.kafka_links import FOLDERS, KIP, KIPS, REFERENCE, SOURCE, VERSION, definitions
from tests.docs.replication import (
    BLOCK,
    CHAPTERS,
    EVENTS,
    INDEX,
    OPTIONS,
    PAGES,
    WIDTH,
    block,
    filled,
    stale,
    step_table,
)
from tests.docs.test_docs import anchors
from tests.model.golden import FOLDER
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.effects import effects

TEXTS = {path: path.read_text(encoding="utf-8") for path in PAGES}
TEXT = "".join(TEXTS.values())
# The pages without their code blocks and without the definitions of their links.
PROSES = {
    path: re.sub(r"^```[\s\S]*?^```$|^\[.+?\]: .+$", "", text, flags=re.MULTILINE)
    for path, text in TEXTS.items()
}
PROSE = "".join(PROSES.values())
CLAIMS = PROSES[CHAPTERS / "claims.md"]
STEP = re.compile(
    r"\[(?P<name>[a-z0-9-]+)\]\([a-z-]+\.md#(?P=name)\)(?: under (?P<protocol>[a-z0-9-]+))?"
    r", step (?P<step>\d+)(?:: “(?P<words>[^”]+)”)?"
)
# Words of a heading that begin with a capital, besides the first one.
NAMES = {"ISR", "Kafka", "Tidemark"}


def table_rows(text: str) -> list[list[str]]:
    """The cells of all table rows, without headings. A bar in code ends a cell on GitHub too."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    rules = [number for number, row in enumerate(rows) if set("".join(row)) <= {"-", ":"}]
    return [
        row for number, row in enumerate(rows) if number not in rules and number + 1 not in rules
    ]


ROWS = table_rows(CLAIMS)
# Of each entry of the contents: its anchors, its text, and the chapter and the anchor of its link.
CONTENTS = re.findall(
    r"^ *(?:\d+\.|\*) ((?:<a id=\"[^\"]+\"></a>)+)\[(.+)\]\(replication/([a-z-]+\.md)#(.+)\)$",
    TEXTS[INDEX],
    flags=re.MULTILINE,
)
# The anchors of docs/replication.md when it was one page.
FORMER = set((ROOT / "tests" / "testdata" / "replication_anchors.txt").read_text().split())


every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


@every_page
def test_every_block_is_up_to_date(path: Path) -> None:
    text = TEXTS[path]
    assert list(stale(text)) == []
    assert filled(text) == text
    comments = re.findall(r"<!-- (?:model|kafka) ", text)
    assert len(BLOCK.findall(text)) == len(comments) == text.count("<!-- end -->")


def test_an_edited_block_is_out_of_date() -> None:
    text = TEXTS[CHAPTERS / "writes.md"]
    edited = text.replace("2 appends m0", "2 drops m0", 1)
    assert list(stale(edited)) == ["model show two-replica-write --steps 1-6 --without epochs"]
    assert filled(edited) == text


@pytest.mark.parametrize(
    ("made", "text", "error"),
    [
        (block, "model show no-such-scenario --steps 1", "invalid choice: 'no-such-scenario'"),
        (block, "model show two-replica-write", "--steps --logs is required"),
        (block, "model show two-replica-write --steps 7", "two-replica-write has no step 7"),
        (block, "model show two-replica-write --logs 3,7", "two-replica-write has no step 7"),
        (
            block,
            "model show two-replica-write --steps 1 --without horoscope",
            "two-replica-write has no column horoscope",
        ),
        (block, "model ends unclean-election --protocol kip-1", "invalid choice: 'kip-1'"),
        (
            block,
            "model counterexample kip-101.NoSuchInvariant",
            "there is no counterexample kip-101.NoSuchInvariant",
        ),
        (definitions, "[KIP-1]", "KIP-1 has no page in KIPS"),
        (definitions, "[`Horoscope.java:1`]", "Horoscope.java has no folder in FOLDERS"),
    ],
)
def test_an_unknown_name_is_rejected(
    made: Callable[[str], list[str]], text: str, error: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        made(text)


def test_an_excerpt_has_its_rows_and_marks_the_omitted_ones() -> None:
    lines = block("model show two-replica-write --steps 1-2,6 --without epochs")
    heading, *rows = lines[1 : lines.index("```", 1)]
    assert [row.split()[0] for row in rows if row[0] != " "] == ["1", "2", "…", "6"]
    # Wrapping loses no word of the last column.
    words = " ".join(row[heading.index("what happens") :].strip() for row in rows)
    whole = step_table(SCENARIOS["two-replica-write"].run())
    assert words.split() == " ".join(whole.steps[step][-1] for step in (1, 2, 6)).split()
    assert "cut" not in heading and "epochs" not in heading


def test_a_counterexample_shows_the_options_that_find_it() -> None:
    assert block("model counterexample kip-101.LogMatching.epochs-to-3")[-1].endswith(
        "--invariant LogMatching --records 3 --max-epoch 3`</sub>"
    )
    assert block("model counterexample kip-101.WeakIsr")[-1].endswith("--invariant WeakIsr`</sub>")
    assert {
        part
        for path in (FOLDER / "counterexamples").iterdir()
        for part in path.name.split(".")[2:-1]
    } == set(OPTIONS)


def test_drawings_and_tables_fit_the_width_of_a_page() -> None:
    fenced = re.findall(r"^```text\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert fenced
    assert [line for text in fenced for line in text.splitlines() if len(line) > WIDTH] == []


def test_every_scenario_is_shown_and_has_an_anchor() -> None:
    orders = [found["order"].split() for found in BLOCK.finditer(TEXT)]
    shown = {order[2] for order in orders if order[1] in {"show", "ends"}}
    assert shown == SCENARIOS.keys()
    assert [name for name in SCENARIOS if f'<a id="{name}"></a>' not in TEXT] == []


def test_headings_are_in_sentence_case() -> None:
    headings = re.findall(r"^#+ (?:\d+\. )?(.+)$", PROSE, flags=re.MULTILINE)
    assert headings and [text for text in headings if not text[0].isupper()] == []
    capitals = [re.findall(r"\b[A-Z]\w*", text)[1:] for text in headings]
    assert {word for words in capitals for word in words} <= NAMES
    assert [text for text in headings if text.endswith((".", "?", ":"))] == []


def test_the_list_of_contents_leads_to_every_heading() -> None:
    headings = {
        (path.name, heading)
        for path in PAGES[1:]
        for heading in re.findall(r"^#+ (?:\d+\. )?(.+)$", PROSES[path], flags=re.MULTILINE)
    }
    listed = {(chapter, text) for _, text, chapter, _ in CONTENTS}
    assert headings <= listed


def test_every_anchor_of_the_single_page_leads_to_its_chapter() -> None:
    """Addresses of docs/replication.md from when it was one page lead on from there."""
    own = anchors(INDEX)
    assert [anchor for anchor in FORMER if anchor not in own] == []
    chapter_of = {
        anchor: (chapter, target)
        for ids, _, chapter, target in CONTENTS
        for anchor in re.findall(r'id="([^"]+)"', ids)
    }
    # The title of the page, which is there still.
    assert FORMER - chapter_of.keys() == {"how-kafka-replicates-and-how-replication-fails"}
    for anchor in FORMER & chapter_of.keys():
        chapter, target = chapter_of[anchor]
        assert {anchor, target} <= anchors(CHAPTERS / chapter), anchor


def test_the_chapters_follow_one_another() -> None:
    order = list(dict.fromkeys(chapter for _, _, chapter, _ in CONTENTS))
    assert order[0] == "terms.md" and {*order} == {path.name for path in PAGES[1:]}
    links = [
        re.findall(r" · next: \[.+\]\((.+)\)$", PROSES[CHAPTERS / name], re.MULTILINE)
        for name in order
    ]
    assert links == [[name] for name in order[1:]] + [[]]


def test_every_kip_and_every_source_file_is_a_link() -> None:
    without_links = REFERENCE.sub("", PROSE)
    assert KIP.findall(without_links) == []
    assert SOURCE.findall(without_links) == []
    assert re.findall(r"\w+\.(?:java|scala)\b", without_links) == []


@every_page
def test_every_link_to_kafka_is_defined_once_and_has_its_form(path: Path) -> None:
    links = dict(re.findall(r"^\[(.+?)\]: (.+)$", TEXTS[path], flags=re.MULTILINE))
    assert [f"[{label}]: {url}" for label, url in links.items()] == definitions(TEXTS[path])
    wiki = r"https://cwiki\.apache\.org/confluence/display/KAFKA/{}(?:%3A)?\+[\w+-]+"
    for label, url in links.items():
        source = SOURCE.fullmatch(label.strip("`"))
        if source is None:
            assert re.fullmatch(wiki.format(label), url), url
            continue
        tag, file, first, last = source.group("tag", "file", "first", "last")
        file_path, lines = url.removeprefix("https://github.com/apache/kafka/blob/").split("#")
        assert file_path.startswith(f"{tag or VERSION}/") and file_path.endswith(f"/{file}")
        language = "scala" if file.endswith(".scala") else "java"
        assert f"/src/main/{language}/" in file_path
        assert lines == (f"L{first}-L{last}" if last else f"L{first}")
        assert int(last or first) >= int(first) > 0


def test_every_known_kip_and_source_file_is_used() -> None:
    labels = {found[1].strip("`") for found in REFERENCE.finditer(PROSE)}
    files = {source["file"] for label in labels if (source := SOURCE.fullmatch(label))}
    assert files == FOLDERS.keys()
    assert {label for label in labels if KIP.fullmatch(label)} == KIPS.keys()


def test_the_common_claims_are_corrected() -> None:
    assert len(ROWS) >= 68
    claims = " ".join(claim for claim, _, _ in ROWS)
    for words in (
        "Recovery point = LEO",
        "min(current HW",
        "replica.lag.max.messages",
        "followers never serve reads",
        "loss impossible",
        "10 s",
    ):
        assert words in claims


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_each_correction_is_proven_by_a_scenario_or_by_kafkas_source(row: list[str]) -> None:
    assert len(row) == 3 and all(row)
    for part in re.split(r"; (?=\[)", row[2]):
        found = STEP.fullmatch(part)
        if found is None:
            source = REFERENCE.fullmatch(part)
            assert source is not None and SOURCE.fullmatch(source[1].strip("`")), part
            continue
        name, protocol, step, words = found.group("name", "protocol", "step", "words")
        assert name in SCENARIOS and (protocol is None or protocol in PROTOCOLS)
        steps = step_table(SCENARIOS[name].run(protocol)).steps
        assert int(step) < len(steps)
        assert words is None or words in steps[int(step)][-1]


def test_its_alerts_and_metrics_exist() -> None:
    alerts = {alert_name(detector) for detector in DETECTORS}
    assert set(re.findall(r"\bKafka[A-Z][A-Za-z]+(?=\])", TEXT)) <= alerts
    metrics = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tidemark_\w+)`", TEXT))
    assert named and [name for name in named if f"`{name}`" not in metrics] == []


def test_all_rows_of_a_table_have_the_same_number_of_cells() -> None:
    tables = re.findall(r"(?:^\|.*\n)+", PROSE, flags=re.MULTILINE)
    assert tables
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1, table


def test_the_table_of_the_five_values_follows_from_the_scenarios() -> None:
    rows = {row[0].split(" ([")[0]: row[1:] for row in table_rows("\n".join(_listed("offsets")))}
    # Within a leadership the leader's values only rise, and only a fetch shows a follower's LEO.
    leader = {cell for row in rows.values() for cell in (row[0], row[3])}
    assert leader == {"rises", "–"}
    assert [event for event, row in rows.items() if "known" in row[2]] == [
        "A follower's fetch reaches the leader",
        "A broker becomes leader",
    ]
    assert [event for event, row in rows.items() if "rises" in row[4]] == [
        "The follower gets the response"
    ]


def test_the_table_of_completions_follows_from_the_scenarios() -> None:
    rows = {
        row[0].split(" ([")[0]: row[1:] for row in table_rows("\n".join(_listed("completions")))
    }
    assert rows["A follower's fetch reaches the leader"] == ["yes", "–", "yes", "yes"]
    assert rows["The follower gets the response"] == ["–", "–", "yes", "–"]
    assert rows["Time passes"] == ["yes"] * 4
    # Every kind of step that completes a request has a row.
    methods = {each for methods in EVENTS.values() for each in methods} | {"wait", "poll"}
    found = effects(scenario.run("kip-966") for scenario in SCENARIOS.values())
    assert {kind for kind, _ in found} <= methods


def _listed(what: str) -> list[str]:
    return block(f"model list {what}")

"""docs/replication.md says what the model prints, and proves what it says."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT
from tests.docs.replication import BLOCK, OPTIONS, PAGE, WIDTH, block, filled, stale, told
from tests.model.golden import FOLDER
from tidemark.core.identity import alert_name
from tidemark.detect import DETECTORS
from tidemark.model.protocols import PROTOCOLS
from tidemark.model.scenarios import SCENARIOS

TEXT = PAGE.read_text(encoding="utf-8")
PROVEN, SOURCES = TEXT.split("\n## 14. Often said, and true\n")[1].split("\n## Sources\n")
STEP = re.compile(
    r"\[(?P<name>[a-z0-9-]+)\]\(#(?P=name)\)(?: under (?P<protocol>[a-z0-9-]+))?, step (?P<step>\d+)(?:: “(?P<words>[^”]+)”)?"
)
SOURCE = re.compile(
    r"`(?:\d+\.\d+(?:\.\d+)*:)?(?P<file>[A-Z]\w+\.(?:java|scala)):(?P<first>\d+)(?:-(?P<last>\d+))?`"
)


def cells(text: str) -> list[list[str]]:
    """The rows of all tables in a text, without headings; a bar in code ends a cell on GitHub too."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    rules = [number for number, row in enumerate(rows) if set("".join(row)) <= {"-", ":"}]
    return [
        row for number, row in enumerate(rows) if number not in rules and number + 1 not in rules
    ]


ROWS = cells(PROVEN)


def test_every_block_is_what_the_model_prints() -> None:
    assert list(stale(TEXT)) == []
    assert filled(TEXT) == TEXT
    assert len(BLOCK.findall(TEXT)) == TEXT.count("<!-- model ") == TEXT.count("<!-- end -->")


def test_a_block_that_was_edited_is_found() -> None:
    edited = TEXT.replace("2 appends m0", "2 drops m0", 1)
    assert list(stale(edited)) == ["show two-replica-write --steps 1-6 --without epochs"]
    assert filled(edited) == TEXT


@pytest.mark.parametrize(
    ("order", "refused"),
    [
        ("show no-such-story --steps 1", "invalid choice: 'no-such-story'"),
        ("show two-replica-write", "--steps --logs is required"),
        ("show two-replica-write --steps 7", "two-replica-write has no step 7"),
        ("show two-replica-write --logs 3,7", "two-replica-write has no step 7"),
        (
            "show two-replica-write --steps 1 --without horoscope",
            "two-replica-write has no column horoscope",
        ),
        ("ends unclean-election --protocol kip-1", "invalid choice: 'kip-1'"),
        (
            "counterexample kip-101.NoSuchInvariant",
            "there is no counterexample kip-101.NoSuchInvariant",
        ),
    ],
)
def test_a_block_that_asks_for_what_is_not_there_is_refused(order: str, refused: str) -> None:
    with pytest.raises(ValueError, match=re.escape(refused)):
        block(order)


def test_an_excerpt_keeps_the_rows_and_says_where_some_are_left_out() -> None:
    lines = block("show two-replica-write --steps 1-2,6 --without epochs")
    table = lines[1 : lines.index("```", 1)]
    assert [line.split()[0] for line in table if line[0] != " "] == ["step", "1", "2", "…", "6"]
    whole = told(SCENARIOS["two-replica-write"].play())
    # Nothing of what happened is lost by the other breaking of lines.
    words = " ".join(line[table[0].index("what happens") :].strip() for line in table[1:])
    assert words.split() == " ".join(whole.steps[step][-1] for step in (1, 2, 6)).split()
    assert "cut" not in table[0] and "epochs" not in table[0]


def test_a_counterexample_names_the_options_that_find_it() -> None:
    assert block("counterexample kip-101.LogMatching.epochs-to-3")[-1].endswith(
        "--invariant LogMatching --records 3 --max-epoch 3`</sub>"
    )
    assert block("counterexample kip-101.WeakIsr")[-1].endswith("--invariant WeakIsr`</sub>")
    assert {
        part
        for path in (FOLDER / "counterexamples").iterdir()
        for part in path.name.split(".")[2:-1]
    } == set(OPTIONS)


def test_drawings_and_tables_fit_beside_a_page() -> None:
    fenced = re.findall(r"^```text\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert fenced
    assert [line for text in fenced for line in text.splitlines() if len(line) > WIDTH] == []


def test_every_story_is_told_and_can_be_linked_to() -> None:
    orders = [found["order"].split() for found in BLOCK.finditer(TEXT)]
    assert {order[1] for order in orders if order[0] in {"show", "ends"}} == SCENARIOS.keys()
    assert [name for name in SCENARIOS if f'<a id="{name}"></a>' not in TEXT] == []


def test_there_are_rows_for_what_is_often_said() -> None:
    assert len(ROWS) >= 50
    said = " ".join(row[0] for row in ROWS)
    for words in (
        "Recovery point = LEO",
        "min(current HW",
        "replica.lag.max.messages",
        "followers never serve reads",
        "loss impossible",
        "10 s",
    ):
        assert words in said


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_each_row_is_proven_by_a_step_of_a_story_or_by_a_line_of_kafka(row: list[str]) -> None:
    assert len(row) == 3 and all(row)
    proof = row[2]
    for found in STEP.finditer(proof):
        name, protocol, step, words = found.group("name", "protocol", "step", "words")
        assert name in SCENARIOS and (protocol is None or protocol in PROTOCOLS)
        steps = told(SCENARIOS[name].play(protocol)).steps
        assert int(step) < len(steps)
        assert words is None or words in steps[int(step)][-1]
    for found in SOURCE.finditer(proof):
        assert int(found["last"] or found["first"]) >= int(found["first"]) > 0
    # Nothing else stands there: each part is the one or the other.
    assert (
        re.sub(
            r"(?:; )?(?:§|$)",
            "",
            SOURCE.sub("§", STEP.sub("§", proof)).replace("§; §", "§").replace("§; §", "§"),
        )
        == ""
    )


def test_every_file_of_kafka_has_its_path_and_no_path_is_left_over() -> None:
    paths = {row[0].strip("`"): row[1].strip("`") for row in cells(SOURCES)}
    assert {found["file"] for found in SOURCE.finditer(TEXT)} == paths.keys()
    assert all(path.endswith(f"/{name}") for name, path in paths.items())


def test_alerts_and_metrics_that_it_names_are_there() -> None:
    alerts = {alert_name(detector) for detector in DETECTORS}
    assert set(re.findall(r"\bKafka[A-Z][A-Za-z]+(?=\])", TEXT)) <= alerts
    metrics = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tidemark_\w+)`", TEXT))
    assert named and [name for name in named if f"`{name}`" not in metrics] == []


def test_tables_have_as_many_cells_in_every_row() -> None:
    tables = re.findall(
        r"(?:^\|.*\n)+",
        re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL),
        flags=re.MULTILINE,
    )
    assert tables
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1, table

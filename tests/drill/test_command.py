from __future__ import annotations

import json

import pytest

from tidemark.cli import main
from tidemark.drill.drills.table import DRILLS, NOT_PLAYED


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["drill", *arguments])
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_the_list_names_every_drill_and_why_stories_have_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(capsys, "list")
    assert code == 0
    assert all(name in out for name in (*DRILLS, *NOT_PLAYED))
    document = json.loads(run(capsys, "list", "--json")[1])
    assert [drill["name"] for drill in document["drills"]] == list(DRILLS)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("run", "nothing"), "no drill is named nothing"),
        (("run", "purgatory-race"), "the story purgatory-race has no drill"),
        (("run", "zombie-leader", "--kafka", "0.10.2.2"), "runs on Kafka 4.1.2"),
        (("run", "zombie-leader", "--kafka", "9"), "a local cluster runs Kafka"),
        (("all", "--kafka", "1.1.1"), "no drill runs on Kafka 1.1.1"),
    ],
)
def test_a_wrong_name_or_version_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reason: str
) -> None:
    code, _, err = run(capsys, *arguments)
    assert code in (1, 2)
    assert reason in err
    assert err.count("\n") == 1

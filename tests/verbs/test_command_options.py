"""What every verb has: the same --config, --command-config beside --bootstrap, and --json."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import click
import pytest

from tests.conftest import ROOT
from tests.verbs.run import configured, tidemark
from tidemark import __version__
from tidemark.assets import list_assets
from tidemark.cli import HELP_LINES, cli
from tidemark.collect.cluster_choice import unwatched_line
from tidemark.settings import Cluster, Topics
from tidemark_lab.model.scenarios import SCENARIOS

# They run until they are stopped, or for minutes with a live table: their results are records,
# metrics, pages, or files (demo-report.json, the truth.json of a recording).
LONG_RUNNING = {"collect", "escrow", "stream", "top", "demo", "drill chaos"}
SOURCES = ("streaming", "exporters", "lab")
LONG_RUNNING |= {"model export", "model serve"}


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for each, inner in command.commands.items():
            yield from leaves(inner, f"{name} {each}")
    else:
        yield name, command


def verbs() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in HELP_LINES:
        command = cli.get_command(context, name)
        assert command is not None
        yield from leaves(command, name)


VERBS = dict(verbs())


def options(command: click.Command) -> dict[str, click.Option]:
    return {
        flag: each
        for each in command.params
        if isinstance(each, click.Option)
        for flag in each.opts
    }


def texts() -> Iterator[tuple[str, bool]]:
    """The literal texts, {} where a value goes, and whether each is a docstring."""
    for path in chain.from_iterable((ROOT / part).rglob("*.py") for part in SOURCES):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(getattr(part, "value", "")) for part in node.values), False
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value, id(node) in alone


def test_every_command_in_a_message_is_one_with_its_options_and_their_words() -> None:
    found = 0
    for text, _ in texts():
        for command in re.findall(r"(?<![\w-])tidemark ([a-z-]+[^`.;,)>|]*)", text):
            words = command.split()
            name = " ".join(words[: 2 if " ".join(words[:2]) in VERBS else 1])
            known = options(VERBS[name]) if name in VERBS else {}
            for flag, value in pairwise([*words, ""]):
                if not flag.startswith("--") or flag == "--help":
                    continue
                found += 1
                assert flag in known, command
                kind = known[flag].type
                assert not isinstance(kind, click.Choice) or value in kind.choices, command
    assert found >= 20


def test_a_message_that_names_a_document_says_where_an_installed_one_is() -> None:
    shipped, found = {path for path, _ in list_assets()}, 0
    for text, is_docstring in texts():
        named = set(() if is_docstring else re.findall(r"docs/[\w-]+\.(?:md|yaml)", text))
        found += len(named - {text})
        assert named <= shipped and (named <= {text} or "tidemark assets" in text), text
    assert found >= 8


def test_every_verb_that_connects_takes_the_properties_of_kafkas_tools_but_two() -> None:
    """As docs/guide.md says. `replay` and `drill` take no connection."""
    known = {verb: options(each) for verb, each in VERBS.items()}
    without = {v for v, o in known.items() if "--config" in o and "--command-config" not in o}
    assert without - {"replay"} == {"stream", "export"}


@pytest.mark.parametrize("verb", VERBS)
def test_options_with_one_meaning_have_one_name_and_one_text(verb: str) -> None:
    found = options(VERBS[verb])
    assert "--json" in found or verb in LONG_RUNNING
    if "--bootstrap" in found:
        assert "--command-config" in found and "--config" in found
    if "--config" in found:
        assert found["--config"].envvar == "TIDEMARK_CONFIG"
        assert "Default: $TIDEMARK_CONFIG." in (found["--config"].help or "")
    if verb in {"collect", "stream", "export", "top"}:
        assert {"--log-level", "--log-format", "--kafka-client-log-level"} <= found.keys()


def test_json_of_the_verbs_without_kafka(tmp_path: Path) -> None:
    assert json.loads(tidemark("version", "--json").out)["tidemark"] == __version__
    assert json.loads(tidemark("assets", "list", "--json").out) == {
        "files": [path for path, _ in list_assets()]
    }
    written = json.loads(tidemark("assets", "export", str(tmp_path / "a"), "--json").out)
    assert len(written["files"]) == len(list(list_assets()))
    listed = json.loads(tidemark("model", "list", "--json").out)
    assert [each["name"] for each in listed["scenarios"]] == list(SCENARIOS)
    name = next(iter(SCENARIOS))
    shown = json.loads(tidemark("model", "show", name, "--json").out)
    assert shown["name"] == name and shown["steps"][0].keys() == shown["steps"][-1].keys()


def test_json_of_check_config_is_one_object_also_where_nothing_answers(tmp_path: Path) -> None:
    text = (
        "kafka: {bootstrap_servers: ['127.0.0.1:1']}\nclusters: [{name: a, "
        "bootstrap_servers: ['127.0.0.1:1']}]"
    )
    checked = json.loads(configured(tmp_path, text, "check-config", "--json").out)
    assert checked == {
        "config": str(tmp_path / "tidemark.yaml"),
        "clusters": ["a"],
        "misspelt_variables": {},
        "warnings": [],
        "not_watched": [unwatched_line(Cluster(name="a"), Topics())],
    }
    found = configured(tmp_path, text, "check-config", "--reach", "--acls", "--json", code=1)
    reached = json.loads(found.out)["reach"]
    assert [each["name"] for each in reached] == ["kafka (Tidemark's own topics)", "cluster a"]
    assert all("refused the connection" in each["error"] for each in reached)
    assert json.loads(found.out)["acls"]


def test_a_verb_with_bootstrap_reads_the_properties_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SASL_SSLL\n", encoding="utf-8")
    for verb, command in VERBS.items():
        if "--command-config" in options(command):
            topic = ["orders", "0"] if verb in {"timeline", "choose-leader", "inspect"} else []
            given = {"safe-to-stop": ["1"], "salvage": [str(tmp_path), "--losses"]}.get(verb, topic)
            end = tidemark(*verb.split(), *given, "--command-config", str(tmp_path), code=2)
            assert "--command-config: cannot read" in end.err, verb

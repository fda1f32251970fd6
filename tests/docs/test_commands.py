"""The commands of all documents: run on recordings, or parsed, or listed with the reason why not.

docs/runbooks.md is checked by test_runbooks; the scenarios of docs/replication are generated.
"""

from __future__ import annotations

import re
import shlex
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from tests.conftest import ROOT
from tests.docs.test_docs import DOCUMENTS
from tests.verbs.recordings import trace, write
from tests.verbs.run import tidemark
from tidemark.cli import HELP_LINES, cli

RUNBOOKS = "runbooks.md"
# Commands of Tidemark that are run, in a folder with the files that the documents name.
RUN = {
    "replay",
    "version",
    "assets list",
    "assets export",
    "model list",
    "check-config --config config.yaml",
    "check-config --schema",
    "inspect --losses --from",
    "timeline --from",
}
# Programs of the documents that are not run here, and why.
NOT_RUN = {
    "make": "tests.docs.test_docs checks its targets",
    "curl": "needs a running exporter; the API's tests ask the same addresses",
    "kafka-topics.sh": "tests.stream.test_event_topic asks the broker for the same",
    "kafka-acls.sh": "tests.cluster.test_rights_of_verbs grants the rights of the page",
    "cp": "of the system",
    "eval": "of the shell",
    "export": "of the shell",
    "systemctl": "needs systemd",
    "python": "tests.jvm fetches jars",
    "python3": "tests.cluster.test_new_user makes the environment of the README",
    "pip": "tests.cluster.test_new_user installs the wheel",
    ".": "of the shell",
    "tee": "of the system",
    "openssl": "tests.escrow.test_sealed reads a key of this form",
}


# Where the documented units expect the assets.
SYSTEM_FOLDER = "/opt/tidemark/assets"


def blocks(path: Path) -> Iterator[str]:
    """Fenced blocks of a shell or without a language, and indented blocks."""
    text = path.read_text(encoding="utf-8")
    fence = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", flags=re.MULTILINE | re.DOTALL)
    for _, language, body in fence.findall(text):
        if language in {"", "sh", "bash", "console"}:
            yield textwrap.dedent(body)
    rest = fence.sub("", re.sub(r"<!-- (\w+).*?<!-- end -->", "", text, flags=re.DOTALL))
    for body in re.findall(r"(?:(?<=\n\n)|\A)((?: {4}\S.*\n)+)", rest):
        yield textwrap.dedent(body)


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a block: pipes split, redirections and comments left out."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|>;&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, "|"]:
            if word not in {"|", "&&", ";"}:
                words.append(word)
                continue
            words = words[: words.index(">")] if ">" in words else words
            words = [*_without_variables(words)]
            if words:
                yield [words[0].rpartition("/")[2], *words[1:]]
            words = []


def _without_variables(words: list[str]) -> Iterator[str]:
    """Without the variables that a command is given: `TIDEMARK_JARS=jars tidemark stream`."""
    begun = False
    for word in words:
        begun = begun or not re.match(r"[A-Z_]+=", word)
        if begun:
            yield word


def is_shell(text: str) -> bool:
    """Whether a block is commands and not a drawing or an output."""
    first = [line.split()[0].rpartition("/")[2] for line in text.splitlines() if line.strip()]
    return any(name in {"tidemark", *NOT_RUN} or name.startswith("kafka-") for name in first) and (
        not text.startswith("tidemark top  ")
    )


SHELL = [
    (path.name, words)
    for path in DOCUMENTS
    if path.name not in {RUNBOOKS, "CHANGELOG.md"}
    for block in blocks(path)
    if is_shell(block)
    for words in commands(block)
]
OURS = sorted({shlex.join(words) for _, words in SHELL if words[0] == "tidemark"})
INLINE = sorted(
    {
        (path.name, " ".join(span.split()))
        for path in DOCUMENTS
        if path.name != "CHANGELOG.md"
        for span in re.findall(r"`(tidemark [^`]+)`", path.read_text(encoding="utf-8"))
    }
)


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words begin with, and the others."""
    context = click.Context(cli)
    found = cli.get_command(context, words[0])
    assert found is not None, words[0]
    rest = words[1:]
    while isinstance(found, click.Group) and rest and rest[0] in found.commands:
        found, rest = found.commands[rest[0]], rest[1:]
    return found, rest


def test_there_are_commands_in_the_documents() -> None:
    """If the blocks are no longer found, the other tests check nothing."""
    assert len(OURS) > 40 and len(INLINE) > 60


def test_every_other_program_has_a_reason_why_it_is_not_run() -> None:
    found = {(path, words[0]) for path, words in SHELL if words[0] != "tidemark"}
    assert {each for each in found if each[1] not in NOT_RUN} == set()
    assert {name for _, name in found} == NOT_RUN.keys()


def assert_understood(command: str) -> None:
    """By the verb's own parser, types and choices included; nothing is run."""
    _, *words = shlex.split(command)
    assert words[0] in HELP_LINES
    found, rest = command_of(words)
    try:
        found.make_context(words[0], rest, parent=click.Context(cli))
    except click.BadParameter as error:
        # The folders and files of an example.
        if not error.message.endswith("does not exist."):
            raise


@pytest.mark.parametrize("command", OURS)
def test_each_command_is_understood(command: str) -> None:
    assert_understood(command)


@pytest.mark.parametrize(("path", "span"), INLINE)
def test_each_flag_named_in_a_sentence_exists(path: str, span: str) -> None:
    words = span.replace("…", "").split()
    found, rest = command_of(words[1:])
    known = {flag for each in found.params for flag in each.opts} | {"--help", "-h"}
    assert {word.partition("=")[0] for word in rest if word.startswith("--")} <= known, path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the documents name: the README's configuration, and a recorded election."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    *_, minimal = re.findall(r"^```yaml\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    secret = tmp_path / "on-call-webhook"
    secret.write_text("https://hooks.example.org/x", encoding="utf-8")
    document = yaml.safe_load(minimal)
    document["notify"]["receivers"][0]["url_file"] = str(secret)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    (tmp_path / "new.yaml").write_text("thresholds: {lag_ms: 99000}\n", encoding="utf-8")
    lines = trace("unclean")
    for name in ("events.jsonl", "monday.jsonl"):
        write(tmp_path / name, lines)
    (tmp_path / "events.jsonl.gz").write_bytes((tmp_path / "events.jsonl").read_bytes())
    for name in ("tuesday.jsonl.gz", "metadata.jsonl"):
        shutil.copy(tmp_path / "events.jsonl", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_run(command: str) -> bool:
    words = command.split()[1:]
    # A command that writes outside of the folder of the test is only parsed.
    return not {"-", SYSTEM_FOLDER} & set(words) and any(
        set(each.split()) <= set(words) and words[0] == each.split()[0] for each in RUN
    )


RUNNABLE = [command for command in OURS if is_run(command) and "--reach" not in command]


@pytest.mark.parametrize("command", [c for c in RUNNABLE if "--test-receiver" not in c])
def test_commands_that_need_no_kafka_run(command: str, folder: Path) -> None:
    _, *words = shlex.split(command)
    if words[0] == "timeline":
        words[words.index("payments-3")] = "trace-0"
    code = 3 if words[:2] == ["inspect", "--losses"] else 0
    shown = tidemark(*words, code=code)
    assert shown.out or "--force" in words


def test_each_way_to_run_is_used() -> None:
    assert {each for each in RUN if not any(is_run(command) for command in OURS)} <= {
        "version",
        "model list",
    }

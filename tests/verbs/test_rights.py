"""What `check-config` prints about rights: no "ok" without an answer, and commands that fit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.documented_rights import Right, optional_rights, rights_of_verbs
from tests.verbs.run import configured
from tidemark.collect.metadata.refusals import ASKED, QUORUM, RECORDS, TOPICS
from tidemark.core.events import Batch, Observation, Pass, Replica
from tidemark.settings import Cluster, Settings, Topics
from tidemark.verbs.check_config import acls, rights

SCRAM = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "o'neil"}
CLUSTER = Cluster(name="orders", bootstrap_servers=["k:9093"], client=SCRAM)


def test_an_api_is_ok_only_where_an_answer_shows_it() -> None:
    lines = list(rights.api_lines(CLUSTER, {TOPICS}, {RECORDS: ("TOPIC_AUTHORIZATION_FAILED",)}))
    assert lines[0] == "ok: Metadata, ListOffsets (Describe on topics)"
    assert lines[1].startswith("refused: Fetch (Read on topics): TOPIC_AUTHORIZATION_FAILED: high")
    assert all(line.startswith("not known: ") for line in lines[2:7])
    assert lines[7] == "to grant what is refused:"
    assert lines[8] == (
        "  kafka-acls.sh --bootstrap-server k:9093 --add --allow-principal "
        "'User:o'\"'\"'neil' --operation Read --topic '*'"
    )
    assert len(lines) == 9


def test_every_question_has_its_api() -> None:
    assert rights.APIS.keys() == ASKED.keys()


def test_answers_are_found_in_events() -> None:
    sample = Replica(broker=1, high_watermark=5)
    seen = Observation(topic="t", partition=0, observed_at=1.0, samples=[sample])
    ended = Pass(
        number=1, started_at=1.0, ended_at=2.0, period_ms=1000.0, monotonic=1.0, quorum_leader=100
    )
    batch = Batch(
        v=2, cluster="c", collector="x", collector_epoch=1, pass_number=1, events=[seen, ended]
    )
    assert rights.answered([batch]) == {TOPICS, RECORDS, QUORUM}


STATES = {
    "allowed": frozenset({"READ", "WRITE", "DESCRIBE"}),
    "reader": frozenset({"READ", "DESCRIBE"}),
    "denied": "denied",
    "absent": "absent",
    "unknown": "unknown",
}


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ("allowed", "ok: collect (topics; rights on groups are not asked)"),
        ("reader", "refused: collect needs Write on tidemark.replica-state"),
        ("denied", "refused: collect needs Describe, Write on tidemark.replica-state"),
        ("absent", "not known: collect: its topics are not there"),
        ("unknown", "not known: collect: the brokers do not say what may be done with "),
    ],
)
def test_a_verb_is_ok_only_with_all_its_rights(state: str, line: str) -> None:
    settings = Settings()
    grants = acls.verb_grants(settings)["collect"]
    found = list(
        rights._verb_lines(settings, "collect", grants, {"tidemark.replica-state": STATES[state]})
    )
    assert found[0].startswith(line)
    assert (len(found) == 2) is line.startswith("refused")


def test_the_commands_are_those_of_the_docs(tmp_path: Path) -> None:
    out = configured(tmp_path, "clusters: [{name: orders}]\n", "check-config", "--acls").out
    commands = [line for line in out.splitlines() if line.startswith("kafka-acls.sh")]
    for line in commands:
        words = shlex.split(line)
        assert words[words.index("--allow-principal") + 1] == "User:PRINCIPAL"
    text = (ROOT / "docs" / "permissions.md").read_text().replace(" \\\n     ", "")
    for grant in acls.FULL:
        operations = " ".join(f"--operation {operation}" for operation in grant.operations)
        assert f"{operations} {shlex.join(grant.resource)}" in text
        assert any(f"{operations} {shlex.join(grant.resource)}" in line for line in commands)
    assert "# Tidemark's own topics: export" in out
    assert "'User:PRINCIPAL'" not in out


def granted(grants: Iterable[acls.Grant]) -> set[Right]:
    """As docs/permissions.md writes them: Read and Write imply Describe."""
    found = set()
    for operations, (option, *rest) in grants:
        implied = {"Read", "Write"} & set(operations)
        for operation in operations:
            if operation != "Describe" or not implied:
                name = rest[0] if rest else ""
                prefixed = rest[1:] == ["--resource-pattern-type", "prefixed"]
                found.add(Right(operation, option.removeprefix("--"), name, prefixed))
    return found


def test_each_verb_is_granted_exactly_what_the_docs_list() -> None:
    grants = acls.verb_grants(Settings())
    documented = rights_of_verbs()
    assert documented.keys() == grants.keys()
    assert {verb: granted(each) for verb, each in grants.items()} == documented


def test_the_optional_grants_are_those_of_the_docs() -> None:
    grants = acls.optional_grants(Settings())
    assert granted(each.grant for each in grants) == optional_rights()
    assert len(optional_rights()) == len(grants)


@pytest.mark.parametrize("verb", [*acls.verb_grants(Settings())])
def test_acls_prints_the_commands_of_each_verb_under_its_name(verb: str, tmp_path: Path) -> None:
    text = "kafka: {bootstrap_servers: [k:9092]}\n"
    out = configured(tmp_path, text, "check-config", "--acls").out
    section = out.partition(f"# Tidemark's own topics: {verb}\n")[2].partition("#")[0]
    settings = Settings()
    settings.kafka.bootstrap_servers = ["k:9092"]
    wanted = [acls.command(settings.kafka, grant) for grant in acls.verb_grants(settings)[verb]]
    assert section.splitlines() == wanted


def test_optional_commands_are_printed_as_such(tmp_path: Path) -> None:
    out = configured(tmp_path, "clusters: []\n", "check-config", "--acls").out
    sections = re.findall(r"^# .*optional: .*\n(kafka-acls\.sh .*)$", out, re.MULTILINE)
    assert len(sections) == len(acls.optional_grants(Settings()))
    # Deletion is printed nowhere else.
    assert out.count("Delete") == "\n".join(sections).count("Delete") == 1


def test_the_exporters_groups_have_the_prefix_of_the_topics() -> None:
    """As its deliveries name them; the stream's group has a fixed prefix."""
    settings = Settings(topics=Topics(prefix="acme"))
    grants = acls.verb_grants(settings)
    groups = {
        verb: {right.name for right in granted(grants[verb]) if right.kind == "group"}
        for verb in ("stream", "export")
    }
    assert groups == {"stream": {"tidemark-stream"}, "export": {"acme.notify."}}
    assert "tidemark" not in str(grants["export"])


@pytest.mark.parametrize("verb", [*acls.verb_grants(Settings())])
def test_reach_names_what_a_verb_lacks(verb: str) -> None:
    settings = Settings()
    grants = acls.verb_grants(settings)[verb]
    names = [grant.resource[1] for grant in grants if grant.resource[0] == "--topic"]
    nothing = dict.fromkeys(names, "denied")
    refused = list(rights._verb_lines(settings, verb, grants, nothing))
    assert refused[0].startswith(f"refused: {verb} needs ")
    assert len(refused) == 1 + len(names)
    everything = dict.fromkeys(names, frozenset({"READ", "WRITE", "DESCRIBE"}))
    (line,) = rights._verb_lines(settings, verb, grants, everything)
    assert line.startswith(f"ok: {verb} ")

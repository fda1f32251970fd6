"""What `check-config` prints about rights: no "ok" without an answer, and commands that fit."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.verbs.run import tidemark
from tidemark.collect.refusals import ASKED, QUORUM, RECORDS, TOPICS
from tidemark.core.events import Batch, Observation, Pass, Replica
from tidemark.settings import Cluster, Settings
from tidemark.verbs import acls, rights

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
        v=1, cluster="c", collector="x", collector_epoch=1, pass_number=1, events=[seen, ended]
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
    config = tmp_path / "c.yaml"
    config.write_text("clusters: [{name: orders}]\n")
    out = tidemark("check-config", "--acls", "--config", str(config)).out
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

"""The operator's verbs against the brokers of a run: exit status and output of each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tidemark_lab.drills.stage import TOPIC

FINDING: Final = 3
DEADLINE_SECONDS: Final = 90.0


class Ran(NamedTuple):
    """`text`: standard output. `errors`: standard error."""

    code: int
    text: str
    errors: str


def run_verbs(bootstrap_servers: Sequence[str], topics: Sequence[str]) -> dict[str, Ran]:
    """Each verb by its name, in a process of its own as an operator runs it."""
    commands = {
        "audit": ["audit", *topics, "--whole", "--rate-limit", "0", "--json"],
        "inspect": ["inspect", TOPIC, "0"],
        "safe-to-stop": ["safe-to-stop", "1"],
    }
    return {verb: _run(command, bootstrap_servers) for verb, command in commands.items()}


def _run(command: Sequence[str], bootstrap_servers: Sequence[str]) -> Ran:
    servers = ",".join(bootstrap_servers)
    done = subprocess.run(
        [sys.executable, "-m", "tidemark.cli", *command, "--bootstrap", servers],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def check_verbs(ran: dict[str, Ran], *, has_minimum: bool, has_lineages: bool) -> None:
    """Of a healthy cluster.

    `has_minimum`: its brokers report `min.insync.replicas`. `has_lineages`: its followers show the
    leader epochs of their logs.
    """
    for verb, shown in ran.items():
        assert "Traceback" not in shown.errors, (verb, shown)
    audited = ran["audit"]
    assert audited.code == 0, audited
    document: dict[str, Any] = json.loads(audited.text)
    assert document["differences"] == 0, document
    for partition in document["partitions"]:
        # Every replica was read, to the end of what it had committed.
        assert sorted(partition["compared_replicas"]) == sorted(partition["replicas"]), partition
        assert partition["not_compared"] == {}, partition
        assert partition["compared_offsets"] > 0, partition
    inspected = ran["inspect"]
    assert inspected.code == 0, inspected
    assert "diverges" not in inspected.text, inspected
    assert ("agrees with leader 1 is unknown" in inspected.text) != has_lineages, inspected
    stopped = ran["safe-to-stop"]
    # One of two copies goes.
    assert stopped.code == FINDING, stopped
    assert f"{TOPIC}-0" in stopped.text, stopped
    # What the brokers do not report is unknown, in both.
    assert ("min in sync ?" in inspected.text) != has_minimum, inspected
    assert ("unknown" in stopped.text) != has_minimum, stopped

"""SCRAM, client certificates and OAuth over TLS: each verb, with exactly the printed rights."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.running_verbs import running
from tests.cluster.secure_brokers import (
    SECRET,
    SecureListeners,
    grant,
    secure_cluster,
    secure_listeners,
)
from tests.verbs.run import tidemark
from tidemark.settings import Settings
from tidemark.verbs.check_config.acls import verb_grants
from tidemark_lab.brokers.cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

PARTITIONS = 2
VERBS = ("collect", "stream", "export")


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureListeners]:
    with secure_listeners(tmp_path_factory.mktemp("secure")) as made:
        yield made


@pytest.fixture(scope="module")
def brokers(listeners: SecureListeners) -> Iterator[LocalCluster]:
    with secure_cluster(listeners) as cluster:
        cluster.create_topic("t", {0: [1, 2, 3], 1: [2, 3, 1]}, {"min.insync.replicas": "2"})
        yield cluster


def configuration(listeners: SecureListeners, user: str, folder: Path) -> dict[str, Any]:
    kafka = {"bootstrap_servers": listeners.servers(user), "client": listeners.client(user)}
    return {
        "kafka": kafka,
        "clusters": [{"name": "c", **kafka}],
        "topics": {"partitions": PARTITIONS, "prefix": f"{user}-events"},
        "stream": {"checkpoint": str(folder / "checkpoint")},
    }


@pytest.mark.parametrize("user", ["scram", "mtls", "oauth"])
def test_each_verb_works_with_the_rights_that_check_config_prints(
    user: str, listeners: SecureListeners, brokers: LocalCluster, tmp_path: Path
) -> None:
    made = configuration(listeners, user, tmp_path)
    path = tmp_path / "tidemark.yaml"
    path.write_text(json.dumps(made))
    config = ("--config", str(path))
    printed = tidemark("check-config", "--acls", *config).out
    sections = dict(re.findall(r"^# (.+)\n((?:kafka-acls.*\n)+)", printed, re.MULTILINE))
    left_out = ("Describe only", "optional")
    granted = [text for title, text in sections.items() if not any(w in title for w in left_out)]
    # The cluster, the creation of the topics, and each verb.
    assert len(granted) == 2 + len(verb_grants(Settings()))
    grant(brokers, user, "".join(granted).splitlines())
    with running(tmp_path, dict.fromkeys(VERBS, made)) as started:
        for verb in VERBS:
            started[verb].wait_ready()
        started["export"].wait_for_view("c")
        # A batch that takes long is a warning of its own, and so is a first start of the exporter
        # before the stream has created the topics.
        entries = [entry for verb in started.values() for entry in verb.entries()]
        assert not [
            entry
            for entry in entries
            if entry["level"] == "warning"
            and entry["event"] != "batch"
            and "does not exist" not in entry.get("reason", "")
        ]
        logs = "".join(verb.log.read_text() for verb in started.values())
    shown = [tidemark(*words, *config) for words in one_shot()]
    assert [each.err for each in shown] == [""] * len(shown)
    reached, topped, stopped, inspected = (each.out for each in shown)
    assert "refused" not in reached and "unknown without" not in reached
    assert inspected.startswith("t-0, leader 1, epoch 0, in sync [1,2,3] of [1,2,3], min in sync 2")
    assert stopped.endswith("Safe to stop: no partition is affected.\n")
    assert "tidemark top  c  3 brokers" in topped and "alerts: none open" in topped
    assert SECRET not in logs + "".join(each.out + each.err for each in shown)


def one_shot() -> list[list[str]]:
    return [
        ["check-config", "--reach"],
        ["top", "--plain", "--passes", "4"],
        ["safe-to-stop", "1"],
        ["inspect", "t"],
    ]

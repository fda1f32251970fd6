"""One user for each verb, with exactly the rights that docs/permissions.md lists for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.cluster.rights import RestrictedCluster, client, restricted_cluster
from tests.cluster.running_verbs import running
from tests.verbs.run import tidemark
from tidemark.kafka.topics import ensure_topics
from tidemark.local.receiver import WebhookReceiver
from tidemark.settings import Connection, Topics

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

PARTITIONS = 2


def configuration(
    brokers: RestrictedCluster, user: str, folder: Path, receiver: WebhookReceiver
) -> dict[str, Any]:
    servers = {"bootstrap_servers": brokers.bootstrap_servers}
    return {
        "kafka": {**servers, "client": client(user)},
        "clusters": [{"name": "c", **servers, "client": client("full")}],
        "topics": {"partitions": PARTITIONS},
        "stream": {"checkpoint": str(folder / "checkpoint")},
        "notify": {"receivers": [{"name": "hook", "url": receiver.url}]},
    }


def test_each_verb_works_with_its_documented_rights(tmp_path: Path) -> None:
    with restricted_cluster() as brokers, WebhookReceiver() as receiver:
        verbs = ("collect", "stream", "export")
        made = {verb: configuration(brokers, verb, tmp_path, receiver) for verb in verbs}
        with running(tmp_path, {"collect": made["collect"]}) as started:
            # It may not create them: it waits, and names the topic.
            collect = started["collect"]
            collect.wait_for(
                lambda: (
                    "may not describe topic tidemark.replica-state" in collect.probe("ready")[1]
                    or "cannot create topic tidemark.replica-state" in collect.probe("ready")[1]
                ),
                "reason",
                60.0,
            )
        own = Connection(bootstrap_servers=brokers.local.bootstrap_servers)
        ensure_topics(own, Topics(partitions=PARTITIONS))
        with running(tmp_path, made) as started:
            for verb in verbs:
                started[verb].wait_ready()
            export = started["export"]
            export.wait_for(
                lambda: 'tidemark_partition_leader{kafka_cluster="c"' in metrics(export.url),
                "a view",
                60.0,
            )
            assert "tidemark_event_records_total" not in metrics(export.url)
            assert export.warnings() == ["records are not counted"]
            assert started["collect"].entries()[-1]["level"] == "info"
        path = tmp_path / "inspect.yaml"
        path.write_text(json.dumps(configuration(brokers, "inspect", tmp_path, receiver)))
        tidemark("inspect", "--losses", "--config", str(path))


def metrics(url: str) -> str:
    return requests.get(f"{url}/metrics", timeout=10).text

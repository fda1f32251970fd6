"""One user for each verb, with exactly the rights that docs/permissions.md lists for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.producing import connection, producer_of
from tests.cluster.rights import VERBS, RestrictedCluster, client, restricted_cluster, user_of
from tests.cluster.running_verbs import Verb, running
from tests.scenarios.scenario import Scenario
from tests.verbs.audit.plant import change_batch
from tests.verbs.run import Output, tidemark
from tidemark.core.records import encode_record
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Topics
from tidemark_lab.brokers.receiver import WebhookReceiver

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

PARTITIONS, RECORDS = 2, 30
SERVICES = ("collect", "stream", "export")
ONE_SHOT = {
    "ack",
    "audit --publish",
    "timeline",
    "choose-leader",
    "inspect --losses",
    "salvage --losses",
}
# They need nothing on Tidemark's own topics: what each says that it does not know.
WITHOUT_RIGHTS = {
    ("inspect", "t"): "",
    ("safe-to-stop", "1"): "",
    ("top", "--plain", "--passes", "4"): "",
    ("audit", "t:0", "--whole"): "",
    ("choose-leader", "t", "0"): "choose-leader: earlier samples and open losses",
}
# The last ten of RECORDS.
LOSS = (
    "partition t-0 replicas=1,2,3 min_isr=2",
    "pass 3 add=10 lineage=0:30",
    "pass down=1:refused,3:refused leader=2 epoch=1 isr=2 leo=2:20 hw=20 lineage=0:20",
    "pass 3 lineage=0:20",
)


class Verbs:
    """A configuration for each user, and Tidemark's own topics for the tests' own client."""

    def __init__(self, brokers: RestrictedCluster, folder: Path, receiver: WebhookReceiver) -> None:
        self.brokers, self.folder, self._url = brokers, folder, receiver.url

    def configuration(self, user: str) -> dict[str, Any]:
        servers = {"bootstrap_servers": self.brokers.bootstrap_servers}
        return {
            "kafka": {**servers, "client": client(user)},
            "clusters": [{"name": "c", **servers, "client": client("full")}],
            "topics": {"partitions": PARTITIONS},
            "stream": {"checkpoint": str(self.folder / "checkpoint")},
            "notify": {"receivers": [{"name": "hook", "url": self._url}]},
        }

    def run(self, user: str, *words: str, code: int = 0) -> Output:
        path = self.folder / f"{user}.json"
        path.write_text(json.dumps(self.configuration(user)))
        return tidemark(*words, "--config", str(path), code=code)

    def produce(self, topic: str, values: list[bytes]) -> None:
        """Each in a batch of its own, in partition 0."""
        with producer_of(self.brokers.local, enable_idempotence=False) as producer:
            for value in values:
                producer.send(topic, value, partition=0)
                producer.flush(20)


def test_each_verb_works_with_its_documented_rights(tmp_path: Path) -> None:
    assert VERBS.keys() == {*SERVICES, *ONE_SHOT}
    with restricted_cluster() as brokers, WebhookReceiver() as receiver:
        verbs = Verbs(brokers, tmp_path, receiver)
        verbs.produce("t", [b"record %d" % number for number in range(RECORDS)])
        made = {verb: verbs.configuration(verb) for verb in SERVICES}
        with running(tmp_path, {"collect": made["collect"]}) as started:
            wait_for_topics(started["collect"])
        ensure_topics(connection(brokers.local), Topics(partitions=PARTITIONS))
        for words, unknown in WITHOUT_RIGHTS.items():
            assert verbs.run("none", *words).err.partition(" are not known: ")[0] == unknown
        with running(tmp_path, made) as started:
            check_services(started)
            check_divergence(verbs, started["export"])
        check_losses(verbs)
        check_stored_view(verbs)


def wait_for_topics(collect: Verb) -> None:
    """It may not create them: it waits, and names the topic."""
    collect.wait_for(
        lambda: (
            "may not describe topic tidemark.replica-state" in collect.probe("ready")[1]
            or "cannot create topic tidemark.replica-state" in collect.probe("ready")[1]
        ),
        "reason",
        60.0,
    )


def check_services(started: dict[str, Verb]) -> None:
    for verb in SERVICES:
        started[verb].wait_ready()
    export = started["export"]
    export.wait_for_view("c")
    assert "tidemark_event_records_total" not in export.metrics()
    assert export.warnings() == ["records are not counted"]
    assert started["collect"].entries()[-1]["level"] == "info"


def check_divergence(verbs: Verbs, export: Verb) -> None:
    """`audit --publish` finds a difference, the stream raises it, `ack` closes it."""
    (segment,) = (verbs.brokers.local.log_directory(3) / "t-0").glob("*.log")
    change_batch(segment, 3)
    audit = user_of("audit --publish")
    found = verbs.run(audit, "audit", "t:0", "--whole", "--publish", code=3)
    assert "sent 1 event to tidemark.replica-state" in found.err

    def open_alerts() -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(verbs.run("ack", "ack", "--json").out)["open"]
        return [each for each in listed if each["labels"]["alertname"] == "KafkaDivergence"]

    export.wait_for(lambda: bool(open_alerts()), "alert", 60.0)
    assert "KafkaDivergence" in verbs.run("timeline", "timeline", "t", "0").out
    (alert,) = open_alerts()
    closed = verbs.run("ack", "ack", alert["fingerprint"], "--by", "test", "--wait", "60")
    assert closed.out.startswith("closed: KafkaDivergence c/t-0 ")
    assert open_alerts() == []
    # Neither half of the rights of `timeline` is enough.
    refused = verbs.run(user_of("inspect --losses"), "timeline", "t", "0", code=1)
    assert "topic tidemark.replica-state" in refused.err
    refused = verbs.run("stream", "timeline", "t", "0", code=1)
    assert "topic tidemark.alerts" in refused.err


def check_losses(verbs: Verbs) -> None:
    """An alert on the topic names the last ten records, which a saved log has."""
    scenario = Scenario()
    scenario.play(*LOSS)
    alert = scenario.newest("KafkaCommittedDataLoss")
    verbs.produce("tidemark.alerts", [encode_record(alert)])
    inspect = user_of("inspect --losses")
    losses = verbs.run(inspect, "inspect", "--losses", "--json", code=3).out.splitlines()
    assert [(each["from"], each["to"]) for each in map(json.loads, losses)] == [(20, 30)]
    saved = verbs.folder / "t-0"
    shutil.copytree(verbs.brokers.local.log_directory(1) / "t-0", saved)
    salvage = ("salvage", str(saved), "--losses", "--json", "--values", "text")
    salvaged = verbs.run(user_of("salvage --losses"), *salvage).out.splitlines()
    values = [json.loads(line)["value"] for line in salvaged]
    assert values == [f"record {number}" for number in range(20, 30)]
    choose = user_of("choose-leader")
    for words in [("inspect", "--losses"), salvage]:
        refused = verbs.run(choose, *words, code=1)
        assert "topic tidemark.alerts" in refused.err


def check_stored_view(verbs: Verbs) -> None:
    """What a stopped broker had comes from the topic of views."""
    verbs.brokers.local.stop_broker(3)
    words = ("choose-leader", "t", "0", "--json")
    unknown = "earlier samples and open losses are not known"
    refused = verbs.run("none", *words)
    known = verbs.run(user_of("choose-leader"), *words)
    assert unknown in refused.err
    assert unknown not in known.err
    assert [log_end_of(3, shown) for shown in (refused, known)] == [None, RECORDS]


def log_end_of(broker: int, shown: Output) -> int | None:
    choices = {each["broker"]: each for each in json.loads(shown.out)["choices"]}
    end: int | None = choices[broker]["log_end_offset"]
    return end

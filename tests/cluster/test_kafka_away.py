"""The three long-running verbs before Kafka is there, and through an outage of all its brokers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.running_verbs import Verb, running
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.wait import comes_true

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

# Spark's client gives up after one minute, and its query fails.
OUTAGE_SECONDS = 100.0
RECOVERY_SECONDS = 240.0


def stay_up(verbs: Mapping[str, Verb]) -> None:
    for verb in verbs.values():
        assert verb.process.poll() is None, verb.tail()
        assert verb.probe("healthy")[0] == 200


def test_the_verbs_start_before_kafka_and_go_on_after_an_outage(tmp_path: Path) -> None:
    with LocalCluster() as cluster:
        servers = {"bootstrap_servers": cluster.bootstrap_servers}
        for broker in BROKERS:
            cluster.kill_broker(broker)
        configuration = {
            "kafka": servers,
            "clusters": [{"name": "east", **servers}],
            "topics": {"partitions": 2},
            "stream": {"checkpoint": str(tmp_path / "checkpoint")},
        }
        names = ("collect", "stream", "export")
        with running(tmp_path, dict.fromkeys(names, configuration)) as verbs:
            for verb in verbs.values():
                verb.wait_for(lambda v=verb: v.probe("healthy")[0] == 200, "health", 60.0)  # type: ignore[misc]
                verb.wait_for(lambda v=verb: "Kafka" in v.probe("ready")[1], "reason", 60.0)  # type: ignore[misc]
            for outage in (0.0, OUTAGE_SECONDS):
                assert not comes_true(lambda: False, outage, check=partial(stay_up, verbs))
                for broker in BROKERS:
                    cluster.start_broker(broker)
                for name, verb in verbs.items():
                    seconds = verb.wait_ready(RECOVERY_SECONDS)
                    print(f"{name} ready {seconds:.1f} s later, after {outage:.0f} s without Kafka")
                stream = verbs["stream"]
                before = stream.count("batch")
                seconds = stream.wait_for(
                    lambda s=stream, b=before: s.count("batch") > b + 2,  # type: ignore[misc]
                    "batches",
                    RECOVERY_SECONDS,
                )
                print(f"three batches {seconds:.1f} s later")
                print(f"the stream has waited {stream.count('waiting for Kafka')} times")
                if not outage:
                    for broker in BROKERS:
                        cluster.kill_broker(broker)
            assert "Traceback" not in "".join(verb.log.read_text() for verb in verbs.values())

"""Tidemark with more and fewer rights, on brokers with Kafka's authorizer."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cluster.producing import producer_of
from tests.cluster.rights import RestrictedCluster, client, restricted_cluster
from tests.scenarios.describe_alone import hide
from tests.verbs.run import tidemark
from tidemark.core.codec import decode_batch
from tidemark.core.events import BrokerState, Event, MetadataChange, Observation, Pass
from tidemark.verbs.check_config.rights import APIS

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.soak]

RECORDS = 10
PASSES = 8
DENIES = "denies ClusterAction on the cluster"


@pytest.fixture(scope="module")
def brokers() -> Iterator[RestrictedCluster]:
    with restricted_cluster() as cluster:
        with producer_of(cluster.local, enable_idempotence=False) as producer:
            for partition in (0, 1):
                for _ in range(RECORDS):
                    producer.send("t", b"x", partition=partition)
        yield cluster


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("configurations")


def configuration(
    folder: Path, brokers: RestrictedCluster, user: str, *, controllers: bool = False
) -> str:
    """The path of a file for this user."""
    kafka: dict[str, Any] = {
        "bootstrap_servers": brokers.bootstrap_servers,
        "client": client(user),
    }
    cluster = {**kafka, "name": "c"}
    if controllers:
        cluster["controllers"] = [brokers.controller]
    path = folder / f"{user}.yaml"
    collect = {"metadata_seconds": 1, "thin_seconds": 1}
    path.write_text(json.dumps({"kafka": kafka, "clusters": [cluster], "collect": collect}))
    return str(path)


class Collected(NamedTuple):
    """What `collect` wrote: events, and warnings with what they name."""

    events: list[Event]
    log: str

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.log.splitlines() if "[warning" in line]

    def newest(self) -> list[Observation]:
        found = {e.partition: e for e in self.events if isinstance(e, Observation)}
        return [found[partition] for partition in sorted(found)]

    def last_pass(self) -> Pass:
        return [event for event in self.events if isinstance(event, Pass)][-1]


def collect(path: str, passes: int = PASSES) -> Collected:
    command = [sys.executable, "-m", "tidemark.cli", "collect", "--to", "-"]
    ended = subprocess.run(
        [*command, "--passes", str(passes), "--config", path],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    batches = [decode_batch(line.encode()) for line in ended.stdout.splitlines()]
    assert "secret" not in ended.stdout + ended.stderr
    return Collected([event for batch in batches for event in batch.events], ended.stderr)


def test_the_documented_rights_show_everything(brokers: RestrictedCluster, folder: Path) -> None:
    seen = collect(configuration(folder, brokers, "full"))
    assert seen.warnings == []
    for observed in seen.newest():
        assert (observed.committed, observed.effective_min_in_sync_replicas) == (RECORDS, 2)
        assert [
            (s.error, s.log_end_offset, s.high_watermark, s.log_start_offset)
            for s in observed.samples
        ] == [(None, RECORDS, RECORDS, 0)] * 3
        assert observed.leader_log_end_offset_before == RECORDS
    ended = seen.last_pass()
    assert (ended.quorum_leader, ended.reassigning, ended.missed) == (100, 0, {})
    states = [e for e in seen.events if isinstance(e, BrokerState) and e.configuration is not None]
    assert {e.broker for e in states} == {1, 2, 3}
    assert all(e.offline_log_dirs == 0 for e in states)
    path = configuration(folder, brokers, "full")
    assert tidemark("inspect", "t", "--config", path).err == ""
    out = tidemark("check-config", "--reach", "--config", path).out
    assert out.splitlines()[-1] == "  no risky configuration in 2 partitions"
    for api, (names, _, _) in APIS.items():
        assert f"  ok: {names} (" in out, api
    assert "refused" not in out.partition("cluster c")[2]
    assert tidemark("safe-to-stop", "1", "--config", path).err == ""


def test_describe_alone_shows_log_ends_and_names_each_missing_right(
    brokers: RestrictedCluster, folder: Path
) -> None:
    path = configuration(folder, brokers, "describe")
    seen = collect(path)
    for observed in seen.newest():
        assert (observed.committed, observed.leader_log_end_offset_before) == (RECORDS, RECORDS)
        assert (observed.effective_min_in_sync_replicas, observed.lineage) == (None, None)
        assert [
            (s.error, s.log_end_offset, s.high_watermark, s.log_start_offset, s.size_bytes)
            for s in observed.samples
        ] == [(None, RECORDS, None, None, None)] * 3
    passes = [event for event in seen.events if isinstance(event, Pass)]
    assert [event.missed for event in passes] == [{}] * PASSES
    assert (passes[-1].quorum_leader, passes[-1].reassigning) == (None, None)
    for event in seen.events:
        # What the scenarios hide to play the same (tests/detect/test_describe_alone.py).
        known = copy.deepcopy(event)
        hide(known)
        assert known == event
    rights = {
        "records": "Fetch needs READ on the topic",
        "topic configuration": "DescribeConfigs needs DESCRIBE_CONFIGS on the topic",
        "quorum": "DescribeQuorum needs DESCRIBE on the cluster",
        "reassignments": "ListPartitionReassignments needs DESCRIBE on the cluster",
        "log directories": "DescribeLogDirs needs DESCRIBE on the cluster",
        "configuration": "DescribeConfigs needs DESCRIBE_CONFIGS on the cluster",
    }
    assert len(seen.warnings) == len(rights)
    for cure in rights.values():
        assert sum(cure in line for line in seen.warnings) == 1, cure
    shown = tidemark("inspect", "t", "--config", path)
    assert "min in sync ?, committed to 10" in shown.out
    # The lag is known: 0.
    assert shown.out.count("  10   ?    0          ?") == 4
    assert rights["records"] in shown.err
    assert rights["topic configuration"] in shown.err
    stopped = tidemark("safe-to-stop", "1", "--config", path, code=3)
    assert stopped.out.endswith("Not safe to stop: 2 unknown.\n")
    assert rights["topic configuration"] in stopped.err
    reached = tidemark("check-config", "--reach", "--config", path).out
    for cure in rights.values():
        assert cure in reached
    assert "  ok: Metadata, ListOffsets (Describe on topics)" in reached
    assert "User:describe --operation Read --operation DescribeConfigs --topic '*'" in reached
    assert "User:describe --operation Describe --operation DescribeConfigs --cluster" in reached


def test_without_any_right_each_command_names_the_right(
    brokers: RestrictedCluster, folder: Path
) -> None:
    path = configuration(folder, brokers, "none")
    seen = collect(path)
    (line,) = [line for line in seen.warnings if "no topic is visible" in line]
    assert "DESCRIBE" in line
    assert "docs/permissions.md" in line
    assert (seen.newest(), seen.last_pass().partitions) == ([], 0)
    stopped = tidemark("safe-to-stop", "1", "--config", path, code=3)
    assert stopped.out.endswith("Not safe to stop: nothing was observed.\n")
    assert "no topic is visible" in stopped.err
    assert "no topic is visible" in tidemark("check-config", "--reach", "--config", path).out
    assert "may not describe it" in tidemark("inspect", "t", "--config", path, code=1).err
    assert "DESCRIBE" in tidemark("audit", "--config", path, code=1).err


def test_controllers_without_cluster_action_are_one_line_and_samples_go_on(
    brokers: RestrictedCluster, folder: Path
) -> None:
    seen = collect(configuration(folder, brokers, "full", controllers=True))
    (line,) = seen.warnings
    assert f"{brokers.controller} {DENIES}" in line
    assert "cluster=c" in line
    assert "cure=" in line
    assert len(seen.newest()) == 2
    assert not any(isinstance(event, MetadataChange) for event in seen.events)


def test_cluster_action_shows_the_metadata_log(brokers: RestrictedCluster, folder: Path) -> None:
    seen = collect(configuration(folder, brokers, "controllers", controllers=True))
    assert DENIES not in seen.log
    changes = [event for event in seen.events if isinstance(event, MetadataChange)]
    assert {(e.topic, e.partition) for e in changes} >= {("t", 0), ("t", 1)}


def test_an_audit_without_read_compares_nothing_and_says_so(
    brokers: RestrictedCluster, folder: Path
) -> None:
    path = configuration(folder, brokers, "describe")
    shown = tidemark("audit", "t", "--config", path, code=1)
    assert "broker 1 is not compared: TOPIC_AUTHORIZATION_FAILED" in shown.out
    assert "nothing was compared" in shown.err
    assert "the right READ on the topic" in shown.err
    full = tidemark("audit", "t", "--config", configuration(folder, brokers, "full"))
    assert full.out.startswith(f"no difference in {2 * RECORDS} offsets of 2 partitions")

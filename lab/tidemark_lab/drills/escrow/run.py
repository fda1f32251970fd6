"""Rounds of unclean elections: each loses the end of every topic's log with its only disk."""

from __future__ import annotations

import base64
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from tidemark.kafka.client import make_consumer
from tidemark.settings import Connection
from tidemark_lab.brokers.cluster import LocalCluster
from tidemark_lab.brokers.wait import comes_true, wait_until
from tidemark_lab.drills.drill import OVERRIDES
from tidemark_lab.drills.escrow.service import EscrowService, start_escrow
from tidemark_lab.drills.escrow.writers import KINDS, Kind, Writer
from tidemark_lab.drills.pipeline import COLLECTOR, Pipeline
from tidemark_lab.drills.schedules.elections import UNCLEAN
from tidemark_lab.faults.disk_faults import wipe_logs
from tidemark_lab.judge.samples import Samples, batches_of, read_samples

LEADER, FOLLOWER = 1, 2
# What was known to be committed for so long before the death must be back.
SAMPLED_SECONDS: Final = 2.0
_SECONDS: Final = 60.0
# Kafka's defaults are 50 of each, which take a small machine long to create.
_OVERRIDES: Final = OVERRIDES | {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}
EVENTS: Final = "events.jsonl"


class Election(Struct, kw_only=True):
    """What one election lost of one topic, and what of it the escrow gave back."""

    topic: str
    lost: int
    # Byte for byte, with key, value and timestamp.
    back: int
    # Lost records whose high watermark was sampled SAMPLED_SECONDS before the death, by offset.
    missing: list[int]
    # The others that are not back.
    too_late: list[int]
    # Records and milliseconds, by their acknowledgements, from the last one that is back to the
    # last one that was lost.
    shortfall_records: int
    shortfall_ms: float
    # Aborted records that `salvage` would send, and offsets that it has twice: none.
    wrong: int


class Report(Struct, kw_only=True):
    seed: int
    delay_seconds: float
    kills: int = 0
    elections: list[Election] = []

    def lines(self) -> list[str]:
        found = self.elections
        if not found:
            return ["no election"]
        records = [each.shortfall_records for each in found]
        spans = [each.shortfall_ms for each in found]
        missing = [f"{each.topic}: {each.missing}" for each in found if each.missing]
        return [
            f"{len(found)} unclean elections, {self.kills} kills, seed {self.seed}",
            f"{sum(e.lost for e in found)} records lost, {sum(e.back for e in found)} back",
            f"sampled {SAMPLED_SECONDS:.0f} s before the death and not back: {missing or 'none'}",
            f"shortfall in records: median {statistics.median(records):.0f}, worst {max(records)}",
            f"shortfall in ms: median {statistics.median(spans):.0f}, worst {max(spans):.0f}",
            f"aborted or twice: {sum(e.wrong for e in found)}",
        ]

    @property
    def failed(self) -> bool:
        return any(e.missing or e.wrong for e in self.elections) or not self.elections


class Death(NamedTuple):
    # When the leader was sent SIGKILL, and when it was gone: seconds later on a busy machine.
    at: float
    gone_at: float
    leader_epochs: dict[str, int]


def run_rounds(
    report: Report,
    rounds: int,
    folder: Path,
    say: Callable[[str], object],
    *,
    kills: bool,
    key_file: str | None = None,
) -> None:
    """Fills the report. Raises ClusterError where the brokers do not do what a round waits for."""
    chance = random.Random(report.seed)
    topics = [kind.topic for kind in KINDS]
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(folder / "kafka", _OVERRIDES))
        for topic in topics:
            configs = {"min.insync.replicas": "1", **UNCLEAN}
            cluster.create_topic(topic, {0: (LEADER, FOLLOWER)}, configs)
        pipeline = Pipeline(cluster.bootstrap_servers, folder / EVENTS, {})
        stack.callback(pipeline.close)
        options = {"hours": 1.0, "key_file": key_file}
        service = start_escrow(stack, pipeline, folder, report.delay_seconds, **options)
        pipeline.start()
        pipeline.start_collector(COLLECTOR)
        service.wait()
        for number in range(rounds):
            kill_at = chance.uniform(0.0, 6.0) if kills else None
            death, writers = _lose(cluster, chance, service, kill_at)
            samples = read_samples(batches_of(folder / EVENTS))
            for writer in writers:
                topic = writer.kind.topic
                found = _judge(cluster, service, writer, death, samples[topic, 0])
                if found is not None:
                    report.elections.append(found)
                say(f"round {number + 1}: {found or f'nothing of {topic} was lost'}")
            report.kills = service.kills
            cluster.start_broker(LEADER)
            wait_until(lambda: cluster.is_whole(topics), 2 * _SECONDS, "every replica is in sync")
            cluster.elect_preferred_leaders({topic: [0] for topic in topics})
            _wait_leader(cluster, LEADER)


def _lose(
    cluster: LocalCluster, chance: random.Random, service: EscrowService, kill_at: float | None
) -> tuple[Death, list[Writer]]:
    """The follower crashes, the leader commits alone, and dies with its disk."""
    topics = [kind.topic for kind in KINDS]
    seeds = iter([chance.randrange(2**32) for _ in KINDS])
    writers = [Writer(kind, cluster.bootstrap_servers, next(seeds)) for kind in KINDS]

    def counts() -> dict[str, int]:
        return {writer.kind.topic: len(writer.written) for writer in writers}

    what = "all topics are written to"
    wait_until(lambda: all(counts().values()), 2 * _SECONDS, what, seen=counts)
    cluster.kill_broker(FOLLOWER)
    wait_until(lambda: _in_sync(cluster) == {LEADER}, _SECONDS, "the leader is alone in sync")
    load_seconds, began = chance.uniform(4.0, 9.0), time.monotonic()
    if kill_at is not None:
        comes_true(lambda: False, kill_at)
        service.kill()
    comes_true(lambda: False, began + load_seconds - time.monotonic())
    found = cluster.partitions(topics)
    epochs = {topic: partition.leader_epoch for (topic, _), partition in found.items()}
    killed_at = time.time()
    cluster.kill_broker(LEADER)
    death = Death(killed_at, time.time(), epochs)
    wipe_logs(cluster.log_directory(LEADER), [(topic, 0) for topic in topics])
    for writer in writers:
        writer.stop()
    cluster.start_broker(FOLLOWER)
    _wait_leader(cluster, FOLLOWER)
    return death, writers


def _in_sync(cluster: LocalCluster) -> set[int]:
    found = cluster.partitions([kind.topic for kind in KINDS])
    return set().union(*(partition.isr_nodes for partition in found.values()))


def _wait_leader(cluster: LocalCluster, broker: int) -> None:
    topics = [kind.topic for kind in KINDS]

    def holds() -> bool:
        return {p.leader_id for p in cluster.partitions(topics).values()} == {broker}

    wait_until(holds, _SECONDS, f"broker {broker} leads")


def _judge(
    cluster: LocalCluster, service: EscrowService, writer: Writer, death: Death, samples: Samples
) -> Election | None:
    kind = writer.kind
    kept = _read(cluster, kind)
    written = [each for each in writer.written if each.acked_at <= death.gone_at]
    gone = sorted(each for each in written if kept.get(each.offset) != each.value)
    if not gone:
        return None
    aborted = {w.offset for w in writer.aborted}
    back = _salvaged(service, kind, gone[0].offset, gone[-1].offset + 1, death)
    whole = [w for w in gone if back.get(w.offset) == (w.key, w.value, w.timestamp_ms)]
    limit = death.at - SAMPLED_SECONDS
    # Earlier rounds reached higher offsets, which their losses took back.
    epoch = death.leader_epochs[kind.topic]
    before = [r for r in samples.readings if r.until <= limit and r.leader_epoch == epoch]
    sampled = max((r.committed for r in before), default=0)
    absent = sorted({w.offset for w in gone} - {w.offset for w in whole})
    last = max(whole, default=gone[0])
    return Election(
        topic=kind.topic,
        lost=len(gone),
        back=len(whole),
        missing=[offset for offset in absent if offset < sampled],
        too_late=[offset for offset in absent if offset >= sampled],
        shortfall_records=sum(w.offset > last.offset for w in gone),
        shortfall_ms=max(0.0, gone[-1].acked_at - last.acked_at) * 1000,
        wrong=len(aborted & back.keys()) + back.pop(-1, ("", 0, 0))[1],
    )


def _read(cluster: LocalCluster, kind: Kind) -> dict[int, bytes]:
    """What the new leader has, by offset."""
    connection = Connection(bootstrap_servers=[cluster.bootstrap_servers[FOLLOWER - 1]])
    consumer = make_consumer(connection, kind.topic, group_id=None, auto_offset_reset="earliest")
    found: dict[int, bytes] = {}
    try:
        wait_until(consumer.assignment, _SECONDS, "the new leader is read")
        (partition,) = consumer.assignment()
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            for records in consumer.poll(1000).values():
                found |= {record.offset: record.value for record in records}
    finally:
        consumer.close()
    return found


def _salvaged(
    service: EscrowService, kind: Kind, start: int, end: int, death: Death
) -> dict[int, Any]:
    """Key, value and time by offset, of what `salvage` would send; at -1 how many came twice."""
    command = [sys.executable, "-m", "tidemark.cli", "salvage", "--from-escrow"]
    command += ["--config", str(service.config), "--partition", f"{kind.topic}:0", "--json"]
    command += ["--from", str(start), "--to", str(end)]
    command += ["--epoch", str(death.leader_epochs[kind.topic])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    found: dict[int, Any] = {}
    twice = 0
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record["transaction"] in (None, "committed"):
            twice += record["offset"] in found
            key, value = (base64.b64decode(record[name]) for name in ("key", "value"))
            found[record["offset"]] = (key, value, record["timestamp_ms"])
    return {**found, -1: ("", twice, 0)}

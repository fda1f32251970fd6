"""Starts the stage of a drill: brokers, topics, load, the independent probe and the product."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.link import Link
from tidemark_lab.brokers.load_producer import LoadProducer
from tidemark_lab.brokers.probe import Probe
from tidemark_lab.drills.drill import OVERRIDES, Drill
from tidemark_lab.drills.pipeline import COLLECTOR, Pipeline
from tidemark_lab.drills.stage import Stage
from tidemark_lab.faults.disk_faults import SmallDisk

EVENTS, ACKNOWLEDGED, PROBE = "events.jsonl", "acknowledged.jsonl", "probe.jsonl"
# Linux answers on all of 127.0.0.0/8.
_LINK_HOST: Final = "127.0.0.2"
_SMALL_DISK_BYTES: Final = 64 << 20
# The probe asks with Fetch version 12.
_WITHOUT_PROBE: Final = frozenset({"0.10.2.2", "0.11.0.3", "1.1.1", "2.6.3"})


class Brokers(NamedTuple):
    """What runs before the product."""

    cluster: LocalCluster
    load: LoadProducer
    link: Link | None
    disk: SmallDisk | None
    probe: Probe | None


def set_up(stack: ExitStack, drill: Drill, version: str, folder: Path, kept: Path) -> Stage:
    """`folder` is for the brokers and the probe, `kept` for the recording."""
    cluster, load, link, disk, probe = start_brokers(stack, drill, folder, kept, version=version)
    controllers = cluster.controllers if drill.metadata_log else ()
    pipeline = Pipeline(cluster.bootstrap_servers, kept / EVENTS, drill.thresholds, controllers)
    stack.callback(pipeline.close)
    pipeline.start()
    pipeline.start_collector(COLLECTOR)
    return Stage(cluster, load, pipeline, drill.places(), link, disk, probe)


def start_brokers(
    stack: ExitStack, drill: Drill, folder: Path, kept: Path, **options: Any
) -> Brokers:
    """Brokers with these options of LocalCluster, the drill's topics, load and probe."""
    linked, small, disk, second = drill.linked_broker, drill.small_disk_broker, None, {}
    slow = drill.slow_leader
    if small is not None:
        disk = stack.enter_context(SmallDisk(folder / "disk", _SMALL_DISK_BYTES))
        data = folder / "kafka" / f"data-{small}"
        second = {small: {"log.dirs": f"{data},{disk.folder / 'data'}"}}
    cluster = LocalCluster(
        folder / "kafka",
        {**OVERRIDES, **drill.overrides},
        {**drill.broker_overrides, **second},
        controllers=drill.controllers,
        controller_hosts={} if linked is None else {linked: _LINK_HOST},
        fetch_hosts={} if slow is None else {slow: _LINK_HOST},
        told_addresses=drill.told_addresses,
        **options,
    )
    link = None
    if linked is not None or slow is not None:
        host, port = cluster.controller_address if slow is None else cluster.fetch_address(slow)
        link = stack.enter_context(Link((_LINK_HOST, port), (host, port)))
    stack.enter_context(cluster)
    for name, topic in drill.all_topics.items():
        cluster.create_topic(name, topic.assignments, topic.all_configs)
    load = LoadProducer(
        cluster.bootstrap_servers,
        drill.places(loaded=True),
        kept / ACKNOWLEDGED,
        drill.records_per_second,
        drill.record_bytes,
    )
    stack.enter_context(load)
    probe = None
    if options.get("version") not in _WITHOUT_PROBE and len(drill.all_topics) == 1:
        addresses = {broker: cluster.address(broker) for broker in BROKERS}
        (watched,) = drill.all_topics
        probe = stack.enter_context(Probe(addresses, watched, 0, folder / PROBE))
    return Brokers(cluster, load, link, disk, probe)

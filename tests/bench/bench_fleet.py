"""One `tidemark collect` over forty clusters, each behind sockets and a password of its own.

The CPU time of the brokers, `fleet_brokers`, is not counted. Then one cluster hangs, one refuses
the password, and one takes 30 s for each answer: what that costs the passes of the others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.bench.fleet_brokers import MOVES_ONE_IN
from tests.bench.row import Kind, Row, sized, with_target
from tests.processes import cpu_seconds, start_logged
from tests.soak.sampling import pss_mb
from tidemark_lab.brokers.ports import free_ports
from tidemark_lab.brokers.wait import wait_until

CLUSTERS: Final = sized(40, 4)
PARTITIONS: Final = sized(1_200, 60)
REPLICAS: Final = 3
SECONDS: Final = float(sized(60, 5))
WARM_UP_SECONDS: Final = float(sized(40, 3))
FAULTS: Final = ("hang", "refuse", "slow")

# Passes of each cluster, and the seconds that they took.
Passes = dict[str, tuple[float, float]]


def passes_of(listen: str) -> Passes:
    with urlopen(f"http://{listen}/metrics", timeout=10.0) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        found = {
            (sample.name.rpartition("_")[2], sample.labels["kafka_cluster"]): sample.value
            for family in families
            if family.name == "tidemark_collect_pass_seconds"
            for sample in family.samples
        }
    return {name: (found["count", name], found["sum", name]) for _, name in found}


def settings(ports: tuple[int, list[list[int]]], listen: str) -> str:
    """Of the collector; each cluster has a user of its own."""
    clusters = [
        {
            "name": f"cluster-{number}",
            "bootstrap_servers": [f"127.0.0.1:{port}" for port in brokers],
            "client": {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": f"user-{number}",
                "sasl_plain_password": f"password-{number}",
            },
        }
        for number, brokers in enumerate(ports[1])
    ]
    kafka = {"bootstrap_servers": [f"127.0.0.1:{ports[0]}"]}
    return yaml.safe_dump({"kafka": kafka, "clusters": clusters, "collect": {"listen": listen}})


def window(listen: str, collector: int) -> tuple[float, dict[str, float], float]:
    """Cores of the collector, passes of each cluster, and the longest mean seconds of one."""
    before, cpu, began = passes_of(listen), cpu_seconds([collector]), time.monotonic()
    time.sleep(SECONDS)
    after, used, seconds = passes_of(listen), cpu_seconds([collector]), time.monotonic() - began
    passes = {name: after[name][0] - before[name][0] for name in after}
    took = [(after[name][1] - before[name][1]) / max(1.0, passes[name]) for name in after]
    scaled = {name: count * SECONDS / seconds for name, count in passes.items()}
    return (used - cpu) / seconds, scaled, max(took)


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, listen = Path(name), f"127.0.0.1:{free_ports(1)[0]}"
        arguments = ("tests.bench.fleet_brokers", str(CLUSTERS), str(PARTITIONS))
        brokers = subprocess.Popen(
            [sys.executable, "-m", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        stack.callback(brokers.communicate)
        stack.callback(brokers.kill)
        assert brokers.stdin is not None and brokers.stdout is not None
        config, log = folder / "tidemark.yaml", folder / "collect.log"
        config.write_text(settings(json.loads(brokers.stdout.readline()), listen))
        command = (sys.executable, "-m", "tidemark.cli", "collect", "--config", str(config))
        collector = start_logged(command, log)
        stack.callback(collector.wait)
        stack.callback(collector.terminate)

        def have_passed() -> bool:
            assert collector.poll() is None, log.read_text()
            with suppress(OSError):
                passes = passes_of(listen)
                return len(passes) == CLUSTERS and min(passes.values())[0] >= 3
            return False

        wait_until(have_passed, 120.0, "three passes over each cluster")
        time.sleep(WARM_UP_SECONDS)
        cores, healthy, seconds = window(listen, collector.pid)
        memory = pss_mb(collector.pid) or 0.0
        for number, fault in enumerate(FAULTS):
            brokers.stdin.write(f"{fault} {number}\n".encode())
        brokers.stdin.flush()
        faulty, passes, _ = window(listen, collector.pid)
    well = [f"cluster-{number}" for number in range(len(FAULTS), CLUSTERS)]
    cost = max(0.0, *(healthy[each] - passes[each] for each in well))
    replicas = sum(healthy.values()) / SECONDS * PARTITIONS * REPLICAS
    how = (
        f"{CLUSTERS} clusters of {PARTITIONS:,} partitions x {REPLICAS} replicas on three brokers "
        f"each, by one process over sockets with SASL, published to Kafka's protocol; one in "
        f"{MOVES_ONE_IN} moves; {SECONDS:.0f} s after {WARM_UP_SECONDS:.0f} s; simulated brokers "
        "on the same cores"
    )
    size = f"{CLUSTERS} x {PARTITIONS:,}"
    beside = "beside one that hangs, one that refuses the password and one that takes 30 s"
    fewest = f"fleet: fewest passes of a cluster in {SECONDS:.0f} s, {size}"
    figures: tuple[tuple[str, float, str, Kind], ...] = (
        (f"fleet: collect, {size}", cores, "cores", "cpu"),
        (f"fleet: collect, {size}, published", 1e6 * cores / replicas, "µs a replica", "cpu"),
        (f"fleet: collect, {size}, {beside}", faulty, "cores", "cpu"),
        (f"fleet: resident memory of collect, {size}", memory, "MB", "size"),
        (f"fleet: a pass, {size}, the slowest cluster's mean", 1000 * seconds, "ms", "wall"),
        (fewest, min(healthy.values()), "passes", "wall"),
    )
    for title, value, unit, kind in figures:
        yield Row(name=title, value=value, unit=unit, kind=kind, how=how)
    lost = f"fleet: passes in {SECONDS:.0f} s that three clusters at fault cost another, {size}"
    row = Row(name=lost, value=cost, unit="passes", kind="wall", how=f"{how}; {beside}")
    yield with_target(row, 1.0)

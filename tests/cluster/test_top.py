"""`tidemark top` on real brokers: 1,000 partitions on 3 brokers, a pause, an unclean election.

Each fault is seen on the live screen, and again in the recording.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.processes import cpu_seconds
from tests.verbs.run import tidemark
from tests.verbs.top.terminal import TerminalProgram
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.load_producer import LoadProducer

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

PARTITIONS = 1_000
FEW = 7
RECORDS_PER_SECOND = 700
# For a fault to show, on a busy machine.
FAULT_SECONDS = 90.0
# The targets of this verb.
FIRST_SCREEN_SECONDS = 3.0
CORES = 0.5
CPU_SECONDS = 20.0
# Led by broker 1, followed by broker 2; broker 3 serves all other topics throughout.
LEADER, FOLLOWER = 1, 2
FRAGILE = "fragile"


@contextmanager
def running(partitions: int, folder: Path) -> Iterator[tuple[LocalCluster, LoadProducer]]:
    """A cluster with so many partitions, all under load; the last one may be elected uncleanly."""
    with LocalCluster() as cluster:
        orders = {
            number: [BROKERS[(number + place) % 3] for place in range(3)]
            for number in range(partitions - 1)
        }
        cluster.create_topic("orders", orders)
        configs = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
        cluster.create_topic(FRAGILE, {0: [LEADER, FOLLOWER]}, configs)
        places = [("orders", number) for number in orders] + [(FRAGILE, 0)]
        servers = cluster.bootstrap_servers
        with LoadProducer(servers, places, folder / "load.jsonl", RECORDS_PER_SECOND) as load:
            yield cluster, load


def servers(cluster: LocalCluster) -> str:
    return ",".join(cluster.bootstrap_servers)


def is_full(partitions: int, lines: list[str]) -> bool:
    """Every broker answers and every partition is counted."""
    text = "\n".join(lines)
    return (
        f"3 brokers, {partitions} partitions" in text
        and len(re.findall(r"(?m)^ +[123] .* ok ", text)) == len(BROKERS)
        and lines[-1].startswith("Enter open")
    )


def test_the_first_screen_and_the_cpu_of_a_thousand_partitions(tmp_path: Path) -> None:
    with running(PARTITIONS, tmp_path) as (brokers, _):
        # Imports are compiled once; a first start after an installation takes longer.
        environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
        seconds = []
        for _ in range(2):
            with TerminalProgram(
                "top", "--bootstrap", servers(brokers), environment=environment
            ) as program:
                seconds.append(program.wait_for(partial(is_full, PARTITIONS)))
                used, at = cpu_seconds([program.pid]), time.monotonic()
                started = used
                while time.monotonic() - at < CPU_SECONDS:
                    program.read(0.5)
                cores = (cpu_seconds([program.pid]) - used) / (time.monotonic() - at)
                header = program.lines[1]
                program.press("q")
                assert program.wait_for_end() == 0
        busy = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
        print(
            f"first full screen after {seconds} s, {started:.2f} s of CPU; "
            f"{cores:.2f} cores; {header}"
        )
        # On a machine that others keep busy, only its own work can be judged.
        assert (started if busy else seconds[-1]) < FIRST_SCREEN_SECONDS
        assert cores < CORES
        assert "late" in header


def wait_for(program: TerminalProgram, *patterns: str) -> None:
    found = [re.compile(pattern, re.MULTILINE) for pattern in patterns]
    program.wait_for(
        lambda lines: all(each.search("\n".join(lines)) for each in found), FAULT_SECONDS
    )


def test_faults_show_on_the_screen_and_in_the_recording(tmp_path: Path) -> None:
    with running(FEW, tmp_path) as (brokers, load):
        path = tmp_path / "events.jsonl.gz"
        with TerminalProgram(
            "top", "--bootstrap", servers(brokers), "--record", str(path), width=160, height=50
        ) as program:
            program.wait_for(partial(is_full, FEW))

            brokers.pause_broker(3)
            wait_for(program, r"^ +3 +.*timed out", r"BrokerDown +broker 3", r"^(warning|critical)")
            brokers.resume_broker(3)
            wait_for(program, r"^ +3 +.* ok ")

            brokers.kill_broker(FOLLOWER)
            wait_for(program, rf"^ +{FOLLOWER} +.*(refused|unreachable)", r"under-repl|at min ISR")
            acknowledged = len(load.acknowledged())
            program.wait_for(
                lambda _: len(load.acknowledged()) > acknowledged + 10 * FEW, FAULT_SECONDS
            )
            brokers.kill_broker(LEADER)
            program.press("/fragile\r")
            wait_for(program, r"^fragile-0 +offline +none")
            brokers.start_broker(FOLLOWER)
            wait_for(
                program, r"^critical .*UncleanElection +fragile-0", r"fragile-0.* unclean election"
            )
            brokers.start_broker(LEADER)
            wait_for(
                program, r"^critical .*CommittedDataLoss +fragile-0", r"^fragile-0 +records lost"
            )

            program.press("e")
            wait_for(program, r"^elections: ", r"fragile-0 .*not in sync +unclean election")
            program.press("p\r")
            wait_for(program, r"^fragile-0  records lost", r"epochs end at: ", r"^open alerts")
            program.press("q")
            assert program.wait_for_end() == 0
        out = tidemark("top", "--from", str(path)).out
        assert re.search(r"fragile-0 .*not in sync +unclean election", out)
        assert re.search(r"critical .*CommittedDataLoss +fragile-0", out)

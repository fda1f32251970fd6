"""A rehearsal says kept or lost only where the other protocol, from the same state, does so."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.model.random_runs import STEPS, WEIGHTS
from tests.verbs.run import tidemark
from tidemark.core.codec import encode_batch
from tidemark.core.events import Batch
from tidemark_lab.model.log import Log
from tidemark_lab.model.observe import build_batch
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.protocols.protocol import Protocol
from tidemark_lab.model.rehearse import Rule, rehearse
from tidemark_lab.model.replica_manager.broker import create
from tidemark_lab.model.replica_manager.model_state import stopped_replicas, to_model_state
from tidemark_lab.model.replica_manager.state import ClusterModel
from tidemark_lab.model.scenarios import SCENARIOS
from tidemark_lab.model.scenarios.run import ScenarioRun
from tidemark_lab.model.state import Constants

RUNS, STEPS_OF_A_RUN = 200, 150
PREFIX, _, _ = SCENARIOS["epoch-without-records"].script.partition("kill 1")


def sample(cluster: ClusterModel, number: int) -> Batch:
    constants = Constants(len(cluster.brokers), 99, 99, 99, cluster.min_in_sync_replicas)
    state, silent = to_model_state(cluster), stopped_replicas(cluster)
    return build_batch(cluster.protocol, constants, state, number, 1e9 + number, silent=silent)


def take(run: ScenarioRun, step: tuple[str, int]) -> None:
    """A step of a random run. Broker 1 loses what it did not flush where another is killed."""
    name, broker = step
    if name == "kill" and broker == 1 and run.cluster.broker(1).running:
        run.lose_power(1)
    elif name:
        STEPS[name](run, broker)


def outcome(before: ClusterModel, protocol: Protocol, step: tuple[str, int]) -> Log | None:
    """The log of the leader that the other protocol elects in this step; None: it has none."""
    run = ScenarioRun(replace(before, protocol=protocol))
    take(run, step)
    run.learn(*run.cluster.assigned)
    leader = run.cluster.controller.leader
    return run.cluster.broker(leader).log if leader and run.cluster.broker(leader).leads else None


def test_no_verdict_on_200_runs_is_wrong() -> None:
    random, verdicts = Random(38), Counter[tuple[str, str]]()
    names = list(PROTOCOLS)
    for number in range(RUNS):
        recorded = PROTOCOLS[names[number % len(names)]]
        tried = PROTOCOLS[random.choice(list(PROTOCOLS))]
        brokers, wanted = random.choice((2, 3)), list[tuple[str, int]]()
        run = ScenarioRun(create(recorded, brokers, random.choice((1, 2))))
        if number % 10 == 0:
            # A replica in sync that truncated what is committed, and its leader dies.
            brokers, wanted = 3, [("kill", 1), ("fence", 1)]
            run = ScenarioRun(create(PROTOCOLS["kip-101"], brokers))
            run.execute(*PREFIX.splitlines())
        made, clusters = [("", 1)], [run.cluster]
        for at in range(STEPS_OF_A_RUN):
            step = random.choices(list(STEPS), WEIGHTS)[0], random.randint(1, brokers)
            down = not run.cluster.broker(1).running and run.cluster.controller.leader != 1
            if at < len(wanted):
                step = wanted[at]
            elif number % 2 and down:
                # A broker that lost power is back before the controller sees it.
                step = ("start", 1)
            made.append(step)
            take(run, step)
            clusters.append(run.cluster)
        batches = [sample(cluster, at) for at, cluster in enumerate(clusters)]
        for found in rehearse(batches, Rule(tried)):
            if found.verdict == "not known" or "as leader" not in found.event:
                continue
            at = round(found.at - 1e9)
            log = outcome(clusters[at - 1], tried, made[at])
            old = int(found.event.split()[2])
            led = next(c for c in reversed(clusters[:at]) if c.broker(old).leads)
            had = led.broker(old).log[: found.committed]
            has_all = log is not None and log[: len(had)] == had
            verdicts[found.verdict, tried.name] += 1
            assert found.verdict == ("kept" if has_all or log is None else "lost"), (found, at)
    assert sum(count for (verdict, _), count in verdicts.items() if verdict == "kept") > RUNS
    assert any(verdict == "lost" for verdict, _ in verdicts), verdicts


def recording(tmp_path: Path, name: str, protocol: str) -> str:
    steps = SCENARIOS[name].run(protocol).steps
    path = tmp_path / "events.jsonl"
    lines = [encode_batch(sample(step.cluster, at)) for at, step in enumerate(steps)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return str(path)


@pytest.mark.parametrize(
    ("name", "recorded", "verdict", "why"),
    [
        ("epoch-without-records", "kip-101", "lost", "2 was in sync without it, and is elected"),
        ("epoch-without-records", "kip-966", "kept", "2 was in sync, is elected, and held it"),
        ("unclean-election", "kip-320", "not known", "2 may have restarted before"),
        ("last-replica-standing", "kip-966", "not known", "2 may have restarted before"),
    ],
)
def test_the_command(tmp_path: Path, name: str, recorded: str, verdict: str, why: str) -> None:
    path = recording(tmp_path, name, recorded)
    printed = tidemark("model", "rehearse", path, "--protocol", "kip-966", "--json").out
    found = [json.loads(line) for line in printed.splitlines()]
    assert any(each["verdict"] == verdict and why in each["why"] for each in found), printed
    text = tidemark("model", "rehearse", path, "--protocol", "kip-966", "--min-isr", "4").out
    assert "is elected, and held it" not in text and "0 lost" in text


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("{}\n")
    assert (
        "no recording"
        in tidemark("model", "rehearse", str(path), "--protocol", "kip-966", code=2).err
    )

"""A story as the data of its page: each step under each protocol, what changed, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tidemark_lab.model.invariants import INVARIANTS
from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel
from tidemark_lab.model.scenarios.fates import consumer_view, fates
from tidemark_lab.model.scenarios.invariants import CHECKED, broken_invariants
from tidemark_lab.model.scenarios.render import constants, table_cells, verdict
from tidemark_lab.model.scenarios.run import RunStep
from tidemark_lab.model.scenarios.scenario import Scenario

GITHUB: Final = "https://github.com/apache/kafka/blob"
WIKI: Final = "https://cwiki.apache.org/confluence/display/KAFKA"
_SERVER: Final = "core/src/main/scala/kafka/server"
_PARTITION: Final = "core/src/main/scala/kafka/cluster/Partition.scala"
_KIP_101: Final = "+rather+than+High+Watermark+for+Truncation"
_KIP_279: Final = "+after+fast+leader+fail+over"
# Of each protocol: what proposed it, and where its truncation is in Kafka's source.
LINKS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "truncate-to-hw": (
        ("its source", f"{GITHUB}/0.10.2.2/{_SERVER}/ReplicaManager.scala#L854-L855"),
    ),
    "kip-101": (
        (
            "KIP-101",
            f"{WIKI}/KIP-101+-+Alter+Replication+Protocol+to+use+Leader+Epoch{_KIP_101}",
        ),
        ("its source", f"{GITHUB}/0.11.0.0/{_SERVER}/epoch/LeaderEpochFileCache.scala#L48-L59"),
    ),
    "kip-279-first-record": (
        ("KAFKA-7415", "https://issues.apache.org/jira/browse/KAFKA-7415"),
        ("its source", f"{GITHUB}/2.0.0/core/src/main/scala/kafka/log/Log.scala#L837"),
    ),
    "kip-279": (
        (
            "KIP-279",
            f"{WIKI}/KIP-279%3A+Fix+log+divergence+between+leader+and+follower{_KIP_279}",
        ),
        ("its source", f"{GITHUB}/2.0.1/{_PARTITION}#L306-L313"),
    ),
    "kip-320-first-try": (
        ("KIP-320", f"{WIKI}/KIP-320%3A+Allow+fetchers+to+detect+and+handle+log+truncation"),
    ),
    "kip-320": (
        ("KIP-320", f"{WIKI}/KIP-320%3A+Allow+fetchers+to+detect+and+handle+log+truncation"),
        ("its source", f"{GITHUB}/2.1.0/{_PARTITION}#L380-L396"),
    ),
    "kip-966": (
        ("KIP-966", f"{WIKI}/KIP-966%3A+Eligible+Leader+Replicas"),
        ("its source", f"{GITHUB}/4.1.2/{_PARTITION}#L1520-L1548"),
    ),
}
# (value, whether it rises, role) -> the rule.
_RULES: Final = {
    ("log_end_offset", True, "leader"): "A leader's log ends after the record that it appends.",
    ("log_end_offset", True, "follower"): "A follower appends the records of the answer.",
    ("log_end_offset", False, "follower"): "It truncates to where its log and the leader's agree.",
    ("high_watermark", True, "leader"): "All replicas that count have the record: it is committed.",
    ("high_watermark", True, "follower"): "The answer brought it: the leader's, up to its own end.",
    (
        "high_watermark",
        False,
        "follower",
    ): "It is at most the log end; a new leader knows less.",
}
_STOPPED: Final = {
    "log_end_offset": "What was not on its disk is gone.",
    "high_watermark": "Of a broker that stops, the checkpoint on its disk is what remains.",
}
_OTHER: Final = "See the text of the step."
_TO_HIGH_WATERMARK: Final = (
    "It truncates to its own high watermark, and removes records that its leader has."
)
_TO_LEADERS_END: Final = (
    "Its log was longer than its leader's, and it truncates to that end. What is before it is not "
    "compared."
)
_REMOTE_NEW: Final = "A new leader knows nothing of its followers until they fetch."
_REMOTE: Final = "A fetch starts where the follower's log ends: the leader notes it."
_FORGOTTEN: Final = "Only a leader keeps it."


def story_document(scenario: Scenario) -> dict[str, Any]:
    """The data of a page, by protocol in their order; the main one is named."""
    return {
        "name": scenario.name,
        "question": scenario.question,
        "protocol": scenario.protocols[0],
        "invariants": [{"name": name, "plain": INVARIANTS[name].plain} for name in CHECKED],
        "runs": {
            name: {
                "releases": protocol.releases,
                "rule": protocol.rule,
                "links": [list(link) for link in LINKS[name]],
                **_run(scenario, name),
            }
            for name, protocol in PROTOCOLS.items()
        },
    }


def _run(scenario: Scenario, protocol: str) -> dict[str, Any]:
    run = scenario.run(protocol)
    heading, *rows = table_cells(run)
    titles = dict(run.drawings)
    before: list[RunStep] = [run.steps[0], *run.steps[:-1]]
    steps = [
        {
            "line": step.line,
            "event": step.event,
            "effects": step.effects,
            "title": titles.get(number, ""),
            "brokers": [_broker(broker) for broker in step.cluster.brokers],
            "leader": step.cluster.controller.leader,
            "committed": [list(record) for record in step.cluster.committed],
            "changes": list(_changes(previous.cluster, step.cluster)),
            "broken": broken_invariants(step.cluster),
            "consumer": consumer_view(step.cluster),
            "cells": row,
        }
        for number, (previous, step, row) in enumerate(zip(before, run.steps, rows, strict=True))
    ]
    return {
        "columns": heading,
        "steps": steps,
        "constants": constants(run.cluster),
        "verdict": verdict(run.cluster),
        "fates": fates(scenario, run),
    }


def _broker(broker: Broker) -> dict[str, Any]:
    return {
        "id": broker.id,
        "state": "down" if not broker.running else "leads" if broker.leads else "follows",
        "leader_epoch": broker.leader_epoch,
        "log": [list(record) for record in broker.log],
        "log_start_offset": broker.log_start_offset,
        "log_end_offset": broker.log_end_offset,
        "high_watermark": broker.high_watermark,
        "epochs": [list(entry) for entry in broker.epoch_cache],
        "remotes": {each: remote.log_end_offset for each, remote in broker.remotes.items()},
    }


def _changes(before: ClusterModel, after: ClusterModel) -> Iterator[dict[str, Any]]:
    """Each of the five values that moved, from what to what, and the rule."""
    for old, new in zip(before.brokers, after.brokers, strict=True):
        for value in ("log_end_offset", "high_watermark"):
            was, now = getattr(old, value), getattr(new, value)
            if was != now:
                yield _change(new.id, value, was, now, _rule(after, old, new, value))
        for follower in sorted({*old.remotes, *new.remotes}):
            known, knows = _known(old, follower), _known(new, follower)
            if known != knows:
                why = _REMOTE if knows is not None else _REMOTE_NEW if new.leads else _FORGOTTEN
                yield _change(new.id, f"remote {follower}", known, knows, why)


def _rule(cluster: ClusterModel, old: Broker, new: Broker, value: str) -> str:
    if old.running and not new.running:
        return _STOPPED[value]
    now, leader = getattr(new, value), new.leader
    if value == "log_end_offset" and now < old.log_end_offset and leader is not None:
        removed = old.log[now]
        if old.response is not None and old.response.error:
            return _TO_LEADERS_END
        if removed in cluster.broker(leader).log:
            return _TO_HIGH_WATERMARK if now == old.high_watermark else _OTHER
    role = "leader" if new.leads else "follower"
    return _RULES.get((value, now > getattr(old, value), role), _OTHER)


def _known(broker: Broker, follower: int) -> int | None:
    remote = broker.remotes.get(follower)
    return None if remote is None else remote.log_end_offset


def _change(broker: int, value: str, was: int | None, now: int | None, why: str) -> dict[str, Any]:
    return {"broker": broker, "value": value, "from": was, "to": now, "why": why}

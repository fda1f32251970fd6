"""What each kind of step moves and completes, collected from runs of the scenarios.

The five values of a partition are the log end offsets of leader and follower, the log end offset
of the follower that the leader knows, and the two high watermarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from tidemark_lab.model.replica_manager.state import Broker, ClusterModel, Fact
from tidemark_lab.model.scenarios.run import RunStep, ScenarioRun

VALUES: Final = ("leader LEO", "follower LEO", "remote LEO", "leader HW", "follower HW")
_COMPLETIONS: Final = (
    Fact.PRODUCE_COMPLETED,
    Fact.FOLLOWER_FETCH_COMPLETED,
    Fact.CONSUMER_FETCH_COMPLETED,
    Fact.DELETE_RECORDS_COMPLETED,
)
REQUESTS: Final = tuple(fact.value for fact in _COMPLETIONS)
# (kind of step, value or request) -> how it changes
Effects = dict[tuple[str, str], set[str]]


def effects(runs: Iterable[ScenarioRun]) -> Effects:
    """How the steps of some runs change the five values, and which requests they complete."""
    found: Effects = {}
    for run in runs:
        for before, step in pairwise(run.steps):
            kind = _kind(step)
            for value, change in _moves(before.cluster, step.cluster):
                found.setdefault((kind, value), set()).add(change)
            for fact in step.facts.intersection(_COMPLETIONS):
                found.setdefault((kind, fact.value), set()).add("completes")
    return found


def _kind(step: RunStep) -> str:
    """The method of the step. A broker learns that it leads, or that it follows."""
    if step.method == "learn":
        return "learn to follow" if Fact.FOLLOWS in step.facts else "learn to lead"
    return step.method


def _moves(before: ClusterModel, after: ClusterModel) -> Iterator[tuple[str, str]]:
    for old, new in zip(before.brokers, after.brokers, strict=True):
        role = "leader" if new.leads else "follower"
        if old.log_end_offset != new.log_end_offset:
            yield f"{role} LEO", _direction(old.log_end_offset, new.log_end_offset)
        if old.high_watermark != new.high_watermark:
            yield f"{role} HW", _direction(old.high_watermark, new.high_watermark)
        yield from (("remote LEO", change) for change in _remote_moves(old, new))


def _remote_moves(old: Broker, new: Broker) -> Iterator[str]:
    for follower, remote in new.remotes.items():
        known = old.remotes[follower].log_end_offset if follower in old.remotes else None
        if remote.log_end_offset is None:
            if not old.leads or known is not None:
                yield "becomes unknown"
        elif known != remote.log_end_offset:
            yield "becomes known" if known is None else _direction(known, remote.log_end_offset)


def _direction(before: int, after: int) -> str:
    return "rises" if after > before else "falls"

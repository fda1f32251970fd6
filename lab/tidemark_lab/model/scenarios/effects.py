"""What each kind of step moves and completes, collected from runs of the scenarios.

The five values of a partition are the log end offsets of leader and follower, the log end offset
of the follower that the leader knows, and the two high watermarks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from tidemark_lab.model.replica_manager.state import Broker, ClusterModel
from tidemark_lab.model.scenarios.run import RunStep, ScenarioRun

VALUES: Final = ("leader LEO", "follower LEO", "remote LEO", "leader HW", "follower HW")
REQUESTS: Final = ("produce", "follower's fetch", "consumer's fetch", "DeleteRecords")
_COMPLETIONS: Final = (
    re.compile(r"^m[\dm, –]+( acknowledged|: \w+)$|NOT_LEADER_OR_FOLLOWER$"),
    re.compile(r"^the fetch of \d+ completes"),
    re.compile(r"^the fetch of C\d+ completes"),
    re.compile(r"DeleteRecords completes$|^DeleteRecords: REQUEST_TIMED_OUT"),
)
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
            for request, pattern in zip(REQUESTS, _COMPLETIONS, strict=True):
                if any(pattern.search(effect) for effect in step.effects):
                    found.setdefault((kind, request), set()).add("completes")
    return found


def _kind(step: RunStep) -> str:
    """The method of the step. A broker learns that it leads, or that it follows."""
    if step.method == "learn":
        follows = any(" follows " in effect for effect in step.effects)
        return "learn to follow" if follows else "learn to lead"
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

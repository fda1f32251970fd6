"""The heading and the table of replicas that `tidemark inspect` prints for a partition."""

from __future__ import annotations

from typing import Final

from tidemark.assess.reassignment_progress import remaining_records
from tidemark.core.events import Observation, Replica
from tidemark.core.text import counted, known, table
from tidemark.detect.lso_stuck import holder_text

COLUMNS: Final = (
    "broker",
    "role",
    "in sync",
    "LEO",
    "HW",
    "lag",
    "log start",
    "LSO",
    "leader epoch",
    "error",
)
_UNKNOWN: Final = "?"


def heading(observation: Observation) -> str:
    leader = "none" if observation.leaderless else known(observation.leader)
    parts = [
        f"{observation.topic}-{observation.partition}",
        f"leader {leader}",
        f"epoch {known(observation.leader_epoch)}",
        f"in sync {_list(observation.in_sync_replicas)} of {_list(observation.replicas)}",
        f"min in sync {known(observation.effective_min_in_sync_replicas)}",
        f"committed to {known(observation.committed)}",
    ]
    if observation.eligible_leader_replicas:
        parts.append(f"eligible {_list(observation.eligible_leader_replicas)}")
    if observation.adding or observation.removing:
        parts.append(f"adding {_list(observation.adding)} removing {_list(observation.removing)}")
    members = observation.in_sync_replicas or []
    parts += [
        f"{_to_copy(observation, broker)} to copy to {broker}"
        for broker in observation.adding
        if broker not in members
    ]
    if observation.adding or observation.removing:
        # It ends once every replica of the new assignment is in sync.
        target = [b for b in observation.replicas if b not in observation.removing]
        parts.append(f"the reassignment waits for {_list([b for b in target if b not in members])}")
    return ", ".join(parts)


def _to_copy(observation: Observation, broker: int) -> str:
    """What a replica that is being added lacks: `1200 records`; `?` where it does not answer."""
    samples: dict[int | None, Replica] = {sample.broker: sample for sample in observation.samples}
    leader, copy = samples.get(observation.leader), samples.get(broker)
    left = None
    if leader is not None and copy is not None and copy.log_end_offset is not None:
        left = remaining_records(
            observation.leader_log_end_offset_before, leader.log_start_offset, copy.log_end_offset
        )
    return _UNKNOWN if left is None else counted(left, "record")


def replica_table(observation: Observation) -> list[str]:
    """One line per assigned replica, under the column names."""
    rows = [COLUMNS, *(_row(observation, sample) for sample in observation.samples)]
    return table(rows, right=range(len(COLUMNS)))


def is_held(observation: Observation) -> bool:
    """Whether an open transaction holds the leader's last stable offset back."""
    offset, committed = _last_stable(observation), observation.committed
    return offset is not None and committed is not None and offset < committed


def stable_lines(observation: Observation) -> list[str]:
    """Who holds the last stable offset; none where nobody does."""
    if not is_held(observation):
        return []
    text = holder_text(observation.open_transaction) or "Which transaction holds it is not known."
    return ["", f"LSO {_last_stable(observation)}: {text}"]


def _last_stable(observation: Observation) -> int | None:
    leaders = [s for s in observation.samples if s.broker == observation.leader]
    return leaders[0].last_stable_offset if leaders else None


def _row(observation: Observation, sample: Replica) -> tuple[str, ...]:
    in_sync = observation.in_sync_replicas
    return (
        str(sample.broker),
        "leader" if sample.broker == observation.leader else "follower",
        _UNKNOWN if in_sync is None else "yes" if sample.broker in in_sync else "no",
        known(sample.log_end_offset),
        known(sample.high_watermark),
        _lag(observation, sample),
        known(sample.log_start_offset),
        known(sample.last_stable_offset),
        known(sample.leader_epoch),
        sample.error or "",
    )


def _lag(observation: Observation, sample: Replica) -> str:
    """Records behind the leader, as a range where the leader's log grew during the sampling."""
    if sample.broker == observation.leader:
        return ""
    before, end = observation.leader_log_end_offset_before, sample.log_end_offset
    after = observation.leader_log_end_offset_after
    if before is None or end is None:
        return _UNKNOWN
    low, high = max(before - end, 0), max((before if after is None else after) - end, 0)
    return str(low) if low == high else f"{low}…{high}"


def _list(values: list[int] | None) -> str:
    return _UNKNOWN if values is None else "[" + ",".join(map(str, values)) + "]"

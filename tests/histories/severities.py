"""Which critical alerts, and which alerts about elections, are true."""

from __future__ import annotations

from tests.histories.case import RECENT_SECONDS, Case
from tests.histories.controller import NO_LEADER
from tests.histories.logs import GONE
from tests.histories.truth import Election

UNCLEAN = ("unclean", "last known leader")
ZOOKEEPER_SECONDS = 75.0
# A pass may wait for a slow broker, and read one image that is old.
PASSES_SECONDS = 3.0


def judge(case: Case, *, benign: bool) -> str | None:
    """The kind of the failure; null for a true alert and for those that are judged elsewhere."""
    name, severity = case.name, case.alert.labels["severity"]
    if name == "KafkaUncleanElection":
        return _unclean(case, severity, benign=benign)
    if severity != "critical":
        return None
    seconds = RECENT_SECONDS if case.world.mode.quorum else ZOOKEEPER_SECONDS
    controlled = case.partition.controlled
    if name == "KafkaOffline":
        true = case.was(lambda r: r.leader == NO_LEADER or not r.exists, seconds)
    elif name == "KafkaUnderMinIsr":
        true = case.was(lambda r: len(r.in_sync) < controlled.effective_min(r.replicas), seconds)
    elif name == "KafkaDivergence":
        true = _differs(case)
    elif name == "KafkaLogTruncation":
        true = _is_gone(case)
    else:
        return None if name == "KafkaCommittedDataLoss" else f"unknown critical: {name}"
    return None if true else f"critical: {name}"


def _unclean(case: Case, severity: str, *, benign: bool) -> str | None:
    """A page is a claim. Where nothing is unclean, a suspicion is a needless ticket."""
    truth, kinds = case.truth, [election.kind for election in case.elections()]
    if any(kind in UNCLEAN for kind in kinds):
        return None
    if severity == "critical":
        why = ", lossy disk" if truth.lossy else ""
        return f"critical: unclean election was clean{why}"
    # Without topic ids, a topic that was created again looks the same.
    is_known = case.world.mode.topic_ids or truth.topic == 0
    seen = case.is_watched_by_one and all(_was_seen_in_sync(case, e) for e in case.elections())
    is_needless = benign and is_known and seen
    return "suspicion of a clean election" if is_needless else None


def _was_seen_in_sync(case: Case, election: Election) -> bool:
    """Whether the elected broker was in sync for long enough that passes show it."""
    since, held = election.at - PASSES_SECONDS, True
    for record in case.partition.controlled.records:
        if record.at <= since:
            held = election.leader in record.in_sync
        elif record.at < election.at:
            held &= election.leader in record.in_sync
    return held


def _is_gone(case: Case) -> bool:
    """Whether the last of the committed records that were cut is in no log.

    A deletion that no sample showed looks the same, and so do records that a deposed leader counted
    as committed.
    """
    evidence, truth = case.evidence, case.truth
    start, end = evidence["cut_at"], evidence["log_end_offset_before"]
    records = case.committed_in(start, end, evidence["leader_epoch_before"])
    logs = [replica.log for replica in case.partition.replicas.values() if replica.log is not None]
    shown = range(max(start, case.sampled_start), end)
    return (
        any(all(record not in log.ids for log in logs) for record in records)
        or any(truth.offset_of[record] in shown for record in truth.deleted)
        or any(offset in shown for offset in truth.late[case.topic])
    )


def _differs(case: Case) -> bool:
    follower, leader = case.evidence.get("follower"), case.evidence.get("leader")
    if follower is None or leader is None or case.cuts(follower) or case.cuts(leader):
        return True
    first, second = case.replica(follower), case.replica(leader)
    if first is None or second is None or first.log is None or second.log is None:
        return False
    one, other = first.log, second.log
    start = max(one.start, other.start)
    end = min(one.end, other.end)
    pairs = zip(one.ids[start:end], other.ids[start:end], strict=True)
    # Compaction removes records from one log before another.
    return any(a != b and GONE not in (a, b) for a, b in pairs) or one.end > other.end

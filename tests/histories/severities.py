"""Which critical alerts, and which alerts about elections, are true."""

from __future__ import annotations

from tests.histories.case import RECENT_SECONDS, Case
from tests.histories.controller import NO_LEADER

UNCLEAN = ("unclean", "last known leader")
ZOOKEEPER_SECONDS = 75.0


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
    else:
        return None if name == "KafkaCommittedDataLoss" else f"unknown critical: {name}"
    return None if true else f"critical: {name}"


def _unclean(case: Case, severity: str, *, benign: bool) -> str | None:
    """A page is a claim. Where nothing is unclean, a suspicion is a needless ticket."""
    wrong = _of_kind(case, UNCLEAN, "")
    if wrong is None:
        return None
    truth = case.truth
    if severity == "critical":
        why = ", lossy disk" if truth.lossy else ""
        return f"critical: unclean election was clean{why}"
    # Without topic ids, a topic that was created again looks the same.
    is_known = case.world.mode.topic_ids or truth.topic == 0
    return "suspicion of a clean election" if benign and is_known else None


def _of_kind(case: Case, kinds: tuple[str, ...], label: str) -> str | None:
    before = case.evidence.get("leader_epoch_before")
    after = case.evidence.get("leader_epoch_after")
    for election in case.truth.elections:
        if (
            election.topic == case.topic
            and (before is None or before < election.epoch)
            and (after is None or election.epoch <= after)
            and (after is not None or election.leader == case.evidence.get("leader"))
            and election.kind in kinds
        ):
            return None
    return f"{label} was another"


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
    return one.ids[start:end] != other.ids[start:end] or one.end > other.end

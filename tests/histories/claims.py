"""Claims of lost records against the truth."""

from __future__ import annotations

from collections import Counter

from tests.histories.case import Case

ALERT = "KafkaCommittedDataLoss"
# `collect.broker_timeout_seconds`.
TIMEOUT_SECONDS = 0.5


def judge_claim(case: Case, counts: Counter[str]) -> str | None:
    """The first thing that is wrong with a claim; null: every offset of it is lost.

    Adds the claim's records to `case.claimed`, and its range to `case.ranges`. What no sample could
    show is counted and is no failure: a deletion after the last sample, records that a leader
    committed after its epoch was over, and a topic that was created again while a broker that is
    cut off has the old one.
    """
    if case.alert.state == "resolved":
        return None
    start, end = case.evidence["proven"]
    counts["claims"] += 1
    counts["claimed offsets"] += end - start
    reasons = (_why_not(case, offset) for offset in range(start, end))
    wrong = Counter(why for why in reasons if why is not None)
    before = case.ranges.get(case.alert.fingerprint, (start, end))
    case.ranges[case.alert.fingerprint] = (start, end)
    if before != (start, end) and set(wrong) == {"late"}:
        # A zombie's high watermark, after the loss was claimed.
        return f"{wrong['late']} late, by an update"
    for why in ("deleted unseen", "late", "recreated unseen"):
        counts[f"claimed offsets: {why}"] += wrong.pop(why, 0)
    if sum(wrong.values()) < end - start:
        # What compaction removed lies between records that are lost.
        counts["claimed offsets: compacted"] += wrong.pop("compacted", 0)
    is_repeated = case.alert.state == "update" and before == (start, end)
    if not wrong or (is_repeated and [*wrong] == ["surviving"]):
        # What was deleted unseen when the claim was made may be in a leader's log again.
        return None
    return ", ".join(f"{count} {why}" for why, count in sorted(wrong.items()))


def is_misdated(case: Case, ahead: float) -> bool:
    """Whether a record was written outside of the claim's bounds, by the collector's clock.

    An answer is dated when it is read: the log may have grown since the broker made it.
    """
    truth, (start, end) = case.truth, case.evidence["proven"]
    low, high = case.evidence.get("written_between") or (None, None)
    if any(start <= truth.offset_of[record] < end for record in truth.deleted):
        # Several records had these offsets, and those that were deleted are not claimed.
        return False
    # Another claim may be of other records at these offsets.
    records = case.claimed & _lost(case)
    first = [truth.written_at[record] for record in records if truth.offset_of[record] == start]
    last = [truth.written_at[record] for record in records if truth.offset_of[record] == end - 1]
    early = low is not None and first and max(first) + ahead < low - TIMEOUT_SECONDS
    return bool(early or (high is not None and last and min(last) + ahead > high + 0.001))


def _lost(case: Case) -> frozenset[int]:
    """What the leader of the claim lacked; the newest epoch of its log may be of one before it."""
    from_log = case.evidence.get("epochs_from") == "log"
    epoch = None if from_log else case.evidence.get("leader_epoch_after")
    return case.truth.lost_under(case.topic, epoch, case.evidence.get("leader"))


def _why_not(case: Case, offset: int) -> str | None:
    truth, topic, epoch = case.truth, case.topic, case.evidence.get("leader_epoch_before")
    seen_at = case.evidence.get("committed_seen_at") if case.is_watched_by_one else None
    if case.partition.state.topic != topic:
        return "recreated"
    records = [
        r
        for r in truth.committed[topic].get(offset, ())
        if (epoch is None or truth.restored or truth.epoch_of[r] <= epoch)
        # Others were committed there later, in a new topic.
        and (seen_at is None or case.world.wall(truth.committed_at[r]) <= seen_at)
    ]
    missing = _lost(case).intersection(records)
    # A claim of what was deleted unseen holds when it is back in a log, and is lost once more.
    case.claimed.update(missing or truth.deleted.keys() & set(records))
    if missing:
        return None
    if records and truth.compacted.issuperset(records):
        return "compacted"
    if any(r in truth.deleted for r in records):
        return "deleted" if offset < case.sampled_start else "deleted unseen"
    if set(truth.late[topic].get(offset, ())) - set(records):
        return "late"
    if records:
        return "surviving"
    if topic == 0:
        return "uncommitted"
    return "recreated unseen" if _shows_deleted_topic(case) else "recreated"


def _shows_deleted_topic(case: Case) -> bool:
    """Whether a broker still answers with the log of the topic before, and no id tells them apart.

    Then the logs do not look as if all had begun again.
    """
    return not case.world.mode.topic_ids and any(
        replica.log is not None and replica.topic < case.partition.state.topic
        for replica in case.partition.replicas.values()
    )

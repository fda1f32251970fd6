"""Checks of single sentences; `sentences` says which."""

from __future__ import annotations

import re

from tests.histories.case import Case
from tests.histories.logs import GONE
from tests.histories.truth import Cut

Match = re.Match[str]


def never(case: Case, match: Match) -> bool:
    """The simulated brokers keep the protocol."""
    return False


def was_restored(case: Case, match: Match) -> bool:
    return case.truth.restored


# Elections.


def _election_kind(case: Case) -> str | None:
    after = case.evidence.get("leader_epoch_after")
    if after is None:
        # Without epochs, the newest election of the leader that was not clean.
        elections = [e for e in case.truth.elections if e.leader == case.evidence.get("leader")]
        return next((e.kind for e in reversed(elections) if e.kind != "clean"), None)
    for election in case.truth.elections:
        if (election.topic, election.epoch) == (case.topic, after):
            return election.kind
    return None


def last_known_leader(case: Case, match: Match) -> bool:
    return _election_kind(case) == "last known leader"


def none_eligible(case: Case, match: Match) -> bool:
    return _election_kind(case) in {"last known leader", "unclean"}


def was_elected(case: Case, match: Match) -> bool:
    """The broker was elected in one of the epochs."""
    if case.evidence.get("leader_epoch_after") is None:
        return any(e.leader == int(match[1]) for e in case.truth.elections)
    return any(e.leader == int(match[1]) for e in case.elections())


def leads_recovering(case: Case, match: Match) -> bool:
    return case.was(lambda record: record.recovering and record.leader == int(match[1]))


def recovering(case: Case, match: Match) -> bool:
    """Both elections from outside of the sets are; it may say that it was the first kind."""
    if "not the last known leader" in match.string:
        return _election_kind(case) == "unclean"
    return none_eligible(case, match)


def eligible_or_last_known(case: Case, match: Match) -> bool:
    """Uncleanly too, where the text says so."""
    kinds = {"eligible", "last known leader"}
    if "or the election was unclean" in match.string:
        kinds.add("unclean")
    return _election_kind(case) in kinds


def lost_its_own(case: Case, match: Match) -> bool:
    """The elected leader lacks only what was in its log, and what leaders before it lacked."""
    epoch, leader = case.evidence.get("leader_epoch_after"), case.evidence.get("leader")
    seen = [one for one in case.truth.leaderships if one.topic == case.topic]
    before = [one.lost for one in seen if epoch is not None and one.epoch < epoch]
    own = {record for cut in case.truth.cuts if cut.broker == leader for record in cut.ids}
    lost = case.truth.lost_under(case.topic, epoch, leader)
    return not lost.difference(own, *before)


def elected_holds_all(case: Case, match: Match) -> bool:
    """The election cost nothing: what it lacks, its predecessor lacked."""
    epoch = case.evidence["leader_epoch_after"]
    before = [
        seen.lost
        for seen in case.truth.leaderships
        if seen.topic == case.topic and seen.epoch < epoch
    ][-1:]
    lost = case.truth.lost_under(case.topic, epoch, None)
    return not lost.difference(case.claimed, *before)


def lost_before(case: Case, match: Match) -> bool:
    """Some leadership since the election lacked committed records.

    A deletion that no sample showed looks the same. Consumers read what a deposed leader counted as
    committed, too.
    """
    epoch, truth = case.evidence.get("leader_epoch_after"), case.truth
    return (
        bool(truth.late[case.topic])
        or any(truth.offset_of[record] >= case.sampled_start for record in truth.deleted)
        or any(
            seen.lost
            for seen in case.truth.leaderships
            if seen.topic == case.topic and (epoch is None or seen.epoch >= epoch)
        )
    )


# Truncations.


def _cut_ids(case: Case, broker: int) -> list[int]:
    """The records of [cut, old end) that the replica lost since its last sample."""
    at, end = case.evidence["cut_at"], case.evidence["log_end_offset_before"]
    found: list[int] = []
    for cut in _cuts(case, broker):
        found += [r for r in cut.ids if r >= 0 and at <= case.truth.offset_of[r] < end]
    return found


def _cuts(case: Case, broker: int) -> list[Cut]:
    sampled = case.evidence.get("sampled_at")
    since = case.before_at
    if sampled and sampled[0] is not None:
        # By the end of a pass that read the replica somewhere in it.
        ended_at = case.world.now - (case.alert.at - sampled[0])
        since = max((began for began, _ in case.passes if began <= ended_at), default=ended_at)
    return [c for c in case.truth.cuts if c.broker == broker and c.at >= since - 0.1]


def was_cut(case: Case, match: Match) -> bool:
    return bool(_cuts(case, int(match[1])))


def was_empty(case: Case, match: Match) -> bool:
    """The log had no record of its own: all were deleted, as far as samples showed.

    A log that returns has them again.
    """
    if case.sampled_start >= case.evidence["log_end_offset_before"]:
        return True
    return not any(r not in case.truth.deleted for r in _cut_ids(case, int(match[1])))


def cut_none_committed(case: Case, match: Match) -> bool:
    """Nothing that was cut had been committed by a leader whose epoch counted."""
    broker = int(case.alert.labels["broker"])
    return not any(r in case.truth.committed_at for r in _cut_ids(case, broker))


def diverged(case: Case, match: Match) -> bool:
    """The leader never was in sync with what it lacks."""
    return any(e.kind in {"unclean", "last known leader"} for e in case.elections())


def cut_committed(case: Case, match: Match) -> bool:
    """Records that were cut below the offset had been committed, not all of them necessarily."""
    broker, below = int(match[1]), int(match[2])
    known = case.truth.committed_at
    ids = [r for r in _cut_ids(case, broker) if case.truth.offset_of[r] < below]
    if not ids:
        # They had been deleted, which no sample showed yet.
        return bool(_cuts(case, broker))
    late = {r for records in case.truth.late[case.topic].values() for r in records}
    return any(r in known or r in late for r in ids)


def cut_committed_and_kept(case: Case, match: Match) -> bool:
    """And the leader has all below the offset that were committed up to its epoch."""
    if not cut_committed(case, match):
        return False
    below = int(match[2])
    known, offsets = case.truth.committed_at, case.truth.offset_of
    records = case.committed_in(case.evidence["cut_at"], below, case.evidence["leader_epoch_after"])
    records += [r for r in _cut_ids(case, int(match[1])) if r in known and offsets[r] < below]
    return case.holds(int(match[3]), records)


# High watermarks.


def high_watermark_was(case: Case, match: Match) -> bool:
    late = [offset + 1 for offsets in case.truth.late for offset in offsets]
    return int(match[1]) <= max([*case.truth.high_watermarks, *late])


def leader_lacks_nothing(case: Case, match: Match) -> bool:
    """The leader's log has every committed record below an offset, of its epoch and of those
    before.
    """
    leader = case.evidence["leader"]
    epoch = case.evidence.get("leader_epoch")
    records = case.committed_in(0, int(match[1]), epoch)
    return case.holds(leader, [r for r in records if r not in case.claimed and _seen(case, r)])


def _seen(case: Case, record: int) -> bool:
    """Whether a pass could show that it was committed, before a leader lacked it."""
    committed_at = case.truth.committed_at[record]
    lost = (one.at for one in case.truth.leaderships if record in one.lost)
    lost_at = min(lost, default=case.world.now)
    return any(committed_at <= ended and began <= lost_at for began, ended in case.passes)


def restarted(case: Case, match: Match) -> bool:
    leader, since = case.evidence["leader"], case.world.now - 60.0
    return any(broker == leader and at >= since for at, broker in case.truth.restarts)


# Replicas.


def behind_committed(case: Case, match: Match) -> bool:
    """A replica in the in-sync set whose log lacks committed records."""
    broker, end, committed = int(match[1]), int(match[2]), int(match[3])
    member = case.was(lambda record: broker in record.in_sync)
    records = case.committed_in(end, committed)
    return member and bool(records) and not case.holds(broker, records)


def recreated_or_lost(case: Case, match: Match) -> bool:
    """A topic was deleted, or committed records are not in the leader's log.

    A deletion that no sample showed looks the same.
    """
    truth = case.truth
    if truth.topic > 0:
        return True
    start, end = case.evidence["suspected"]
    if any(max(start, case.sampled_start) <= truth.offset_of[r] < end for r in truth.deleted):
        return True
    records = set(case.committed_in(start, end))
    for offset, late in truth.late[case.topic].items():
        if start <= offset < end:
            records.update(late)
    leader = case.replica(case.evidence["leader"])
    if leader is not None and leader.log is not None:
        records.difference_update(leader.log.ids)
    return bool(records)


def alone(case: Case, match: Match) -> bool:
    return case.was(lambda record: record.in_sync == (int(match[1]),))


def at_most_alone(case: Case, match: Match) -> bool:
    """No more of the leader's records, when it was sampled, are in no other log.

    A silent replica that lost its disk may have fewer than it had; nothing shows that.
    """
    if case.truth.lossy:
        return True
    leader = case.replica(case.evidence["leader"])
    if leader is None or leader.log is None or case.topic != case.partition.state.topic:
        return True
    replicas = case.partition.replicas.values()
    logs = [r.log for r in replicas if r is not leader and r.log is not None]
    start, end = leader.log.start, case.evidence["leader_log_end_offset"]
    if not case.world.mode.fenced:
        # Without epochs, nothing shows that another log has other records at an offset.
        return bool(end - max([start, *(log.end for log in logs)]) <= int(match[1]))
    others = {record for log in logs for record in log.ids}
    return sum(r not in others for r in leader.log.ids[start:end] if r != GONE) <= int(match[1])


def acted_as_leader(case: Case, match: Match) -> bool:
    """The broker led under the first epoch, and the partition is at the second one.

    Without topic ids, the epochs may be of a topic that was created again, and so may they be where
    brokers that are cut off know the topic before.
    """
    if case.truth.topic > 0 and (not case.world.mode.topic_ids or _is_topic_disputed(case)):
        return True
    broker, epoch, newest = (int(match[n]) for n in (1, 2, 3))
    led = any(
        (seen.topic, seen.leader, seen.epoch) == (case.topic, broker, epoch)
        for seen in case.truth.leaderships
    )
    replica = case.replica(broker)
    acts = replica is not None and replica.leads and replica.leader_epoch == epoch
    reached = case.was(
        lambda r: (r.topic, r.leader_epoch) == (case.partition.state.topic, newest), 30.0
    )
    return (led or acts) and reached


def _is_topic_disputed(case: Case) -> bool:
    replicas = case.partition.replicas.values()
    return any(replica.view.topic != case.partition.state.topic for replica in replicas)


def knew_epoch(case: Case, match: Match) -> bool:
    """The epoch that it still knows is older than the partition's."""
    return int(match[2]) < case.partition.state.leader_epoch

"""Merges the answers of a pass into one Observation (tidemark.collect.observe.observer)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.histories.inventory import Watched
from tests.histories.requests import (
    FENCED,
    NAMES,
    NOT_AVAILABLE,
    NOT_LEADER,
    UNANSWERED,
    UNKNOWN_EPOCH,
    Answers,
)
from tidemark.core.events import Observation, Replica

if TYPE_CHECKING:
    from tests.histories.collector import Collector

STALE = frozenset({NOT_LEADER, FENCED, UNKNOWN_EPOCH})
LEADS = {0: True, NOT_AVAILABLE: True, NOT_LEADER: False}
THIN_SECONDS = 30.0


class Seen(NamedTuple):
    """Null: thinned, or missed. `stale`: an answer contradicted the metadata."""

    observation: Observation | None
    missed: bool
    stale: bool


def observe(collector: Collector, watched: Watched, answers: dict[int, Answers]) -> Seen:
    now = collector.world.now
    samples, stale = [], False
    for broker in watched.image.replicas:
        found = answers.get(broker) or Answers(led=False)
        sample, contradicts = _sample(broker, watched, found)
        samples.append(sample)
        stale |= contradicts
    if watched.image.at < collector.started and all(s.error is not None for s in samples):
        watched.quiet = None
        return Seen(None, missed=True, stale=stale)
    shown = _observation(collector, watched, samples)
    leader_read = _add_leader(collector, shown, watched, answers)
    pending = bool(watched.reads_left) or bool(watched.check)
    quiet = _quiet(shown) if not pending else None
    unchanged = quiet is not None and quiet == watched.quiet
    if unchanged and now < watched.due_at and watched.fast is None:
        return Seen(None, missed=False, stale=stale)
    shown.fast_high_watermarks, watched.fast = watched.fast, None
    watched.highest = max(watched.highest, -1 if shown.committed is None else shown.committed)
    watched.quiet = quiet
    watched.due_at = now + THIN_SECONDS
    if pending:
        _check(watched, shown, leader_read=leader_read)
        watched.record_reads(shown, leader_read=leader_read)
    return Seen(shown, missed=False, stale=stale)


def _sample(broker: int, watched: Watched, found: Answers) -> tuple[Replica, bool]:
    claim = found.claim if found.committed is None else found.committed[0]
    leads = None if claim is None else LEADS.get(claim)
    latest, fetched = found.latest, found.fetched
    error = (UNANSWERED if latest is None else latest.error) or (
        UNANSWERED if fetched is None else fetched.error
    )
    stale = error in STALE or (found.committed is not None and claim in STALE)
    if error == UNANSWERED or latest is None or fetched is None:
        why = found.outcome or "no_answer"
        return Replica(broker=broker, leads=leads, error=why), stale
    epoch = latest.epoch if latest.epoch >= 0 else None
    if error:
        text = NAMES.get(error, f"ERROR_{error}")
        return Replica(broker=broker, leads=leads, leader_epoch=epoch, error=text), stale
    stale |= watched.epoch is not None and latest.epoch > watched.epoch
    end, high_watermark = fetched.end, fetched.high_watermark
    if found.epochless:
        end = latest.end
        if high_watermark > end:
            high_watermark = -1
    if end < watched.log_ends.get(broker, 0):
        watched.restart_lineages()
    watched.log_ends[broker] = end
    lineage = None if found.led or found.lineage is None else found.lineage.entries
    known = high_watermark if high_watermark >= 0 else None
    return Replica(
        broker=broker,
        log_end_offset=end,
        high_watermark=known,
        log_start_offset=fetched.start if fetched.start >= 0 else None,
        last_stable_offset=known,
        leader_epoch=epoch,
        leads=leads,
        requested_ms=found.requested_ms if found.epochless else found.asked_ms,
        answered_ms=found.answered_ms,
        lineage=lineage,
    ), stale


def _observation(collector: Collector, watched: Watched, samples: list[Replica]) -> Observation:
    image = watched.image
    eligible = watched.eligible_shown(unchecked=collector.old)
    return Observation(
        topic="orders",
        partition=0,
        observed_at=collector.wall(),
        topic_id=image.topic_id,
        leader=watched.leader,
        leader_epoch=watched.epoch,
        leaderless=watched.leaderless,
        replicas=list(image.replicas),
        in_sync_replicas=list(image.in_sync),
        eligible_leader_replicas=None if eligible is None else list(eligible.eligible),
        last_known_eligible_leader_replicas=None if eligible is None else list(eligible.last_known),
        adding=list(watched.adding),
        removing=list(watched.removing),
        effective_min_in_sync_replicas=watched.min_in_sync,
        metadata_from=watched.witnesses,
        metadata_at=image.at + collector.offset,
        samples=samples,
        compacted=False if any(s.lineage is not None for s in samples) else None,
    )


def _add_leader(
    collector: Collector, shown: Observation, watched: Watched, answers: dict[int, Answers]
) -> bool:
    """Adds what the leader shows. Returns whether its lineage was read, or it has none."""
    found = answers.get(watched.image.leader)
    if found is None or not found.led:
        return False
    _add_offsets(collector, shown, watched, found)
    latest, fetched = found.latest, found.fetched
    if fetched is None or fetched.error:
        return False
    if found.epochless and found.lineage is not None and found.lineage.entries:
        shown.lineage, shown.lineage_complete_from = found.lineage
        shown.compacted = False
    if fetched.end < 0 or found.epochless:
        return True
    if latest is None or latest.epoch != watched.epoch:
        return False
    lineage = found.lineage
    if lineage is None or not lineage.entries:
        shown.lineage, shown.lineage_complete_from = [(fetched.epoch, fetched.end)], fetched.epoch
        return watched.leader not in watched.reads_left
    watched.leader_lineage = lineage
    shown.lineage, shown.lineage_complete_from = list(lineage.entries), lineage.complete_from
    return True


def _add_offsets(
    collector: Collector, shown: Observation, watched: Watched, found: Answers
) -> None:
    confirmed = collector.world.mode.fenced or watched.image.at >= collector.started
    if found.committed is not None and found.committed[0] == 0 and confirmed:
        shown.committed = found.committed[1]
    begin = collector.started + collector.offset
    others = [s for s in shown.samples if s.broker != watched.leader and s.error is None]
    latest, fetched = found.latest, found.fetched
    if latest is not None and not latest.error:
        at = found.latest_ms
        if all(s.requested_ms is None or s.requested_ms >= at for s in others):
            shown.leader_log_end_offset_before = latest.end
            shown.leader_before_at = begin + at / 1000
    if fetched is not None and not fetched.error and fetched.end >= 0 and not found.epochless:
        at = found.asked_ms
        if all(s.answered_ms is None or s.answered_ms <= at for s in others):
            shown.leader_log_end_offset_after = fetched.end
            shown.leader_after_at = begin + found.answered_ms / 1000


def _quiet(shown: Observation) -> object:
    """The content of a quiet partition; null when it is not quiet (collect.observe.quiet)."""
    end, epoch = shown.committed, shown.leader_epoch
    members = shown.in_sync_replicas or []
    if end is None or shown.leader is None or len(members) != len(shown.replicas):
        return None
    if shown.adding or shown.removing:
        return None
    for sample in shown.samples:
        if (
            sample.error is not None
            or not sample.log_end_offset == sample.high_watermark == end
            or (epoch is not None and sample.leader_epoch not in {None, epoch})
        ):
            return None
    return (
        shown.leader,
        epoch,
        shown.replicas,
        members,
        shown.topic_id,
        shown.eligible_leader_replicas,
        shown.effective_min_in_sync_replicas,
        end,
        [(s.broker, s.log_start_offset, s.leader_epoch, s.leads) for s in shown.samples],
    )


def _check(watched: Watched, shown: Observation, *, leader_read: bool) -> None:
    """LineageSchedule: a lineage that seems to differ from the leader's is read again."""
    if not leader_read:
        return
    ends = dict(watched.leader_lineage.entries)
    for sample in shown.samples:
        if sample.lineage is None:
            continue
        differs = any(
            end > ends[epoch] if epoch == sample.lineage[-1][0] else end != ends[epoch]
            for epoch, end in sample.lineage
            if epoch in ends and epoch != watched.leader_lineage.entries[-1][0]
        )
        absent = any(
            epoch not in ends and epoch > watched.leader_lineage.entries[0][0]
            for epoch, _ in sample.lineage
            if watched.leader_lineage.entries
        )
        if differs or absent:
            watched.check.add(sample.broker)
        else:
            watched.check.discard(sample.broker)

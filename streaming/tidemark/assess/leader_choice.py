"""What electing each replica of a partition would lose, and who would truncate to where.

Replicas are in the order of KIP-966's unclean recovery: the last epoch of the log, then the log end
offset. Kafka without it elects the first live replica of the assignment.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from tidemark.assess.baseline import Baseline, baseline_of, find_replica
from tidemark.assess.replica_logs import logs_by_broker, newest_leadership
from tidemark.assess.safe_to_stop import ANY_LAG, Candidates, candidates_of
from tidemark.core.epoch_ranges import EpochRange, first_divergent_offset, last_common_offset
from tidemark.core.records import ReplicaView, View
from tidemark.core.text import answer_text

Standing = Literal["leader", "in_sync", "eligible", "out_of_sync"]
_UNKNOWN: Final = -1


class OffsetRange(NamedTuple):
    """[start, end). No end: what was written after the last sample is unknown."""

    start: int
    end: int | None

    def __str__(self) -> str:
        return f"[{self.start}, {'unknown' if self.end is None else self.end})"


class Truncation(NamedTuple):
    """A replica would cut its log from `start` to `end`.

    Where epochs of the logs are not known, it may cut more: then it is not `exact`.
    """

    broker: int
    start: int
    end: int
    exact: bool


class Choice(NamedTuple):
    """One replica as leader.

    `committed` is a range of records that were committed and that it lacks: proven. `possible`
    are records that it may lack besides; it contains `committed` where the epochs of its log do
    not show that it agrees with the leader's up to there. Where `loses_nothing`, only producers
    with acks=1 may have an acknowledgement for these; otherwise they may have been committed.
    """

    broker: int
    answers: bool
    # Of its last sample, Unix seconds; None: never sampled.
    sampled_at: float | None
    standing: Standing
    # The epoch of its last record; None: unknown.
    last_epoch: int | None
    log_end_offset: int | None
    loses_nothing: bool
    # Why it is not proven to have every committed record; None where it is.
    doubt: str | None
    committed: OffsetRange | None
    possible: OffsetRange | None
    # How old the first of these records is, by the leader's clock: a lower bound; None: unknown.
    lost_ms: float | None
    # Where its log leaves that of the newest leader.
    diverges_at: int | None
    truncations: list[Truncation]

    @property
    def keeps_up_to(self) -> int:
        """The end of what it shares with the newest leader's log."""
        end = self.log_end_offset or 0
        return end if self.diverges_at is None else min(end, self.diverges_at)


class Gain(NamedTuple):
    """What waiting for a silent broker would save, compared with the best one that answers."""

    broker: int
    sampled_at: float | None
    saved: OffsetRange
    # Of these, records that were committed.
    committed: OffsetRange | None


class LeaderChoice(NamedTuple):
    """All replicas, the best that answers first; silent ones last."""

    baseline: Baseline
    choices: list[Choice]
    gains: list[Gain]

    @property
    def best(self) -> Choice | None:
        """The replica to elect; None: none answers."""
        live = [choice for choice in self.choices if choice.answers]
        live.sort(key=lambda choice: (choice.standing != "leader", not choice.loses_nothing))
        return live[0] if live else None


def choose_leader(view: View) -> LeaderChoice:
    """Judges every assigned replica as leader."""
    baseline, logs = baseline_of(view), logs_by_broker(view)
    candidates = candidates_of(view, ANY_LAG)
    choices = [judge_choice(view, each, baseline, candidates, logs) for each in view.replicas]
    choices.sort(key=lambda choice: _rank(view, choice))
    made = LeaderChoice(baseline, choices, [])
    return made._replace(gains=_gains(made, baseline))


def judge_choice(
    view: View,
    replica: ReplicaView,
    baseline: Baseline,
    candidates: Candidates,
    logs: dict[int, list[EpochRange]],
) -> Choice:
    """What electing one replica loses, by its last sample."""
    broker, log_end, log = replica.broker, replica.log_end_offset, logs.get(replica.broker, [])
    is_leader = baseline.is_live and broker == baseline.broker
    reference = _reference(view, logs)
    diverges_at = None if is_leader else first_divergent_offset(reference, log)
    doubt = None if is_leader else _doubt(view, replica, baseline, candidates, diverges_at)
    choice = Choice(
        broker=broker,
        answers=replica.error is None and log_end is not None and not view.missed_passes,
        sampled_at=replica.sampled_at,
        standing=_standing(view, broker, is_leader=is_leader),
        last_epoch=log[-1].epoch if log else None,
        log_end_offset=log_end,
        loses_nothing=doubt is None,
        doubt=doubt,
        committed=None,
        possible=None,
        lost_ms=None,
        diverges_at=diverges_at,
        truncations=[] if log_end is None else _truncations(view, replica, log_end, logs),
    )
    if is_leader or log_end is None:
        return choice
    committed, start = baseline.committed, _log_start(view, baseline)
    # Epochs that were read before a truncation may not be those of its log any more. It truncates
    # only under a newer leader than that of its last record.
    is_exact = log[-1:] != [] and log[-1].epoch == replica.leader_epoch is not None
    follows = _follows(view, replica) or choice.standing != "out_of_sync"
    keeps = choice.keeps_up_to if is_exact and not follows else log_end
    if committed is not None and max(keeps, start) < committed and not choice.loses_nothing:
        choice = choice._replace(committed=OffsetRange(max(keeps, start), committed))
    agrees = log_end
    is_known = choice.standing != "out_of_sync" or choice.last_epoch is not None
    if not choice.loses_nothing and not (follows and is_known and diverges_at is None):
        agrees = _agrees_up_to(log_end, reference, log)
    return choice._replace(
        possible=_possible(keeps, max(agrees, start), baseline),
        lost_ms=_lost_ms(replica, keeps, baseline),
    )


def _reference(view: View, logs: dict[int, list[EpochRange]]) -> list[EpochRange]:
    """The log of the newest leader; where none was seen, the best one of those that answer."""
    broker = newest_leadership(view).broker
    if broker is not None:
        return logs.get(broker, [])
    live = [logs[each.broker] for each in view.replicas if each.error is None]
    known = [log for log in live if log and log[-1].epoch is not None]
    return max(known, key=lambda log: (log[-1].epoch or 0, log[-1].end), default=[])


def _follows(view: View, replica: ReplicaView) -> bool:
    """Whether it has the epoch of a leader that serves."""
    epoch = replica.leader_epoch
    return view.leader is not None and epoch is not None and epoch == view.leader_epoch


def _agrees_up_to(log_end: int, reference: list[EpochRange], log: list[EpochRange]) -> int:
    """The end of what is known to be equal in both logs, by their epochs."""
    if not reference or not log:
        return 0
    return min(log_end, last_common_offset(reference, log) or 0)


def _possible(keeps: int, agrees: int, baseline: Baseline) -> OffsetRange | None:
    """Records that it may lack and that are not proven to be committed, or not proven to lack.

    They begin above the proven range. Where its log is not known to agree with the leader's up to
    there, they begin where that is unknown.
    """
    start = agrees if agrees < keeps else max(keeps, baseline.committed or 0)
    if not baseline.is_live:
        return OffsetRange(start, None)
    written = baseline.written
    return OffsetRange(start, written) if written is not None and start < written else None


def _lost_ms(replica: ReplicaView, keeps: int, baseline: Baseline) -> float | None:
    written = baseline.written
    if written is not None and keeps >= written:
        return 0.0
    if baseline.is_live:
        return replica.lag_ms if keeps == replica.log_end_offset else None
    return baseline.age_ms(keeps)


def _doubt(
    view: View,
    replica: ReplicaView,
    baseline: Baseline,
    candidates: Candidates,
    diverges_at: int | None,
) -> str | None:
    """Why the replica is not proven to have all committed records; None where it is."""
    broker, committed = replica.broker, baseline.committed
    if candidates.unknown is not None:
        return candidates.unknown
    if broker in candidates.disqualified:
        return candidates.disqualified[broker]
    if replica.error is not None:
        return f"it {answer_text(replica.error)} ({replica.error})"
    if diverges_at is not None:
        return f"its log diverges at {diverges_at}"
    log_end = replica.log_end_offset
    if log_end is not None and committed is not None and log_end < committed:
        return f"its log ends at {log_end}, below {committed}, which was committed"
    if broker not in candidates.brokers:
        return "it is neither in sync nor eligible"
    if not baseline.is_live and _may_follow_an_unseen_leader(view, broker):
        return "a leader that was not sampled came after the last one, perhaps uncleanly"
    return None


def _may_follow_an_unseen_leader(view: View, broker: int) -> bool:
    """Whether the in-sync set may be that of a later leader than the last one that was sampled.

    Without a leader, the epoch is one above that of the last. A replica that was in sync with the
    last leader has what that had committed.
    """
    last = view.last_committed
    if last is None:
        return False
    epoch, last_epoch = view.leader_epoch, last.leader_epoch
    is_next = view.leader is None and last_epoch is not None and epoch == last_epoch + 1
    if epoch is not None and (epoch == last_epoch or is_next):
        return False
    leader, seen_at = find_replica(view, last.leader), last.read_at or 0.0
    if leader is not None and leader.leader_epoch == last_epoch:
        seen_at = max(seen_at, leader.sampled_at or 0.0)
    members = [brokers for at, brokers in view.isr_history if at <= seen_at]
    return not members or broker not in members[-1]


def _standing(view: View, broker: int, *, is_leader: bool) -> Standing:
    if is_leader:
        return "leader"
    if broker in (view.in_sync_replicas or []):
        return "in_sync"
    return "eligible" if broker in (view.eligible_leader_replicas or []) else "out_of_sync"


def _log_start(view: View, baseline: Baseline) -> int:
    """The leader's: records below it were deleted, so no election loses them."""
    leader = find_replica(view, baseline.broker)
    return 0 if leader is None else leader.log_start_offset or 0


def _rank(view: View, choice: Choice) -> tuple[bool, int, int, int]:
    """KIP-966: the highest last epoch, then the longest log; then by the assignment."""
    place = view.assigned.index(choice.broker) if choice.broker in view.assigned else 99
    epoch = _UNKNOWN if choice.last_epoch is None else choice.last_epoch
    end = _UNKNOWN if choice.log_end_offset is None else choice.log_end_offset
    return not choice.answers, -epoch, -end, place


def _truncations(
    view: View, leader: ReplicaView, leader_end: int, logs: dict[int, list[EpochRange]]
) -> list[Truncation]:
    """Where the other replicas would cut (KIP-101, KIP-279): where the logs begin to differ."""
    found = []
    for other in view.replicas:
        end = other.log_end_offset
        if other.broker == leader.broker or end is None:
            continue
        mine, its = logs.get(leader.broker, []), logs.get(other.broker, [])
        diverges_at = first_divergent_offset(mine, its)
        cut = min(end, leader_end if diverges_at is None else min(leader_end, diverges_at))
        if cut < end:
            exact = diverges_at is not None or not _has_unknown(mine, its, cut)
            found.append(Truncation(other.broker, cut, end, exact))
    return found


def _has_unknown(one: list[EpochRange], other: list[EpochRange], end: int) -> bool:
    """Whether the last records below `end` have an unknown epoch in one of the logs.

    Logs with the same epoch at an offset are equal up to it.
    """
    epochs = [next((r.epoch for r in log if r.start < end <= r.end), None) for log in (one, other)]
    return end > 0 and None in epochs


def _gains(made: LeaderChoice, baseline: Baseline) -> list[Gain]:
    """One for each silent broker whose log was longer than that of the best one."""
    best, found = made.best, []
    for silent in made.choices:
        if silent.answers or silent.log_end_offset is None:
            continue
        start = 0 if best is None else best.keeps_up_to
        end = silent.keeps_up_to
        if best is not None and end <= start:
            continue
        committed = None
        if best is None or best.committed is not None:
            first = start if best is None or best.committed is None else best.committed.start
            last = min(end, baseline.committed or 0)
            committed = OffsetRange(first, last) if first < last else None
        found.append(Gain(silent.broker, silent.sampled_at, OffsetRange(start, end), committed))
    return sorted(found, key=lambda gain: -(gain.saved.end or 0))

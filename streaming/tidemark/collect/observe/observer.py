"""Merges the answers of a pass: one Observation per partition, with all its replicas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from tidemark.collect.codecs.errors import NOT_LEADER, OFFSET_NOT_AVAILABLE, STALE_CODES, error_name
from tidemark.collect.codecs.fetch import NO_FETCH, TOPIC_AUTHORIZATION_FAILED
from tidemark.collect.codecs.list_offsets import NO_OFFSET
from tidemark.collect.codecs.wire import ERROR_CODE, UNANSWERED
from tidemark.collect.metadata.open_transactions import OpenTransactions
from tidemark.collect.observe.quiet import quiet_state
from tidemark.collect.watched.broker_answers import BrokerAnswers, RequestTimes
from tidemark.collect.watched.lineage_schedule import Lineage
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.events import OK, UNREACHABLE, Observation, Replica
from tidemark.core.fetch_links import LinkCounter
from tidemark.core.leader_epochs import LineageEntries

# Error code of a request that only a leader answers -> whether the replica leads.
LEADS: Final = {0: True, OFFSET_NOT_AVAILABLE: True, NOT_LEADER: False}

# In place of a broker that has no slot for the partition.
_NO_SLOT: Final = (BrokerAnswers(-1, 1, ()), 0)

# From a request to its answer, in ms since the start of the pass; null: it was not sent.
_Span = tuple[float | None, float | None]
_NEVER: Final = math.inf


class _Times(NamedTuple):
    """Of the requests to one broker: `first` to all replicas, the others as in BrokerAnswers."""

    first: _Span
    followers: _Span
    asked_again: _Span
    leaders: _Span
    # When the answers to the first and the last were read, in Unix seconds.
    first_at: float | None
    leaders_at: float | None

    def of(self, answers: BrokerAnswers, index: int, has_end: bool) -> _Span:
        """Of the log end offset and the high watermark of one replica, whatever it answered."""
        if index in answers.asked_again:
            return self.followers[0], self.asked_again[1]
        asked_ms, answered_ms = self.leaders if index in answers.led else self.followers
        return asked_ms if has_end else self.first[0], answered_ms


# Of all replicas; when the first follower was asked and the last one had answered (ms); where links
# are to be counted, the leader's log end offset in the pass before.
_Samples = tuple[list[Replica], float, float, int | None]


class Observer:
    """Builds the observations of one pass. `found_stale`: an answer contradicted the metadata.

    `found_news`: there is an error, a log that is shorter than before, a follower without what its
    leader had in the pass before, or something that is read seldom.
    """

    def __init__(
        self,
        outcomes: dict[int, str],
        wall: Callable[[float], float],
        started: float,
        thin_seconds: float,
        links: LinkCounter | None = None,
        transactions: OpenTransactions | None = None,
    ) -> None:
        self.found_stale = self.found_news = False
        # Quiet and recently observed partitions: they count as seen.
        self.thinned = 0
        self.missed: set[WatchedPartition] = set()
        self._outcomes = outcomes
        self._wall = wall
        self._started = started
        self._thin_seconds = thin_seconds
        self._links = links or LinkCounter()
        self._transactions = transactions
        self._times: dict[int, _Times] = {}

    def observe(self, watched: WatchedPartition, now: float) -> Observation | None:
        """Null for a partition that is thinned, or missed: without answers or newer metadata."""
        has_news = watched.fast_high_watermarks is not None
        is_due = has_news or now >= watched.due_at
        if watched.is_settled and not is_due:
            self.thinned += 1
            return None
        samples = self._samples(watched)
        replicas = samples[0]
        if watched.metadata_at < self._started and all(s.error is not None for s in replicas):
            watched.forget_quiet_state()
            self.missed.add(watched)
            return None
        observed_at, metadata_at = self._wall(now), self._wall(watched.metadata_at)
        observation = watched.observation(observed_at, metadata_at, replicas)
        leader_read = self._add_leader(observation, watched, samples)
        if samples[3] is not None:
            self._links.note(observation, samples[3])
        lineage_pending = watched.lineage.is_pending
        state = None if lineage_pending else quiet_state(observation, watched.shown)
        watched.is_settled = state is not None
        unchanged = state is not None and state == watched.quiet_state
        watched.quiet_state = state
        if unchanged and not is_due:
            self.thinned += 1
            return None
        # The first interval differs between partitions, so that they are not all due in one pass.
        share = 1.0 if unchanged else 0.5 + 0.5 * watched.spread
        watched.due_at = now + share * self._thin_seconds
        self.found_news |= lineage_pending or has_news
        if lineage_pending:
            if any(sample.lineage is not None for sample in replicas):
                observation.compacted = watched.configuration.compacted
            late = {b for b, (answers, _) in watched.slots.items() if answers.is_late}
            watched.lineage.record(observation, leader_read=leader_read, now=now, late=late)
        if watched.has_unsent:
            _add_unsent(observation, watched)
        if has_news:
            observation.fast_high_watermarks = watched.take_fast_high_watermarks()
        return observation

    def _samples(self, watched: WatchedPartition) -> _Samples:
        replicas, first_asked_ms, last_answered_ms = [], _NEVER, -_NEVER
        leader, known_epoch, ends = watched.leader, watched.leader_epoch, watched.log_end_offsets
        leader_end, counts = ends.get(leader or 0, -1), self._links.is_counting
        for broker in watched.metadata.replicas:
            answers, index = watched.slots.get(broker, _NO_SLOT)
            times = self._times.get(answers.broker) or self._times_of(answers)
            _, error, end, epoch = answers.latest[index] or NO_OFFSET
            _, fetch_error, high_watermark, last_stable_offset, log_start_offset, _, epoch_end = (
                answers.fetched[index] or NO_FETCH
            )
            committed = answers.committed[index]
            asked_ms, answered_ms = times.leaders if index in answers.led else times.followers
            leads, lineage, has_end = None if committed is None else True, None, True
            if error or fetch_error or index in answers.unusual or (committed and committed[1]):
                error, leads, lineage, has_end = self._look_at(answers, index)
                asked_ms, answered_ms = times.of(answers, index, has_end)
            if error:
                replicas.append(self._without_answer(broker, answers, error, epoch, leads))
                self.found_news = True
                continue
            # Above the epoch of the metadata: that is old.
            if known_epoch is not None and epoch > known_epoch:
                self.found_stale = True
            if has_end:
                end = epoch_end
            elif high_watermark > end:
                # It was read after the end offset and has passed it: not of one instant.
                high_watermark = -1
            if end < ends.get(broker, 0):
                watched.lineage.restart(watched.metadata.replicas)
                self.found_news = True
            ends[broker] = end
            if broker != leader:
                if end < leader_end:
                    counts = self.found_news = True
                if asked_ms is not None and asked_ms < first_asked_ms:
                    first_asked_ms = asked_ms
                if answered_ms is not None and answered_ms > last_answered_ms:
                    last_answered_ms = answered_ms
            replicas.append(
                Replica(
                    broker=broker,
                    log_end_offset=end if end >= 0 else None,
                    high_watermark=high_watermark if high_watermark >= 0 else None,
                    log_start_offset=log_start_offset if log_start_offset >= 0 else None,
                    last_stable_offset=last_stable_offset if last_stable_offset >= 0 else None,
                    leader_epoch=epoch if epoch >= 0 else None,
                    leads=leads,
                    requested_ms=asked_ms,
                    answered_ms=answered_ms,
                    lineage=lineage,
                )
            )
        known_end = leader_end if counts and leader_end >= 0 else None
        return replicas, first_asked_ms, last_answered_ms, known_end

    def _look_at(
        self, answers: BrokerAnswers, index: int
    ) -> tuple[int, bool | None, LineageEntries | None, bool]:
        """Of an error or an unusual answer: the error, whether it leads, its lineage, and whether
        Fetch shows its log end offset.
        """
        _, error, *_ = answers.latest[index] or NO_OFFSET
        _, fetch_error, *_ = answers.fetched[index] or NO_FETCH
        # Fetch needs the right to read the topic. ListOffsets does not: its answer counts alone.
        may_not_read = fetch_error == TOPIC_AUTHORIZATION_FAILED
        error = error or (0 if may_not_read else fetch_error)
        committed = answers.committed[index]
        claim = answers.claims.get(index) if committed is None else committed[ERROR_CODE]
        self.found_stale |= error in STALE_CODES or (committed is not None and claim in STALE_CODES)
        leads = None if claim is None else LEADS.get(claim)
        lineage = None if index in answers.led else answers.lineages.get(index)
        has_end = not may_not_read and index not in answers.epochless
        return error, leads, None if lineage is None else lineage.entries, has_end

    def _without_answer(
        self, broker: int, answers: BrokerAnswers, error: int, epoch: int, leads: bool | None
    ) -> Replica:
        if error == UNANSWERED:
            return Replica(broker=broker, leads=leads, error=self._failure(broker, answers.outcome))
        known_epoch = epoch if epoch >= 0 else None
        return Replica(
            broker=broker, leads=leads, leader_epoch=known_epoch, error=error_name(error)
        )

    def _failure(self, broker: int, outcome: str | None) -> str:
        failure = outcome or self._outcomes.get(broker, UNREACHABLE)
        # The broker answered without this partition: a throttled Fetch is answered empty.
        return "no_answer" if failure == OK else failure

    def _times_of(self, answers: BrokerAnswers) -> _Times:
        found = self._times[answers.broker] = _Times(
            self._span(answers.latest_times),
            self._span(answers.followers_times),
            self._span(answers.asked_again_times),
            self._span(answers.leaders_times),
            self._read_at(answers.latest_times),
            self._read_at(answers.leaders_times),
        )
        return found

    def _span(self, times: RequestTimes | None) -> _Span:
        if times is None:
            return None, None
        return self._ms(times.requested_at), self._ms(times.answered_at)

    def _read_at(self, times: RequestTimes | None) -> float | None:
        return None if times is None else self._wall(times.answered_at)

    def _ms(self, monotonic: float) -> float:
        """Since the start of the pass."""
        return round((monotonic - self._started) * 1000, 3)

    def _add_leader(
        self, observation: Observation, watched: WatchedPartition, samples: _Samples
    ) -> bool:
        """Adds the committed offset, the leader's end offsets and its lineage.

        Returns whether the lineage was read as far as it is due, or none can be had.
        """
        answers, index = watched.slots.get(watched.metadata.leader, (None, 0))
        if answers is None or index not in answers.led:
            return False
        _, latest_error, before, known_epoch = answers.latest[index] or NO_OFFSET
        _, error, _, last_stable, _, epoch, end = answers.fetched[index] or NO_FETCH
        has_end = not error and end >= 0 and index not in answers.epochless
        times = self._times.get(answers.broker) or self._times_of(answers)
        (_, first_ms), (leaders_ms, _) = times.first, times.leaders
        _, first_asked_ms, last_answered_ms, _ = samples
        if not latest_error and first_ms is not None and first_ms <= first_asked_ms:
            observation.leader_log_end_offset_before = before if before >= 0 else None
            observation.leader_before_at = times.first_at
        if has_end and leaders_ms is not None and leaders_ms >= last_answered_ms:
            observation.leader_log_end_offset_after = end
            observation.leader_after_at = times.leaders_at
        # It led when it answered: by a fence, or by metadata before and after.
        is_confirmed = answers.fenced or watched.metadata_at >= self._started
        _, committed_error, committed, _ = answers.committed[index] or NO_OFFSET
        if not committed_error and committed >= 0 and is_confirmed:
            observation.committed = committed
            if 0 <= last_stable < committed and self._transactions is not None and not error:
                observation.open_transaction = self._transactions.note(
                    watched, last_stable, self._started
                )
        is_known = known_epoch == (-1 if watched.leader_epoch is None else watched.leader_epoch)
        if index in answers.lineages:
            lineage = answers.lineages[index]
            if lineage is None or not is_known or not is_confirmed:
                return False
            self._add_lineage(observation, watched, lineage, index in answers.newest_epoch_only)
            return True
        if not has_end:
            return not error or error == TOPIC_AUTHORIZATION_FAILED
        if is_known:
            observation.lineage, observation.lineage_complete_from = [(epoch, end)], epoch
        return is_known and watched.leader not in watched.lineage.reads_left

    @staticmethod
    def _add_lineage(
        observation: Observation, watched: WatchedPartition, lineage: Lineage, is_newest: bool
    ) -> None:
        if lineage.entries:
            observation.lineage, observation.lineage_complete_from = lineage
            if not is_newest:
                watched.lineage.leader = lineage
                observation.compacted = watched.configuration.compacted


def _add_unsent(observation: Observation, watched: WatchedPartition) -> None:
    """What is read seldom, once after each read: it changes seldom, and costs bytes."""
    watched.has_unsent = False
    observation.compacted = watched.configuration.compacted
    observation.unclean_leader_election = watched.configuration.unclean_leader_election
    observation.throttled_replicas = watched.throttled_replicas
    for sample in observation.samples:
        sample.size_bytes = watched.sizes.get(sample.broker)

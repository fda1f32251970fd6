"""Merges the answers of a pass: one Observation per partition, with all its replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidemark.collect.codecs.errors import NOT_LEADER, OFFSET_NOT_AVAILABLE, STALE_CODES, error_name
from tidemark.collect.codecs.fetch import NO_FETCH, TOPIC_AUTHORIZATION_FAILED
from tidemark.collect.codecs.list_offsets import NO_OFFSET
from tidemark.collect.codecs.wire import ERROR_CODE, UNANSWERED
from tidemark.collect.observe.quiet import is_quiet
from tidemark.collect.observe.steady_observer import SteadyObserver, new_observation, quiet_state
from tidemark.collect.watched.broker_answers import BrokerAnswers, Lineage
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.events import OK, UNREACHABLE, Observation, Replica

# Error code of a request that only a leader answers -> whether the replica leads.
LEADS: Final = {0: True, OFFSET_NOT_AVAILABLE: True, NOT_LEADER: False}


class Observer:
    """Builds the observations of one pass. `found_stale`: an answer contradicted the metadata."""

    def __init__(
        self,
        outcomes: dict[int, str],
        wall: Callable[[float], float],
        started: float,
        thin_seconds: float,
    ) -> None:
        self.found_stale = False
        # Quiet and recently observed partitions: they count as seen.
        self.thinned = 0
        self.missed: set[WatchedPartition] = set()
        self._outcomes = outcomes
        self._wall = wall
        self._started = started
        self._thin_seconds = thin_seconds
        self._steady = SteadyObserver(wall, started)
        self._times_ms: dict[tuple[int, bool, bool], tuple[float | None, float | None]] = {}

    def observe(self, watched: WatchedPartition, now: float) -> Observation | None:
        """Null for a partition that is thinned, or missed: without answers or newer metadata."""
        has_news = watched.fast_high_watermarks is not None
        is_due = has_news or now >= watched.due_at
        if watched.is_settled and not is_due:
            self.thinned += 1
            return None
        steady = self._steady.observe(watched, now)
        lineage_pending = leader_read = False
        if steady is not None:
            observation, state = steady
        else:
            samples = [self._sample(watched, broker) for broker in watched.metadata.replicas]
            if watched.metadata_at < self._started and all(s.error is not None for s in samples):
                watched.forget_quiet_state()
                self.missed.add(watched)
                return None
            observation = self._observation(watched, samples, now)
            leader_read = self._add_leader(observation, watched)
            lineage_pending = watched.lineage.is_pending
            quiet = not lineage_pending and is_quiet(observation)
            state = quiet_state(watched, observation) if quiet else None
        watched.is_settled = state is not None
        unchanged = state is not None and state == watched.quiet_state
        if unchanged and not is_due:
            self.thinned += 1
            return None
        watched.quiet_state = state
        # The first interval differs between partitions, so that they are not all due in one pass.
        share = 1.0 if unchanged else 0.5 + 0.5 * watched.spread
        watched.due_at = now + share * self._thin_seconds
        if lineage_pending:
            late = {b for b, (answers, _) in watched.slots.items() if answers.is_late}
            watched.lineage.record(observation, leader_read=leader_read, now=now, late=late)
        if watched.has_unsent:
            _add_unsent(observation, watched)
        if has_news:
            observation.fast_high_watermarks = watched.take_fast_high_watermarks()
        return observation

    def _sample(self, watched: WatchedPartition, broker: int) -> Replica:
        slot = watched.slots.get(broker)
        if slot is None:
            return Replica(broker=broker, error=self._failure(broker, None))
        answers, index = slot
        committed = answers.committed[index]
        claim = answers.claims.get(index) if committed is None else committed[ERROR_CODE]
        leads = None if claim is None else LEADS.get(claim)
        _, latest_error, end, epoch = answers.latest[index] or NO_OFFSET
        _, fetch_error, high_watermark, last_stable_offset, log_start_offset, _, epoch_end = (
            answers.fetched[index] or NO_FETCH
        )
        # Fetch needs the right to read the topic. ListOffsets does not: its answer counts alone.
        may_not_read = fetch_error == TOPIC_AUTHORIZATION_FAILED
        error = latest_error or (0 if may_not_read else fetch_error)
        self.found_stale |= error in STALE_CODES or (committed is not None and claim in STALE_CODES)
        if error == UNANSWERED:
            return Replica(broker=broker, leads=leads, error=self._failure(broker, answers.outcome))
        leader_epoch = epoch if epoch >= 0 else None
        if error:
            return Replica(
                broker=broker, leads=leads, leader_epoch=leader_epoch, error=error_name(error)
            )
        # Above the epoch of the metadata: that is old.
        self.found_stale |= watched.leader_epoch is not None and epoch > watched.leader_epoch
        epochless, led = index in answers.epochless, index in answers.led
        if not (epochless or may_not_read):
            end = epoch_end
        elif high_watermark > end:
            # It was read after the end offset and has passed it: they are not of one instant.
            high_watermark = -1
        if end < watched.log_end_offsets.get(broker, 0):
            watched.lineage.restart(watched.metadata.replicas)
        watched.log_end_offsets[broker] = end
        requested_ms, answered_ms = (
            self._times_asked_again(answers)
            if index in answers.asked_again
            else self._request_times(answers, led, epochless or may_not_read)
        )
        lineage, _ = (None, None) if led else answers.lineages.get(index, (None, None))
        return Replica(
            broker=broker,
            log_end_offset=end if end >= 0 else None,
            high_watermark=high_watermark if high_watermark >= 0 else None,
            log_start_offset=log_start_offset if log_start_offset >= 0 else None,
            last_stable_offset=last_stable_offset if last_stable_offset >= 0 else None,
            leader_epoch=leader_epoch,
            leads=leads,
            requested_ms=requested_ms,
            answered_ms=answered_ms,
            lineage=lineage,
        )

    def _failure(self, broker: int, outcome: str | None) -> str:
        failure = outcome or self._outcomes.get(broker, UNREACHABLE)
        # The broker answered without this partition: a throttled Fetch is answered empty.
        return "no_answer" if failure == OK else failure

    def _request_times(
        self, answers: BrokerAnswers, led: bool, epochless: bool
    ) -> tuple[float | None, float | None]:
        """When a broker was asked and had answered: one pair for leaders, one for followers."""
        key = (answers.broker, led, epochless)
        found = self._times_ms.get(key)
        if found is None:
            times = answers.leaders_times if led else answers.followers_times
            since = answers.latest_times if epochless else times
            found = self._times_ms[key] = (
                self._ms(since.requested_at) if since else None,
                self._ms(times.answered_at) if times else None,
            )
        return found

    def _times_asked_again(self, answers: BrokerAnswers) -> tuple[float | None, float | None]:
        """Of followers: from Fetch to the answer with the log end offsets."""
        since, until = answers.followers_times, answers.asked_again_times
        return (
            self._ms(since.requested_at) if since else None,
            self._ms(until.answered_at) if until else None,
        )

    def _ms(self, monotonic: float) -> float:
        """Since the start of the pass."""
        return round((monotonic - self._started) * 1000, 3)

    def _observation(
        self, watched: WatchedPartition, samples: list[Replica], now: float
    ) -> Observation:
        observation = new_observation(watched, samples, self._wall, now)
        if any(sample.lineage is not None for sample in samples):
            observation.compacted = watched.configuration.compacted
        return observation

    def _add_leader(self, observation: Observation, watched: WatchedPartition) -> bool:
        """Adds the committed offset, the leader's end offsets and its lineage.

        Returns whether the lineage was read as far as it is due, or none can be had.
        """
        slot = watched.slots.get(watched.metadata.leader)
        if slot is None:
            return False
        answers, index = slot
        if index not in answers.led:
            return False
        self._add_leader_offsets(observation, watched, answers, index)
        _, _, _, known_epoch = answers.latest[index] or NO_OFFSET
        is_known = known_epoch == (-1 if watched.leader_epoch is None else watched.leader_epoch)
        lineage = answers.lineages.get(index)
        if answers.has_epoch_end_offsets:
            if lineage is None or not is_known or not self._is_confirmed(answers, watched):
                return False
            if lineage.entries:
                self._add_lineage(observation, watched, lineage, index in answers.whole_lineages)
            return True
        _, error, *_, epoch, end = answers.fetched[index] or NO_FETCH
        if error == TOPIC_AUTHORIZATION_FAILED:
            return True
        if error:
            return False
        if end < 0 or index in answers.epochless:
            return True
        if not is_known:
            return False
        if lineage is None or not lineage.entries:
            observation.lineage, observation.lineage_complete_from = [(epoch, end)], epoch
            return watched.leader not in watched.lineage.reads_left
        self._add_lineage(observation, watched, lineage, is_whole=True)
        return True

    def _is_confirmed(self, answers: BrokerAnswers, watched: WatchedPartition) -> bool:
        """Whether the broker led when it answered: by a fence, or by metadata before and after."""
        return answers.fenced or watched.metadata_at >= self._started

    @staticmethod
    def _add_lineage(
        observation: Observation, watched: WatchedPartition, lineage: Lineage, is_whole: bool
    ) -> None:
        observation.lineage, observation.lineage_complete_from = lineage
        if is_whole:
            watched.lineage.leader = lineage
            observation.compacted = watched.configuration.compacted

    def _add_leader_offsets(
        self,
        observation: Observation,
        watched: WatchedPartition,
        answers: BrokerAnswers,
        index: int,
    ) -> None:
        """Its committed offset, and its end offsets before and after the followers' samples."""
        _, error, offset, _ = answers.committed[index] or NO_OFFSET
        if not error and offset >= 0 and self._is_confirmed(answers, watched):
            observation.committed = offset
        followers = [s for s in observation.samples if s.broker != watched.leader and not s.error]
        _, error, end, _ = answers.latest[index] or NO_OFFSET
        times = answers.latest_times
        if not error and times is not None:
            read_ms = self._ms(times.answered_at)
            if all(s.requested_ms is None or s.requested_ms >= read_ms for s in followers):
                observation.leader_log_end_offset_before = end if end >= 0 else None
                observation.leader_before_at = self._wall(times.answered_at)
        _, error, *_, end = answers.fetched[index] or NO_FETCH
        times = answers.leaders_times
        if not error and end >= 0 and index not in answers.epochless and times is not None:
            asked_ms = self._ms(times.requested_at)
            if all(s.answered_ms is None or s.answered_ms <= asked_ms for s in followers):
                observation.leader_log_end_offset_after = end
                observation.leader_after_at = self._wall(times.answered_at)


def _add_unsent(observation: Observation, watched: WatchedPartition) -> None:
    """What is read seldom, once after each read: it changes seldom, and costs bytes."""
    watched.has_unsent = False
    observation.unclean_leader_election = watched.configuration.unclean_leader_election
    observation.throttled_replicas = watched.throttled_replicas
    for sample in observation.samples:
        sample.size_bytes = watched.sizes.get(sample.broker)

"""Observations of partitions whose replicas all answered without an error: nearly all, each pass.

`Observer` builds the same from the same answers, and from all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidemark.collect.codecs.fetch import NO_FETCH
from tidemark.collect.codecs.list_offsets import NO_OFFSET
from tidemark.collect.watched.broker_answers import BrokerAnswers, RequestTimes
from tidemark.collect.watched.watched_partition import WatchedPartition
from tidemark.core.events import OK, Observation, Replica


class _Times(NamedTuple):
    """Of one set of replicas under one leader: when they were asked and had answered.

    `replicas` are ms since the start of the pass. Null: the leader was not sampled at a time that
    counts.
    """

    replicas: tuple[tuple[float, float], ...]
    leader_before_at: float | None
    leader_after_at: float | None


class SteadyObserver:
    """For one pass. `wall`: Unix seconds of a monotonic time, `started`: of the pass."""

    def __init__(self, wall: Callable[[float], float], started: float) -> None:
        self._wall = wall
        self._started = started
        self._times: dict[tuple[int, tuple[int, ...]], _Times | None] = {}

    def observe(self, watched: WatchedPartition, now: float) -> tuple[Observation, object] | None:
        """The observation, and its content without times where the partition is quiet.

        Null for a partition with anything unusual: `Observer` has to look at it.
        """
        leader, leader_epoch = watched.leader, watched.leader_epoch
        slots, lineage = watched.slots, watched.lineage
        if leader is None or leader_epoch is None or lineage.reads_left or lineage.check:
            return None
        times = self._times_of(leader, watched.metadata.replicas, slots)
        if times is None:
            return None
        answers, index = slots[leader]
        entry = answers.committed[index]
        if entry is None or entry[1] or entry[2] < 0:
            return None
        committed = entry[2]
        _, _, before, known = answers.latest[index] or NO_OFFSET
        *_, newest_epoch, after = answers.fetched[index] or NO_FETCH
        if before < 0 or known != leader_epoch:
            return None
        fields = watched.metadata_fields()
        is_quiet = fields.all_in_sync and not fields.adding and not fields.removing
        ends, samples = watched.log_end_offsets, []
        for broker, (requested_ms, answered_ms) in zip(
            fields.replicas, times.replicas, strict=True
        ):
            answers, index = slots[broker]
            latest, fetched = answers.latest[index], answers.fetched[index]
            if latest is None or fetched is None:
                return None
            _, latest_error, _, known = latest
            _, error, high_watermark, last_stable_offset, log_start_offset, _, end = fetched
            leads = broker == leader
            if (
                error
                or latest_error
                or high_watermark < 0
                or last_stable_offset < 0
                or log_start_offset < 0
                or end < ends.get(broker, 0)
                or not 0 <= known <= leader_epoch
                or (not leads and answers.committed[index] is not None)
                or index in answers.unusual
            ):
                return None
            ends[broker] = end
            if is_quiet:
                is_quiet = (
                    end == high_watermark == last_stable_offset == committed
                    and known == leader_epoch
                )
            samples.append(
                Replica(
                    broker=broker,
                    log_end_offset=end,
                    high_watermark=high_watermark,
                    log_start_offset=log_start_offset,
                    last_stable_offset=last_stable_offset,
                    leader_epoch=known,
                    leads=leads or None,
                    requested_ms=requested_ms,
                    answered_ms=answered_ms,
                )
            )
        observation = new_observation(watched, samples, self._wall, now)
        if times.leader_before_at is not None:
            observation.leader_log_end_offset_before = before
            observation.leader_before_at = times.leader_before_at
        if times.leader_after_at is not None:
            observation.leader_log_end_offset_after = after
            observation.leader_after_at = times.leader_after_at
        observation.committed = committed
        observation.lineage = [(newest_epoch, after)]
        observation.lineage_complete_from = newest_epoch
        return observation, quiet_state(watched, observation) if is_quiet else None

    def _times_of(
        self,
        leader: int,
        replicas: tuple[int, ...],
        slots: dict[int, tuple[BrokerAnswers, int]],
    ) -> _Times | None:
        """Null where a broker did not answer all requests, or is too old for them."""
        key = (leader, replicas)
        found = self._times.get(key)
        if found is None and key not in self._times:
            found = self._times[key] = self._find_times(leader, replicas, slots)
        return found

    def _find_times(
        self,
        leader: int,
        replicas: tuple[int, ...],
        slots: dict[int, tuple[BrokerAnswers, int]],
    ) -> _Times | None:
        found: dict[int, RequestTimes] = {}
        for broker in replicas:
            answers, _ = slots.get(broker, (None, 0))
            if answers is None or answers.outcome != OK or not answers.has_epochs_in_fetch:
                return None
            times = answers.leaders_times if broker == leader else answers.followers_times
            if times is None:
                return None
            found[broker] = times
        if leader not in found:
            return None
        asked, (leaders, _) = found[leader], slots[leader]
        first = leaders.latest_times
        if first is None:
            return None
        ms = {b: (self._ms(t.requested_at), self._ms(t.answered_at)) for b, t in found.items()}
        followers = [ms[broker] for broker in replicas if broker != leader]
        before_ms, after_ms = self._ms(first.answered_at), self._ms(asked.requested_at)
        is_before = all(requested_ms >= before_ms for requested_ms, _ in followers)
        is_after = all(answered_ms <= after_ms for _, answered_ms in followers)
        return _Times(
            tuple(ms[broker] for broker in replicas),
            self._wall(first.answered_at) if is_before else None,
            self._wall(asked.answered_at) if is_after else None,
        )

    def _ms(self, monotonic: float) -> float:
        return round((monotonic - self._started) * 1000, 3)


def new_observation(
    watched: WatchedPartition,
    samples: list[Replica],
    wall: Callable[[float], float],
    now: float,
) -> Observation:
    """With what the metadata shows, and nothing of the leader's log. `now`: monotonic."""
    fields = watched.metadata_fields()
    return Observation(
        topic=watched.topic,
        partition=watched.number,
        observed_at=wall(now),
        topic_id=watched.topic_id,
        leader=watched.leader,
        leader_epoch=watched.leader_epoch,
        leaderless=watched.leaderless,
        replicas=fields.replicas,
        in_sync_replicas=fields.in_sync,
        eligible_leader_replicas=fields.eligible,
        last_known_eligible_leader_replicas=fields.last_known,
        adding=fields.adding,
        removing=fields.removing,
        effective_min_in_sync_replicas=fields.effective_min_in_sync,
        metadata_from=watched.metadata_from,
        metadata_at=wall(watched.metadata_at),
        samples=samples,
    )


def quiet_state(watched: WatchedPartition, observation: Observation) -> object:
    """The content of an observation of a quiet partition without times."""
    return (
        watched.metadata,
        watched.topic_id,
        watched.eligible,
        watched.configuration,
        observation.committed,
        [
            (sample.broker, sample.log_start_offset, sample.leader_epoch, sample.leads)
            for sample in observation.samples
        ],
    )

"""The answers of a pass, put together per partition: one Observation with all replicas, or the reason there is none."""

from __future__ import annotations

import enum
import time
from typing import Final

from kafka import errors as kafka_errors

from tidemark.collect.inventory import Watched, spread
from tidemark.collect.plan import Asked, BrokerPlan
from tidemark.collect.walks import after_change, take_reads
from tidemark.core.events import OK, UNREACHABLE, Observation, Replica

NOT_LEADER: Final = 6
OFFSET_NOT_AVAILABLE: Final = 78
# Another leader or epoch than we know: metadata is read again at once.
STALE_CODES: Final = frozenset({6, 74, 75})


class Absent(enum.Enum):
    """Why a partition has no observation in a pass."""

    # Quiet, and observed lately: it counts as seen.
    THINNED = "thinned"
    MISSED = "missed"


THINNED: Final = Absent.THINNED
MISSED: Final = Absent.MISSED


class Clock:
    """Wall time that never runs backward: the wall clock at its start plus monotonic time since."""

    def __init__(self) -> None:
        self._wall = time.time()
        self._monotonic = time.monotonic()

    def wall(self, monotonic: float) -> float:
        return self._wall + (monotonic - self._monotonic)


def error_name(code: int) -> str:
    """Kafka's name of an error code (Errors.java)."""
    if code == NOT_LEADER:
        return "NOT_LEADER_OR_FOLLOWER"
    return (
        str(getattr(kafka_errors.for_code(code), "message", None) or f"ERROR_{code}")
        if code
        else "NONE"
    )


class Observer:
    """Builds the observations of one pass. `stale` tells afterwards whether an answer contradicted the metadata."""

    def __init__(
        self,
        plans: dict[int, BrokerPlan],
        outcomes: dict[int, str],
        clock: Clock,
        started: float,
        thin_seconds: float,
    ) -> None:
        self._plans = plans
        self._outcomes = outcomes
        self._clock = clock
        self._started = started
        self._thin_seconds = thin_seconds
        self.stale = False
        self._times: dict[tuple[int, bool, bool], tuple[float | None, float | None]] = {}

    def observe(self, watched: Watched, now: float) -> Observation | Absent:
        """`now` is monotonic. A partition of which nothing new was learnt is missed."""
        raw = self._raw(watched)
        if raw is not None and raw == watched.raw and now < watched.due_at:
            return THINNED
        samples, answered = self._samples(watched)
        if not answered and watched.metadata_at < self._started:
            watched.signature = watched.raw = None
            return MISSED
        signature = self._quiet(watched, samples)
        watched.raw = None if signature is None else raw
        if signature is not None and signature == watched.signature and now < watched.due_at:
            return THINNED
        self._schedule(watched, signature, now)
        return self._observation(watched, samples, now)

    def _raw(self, watched: Watched) -> object:
        """All that `_quiet` looks at, undigested: equal to what was quiet the last time, it is quiet still, for a tenth of the cost."""
        if watched.places is None or watched.walks or watched.doubt is not None:
            return None
        answers: list[object] = [
            watched.seat, watched.topic_id, watched.eligible, watched.last_known, watched.min_in_sync, watched.adding, watched.removing,
        ]  # fmt: skip
        for plan, index in watched.places:
            answers += (plan.latest[index], plan.fetched[index], plan.committed[index])
        return answers

    def _schedule(self, watched: Watched, signature: object, now: float) -> None:
        if signature is not None and signature == watched.signature:
            watched.due_at = now + self._thin_seconds
        else:
            # The first interval differs between partitions, lest all be due in one pass ever after.
            watched.due_at = now + self._thin_seconds * (
                0.5 + 0.5 * spread(watched.topic, watched.number)
            )
        watched.signature = signature

    def _samples(self, watched: Watched) -> tuple[list[Replica], bool]:
        samples = []
        answered = False
        for broker in watched.seat.replicas:
            plan = self._plans.get(broker)
            index = None if plan is None else plan.place(watched)
            if plan is None or index is None:
                samples.append(
                    Replica(broker=broker, error=self._outcomes.get(broker, UNREACHABLE))
                )
                continue
            replica = self._replica(plan, index, watched)
            answered |= replica.error is None
            samples.append(replica)
        return samples, answered

    def _replica(self, plan: BrokerPlan, index: int, watched: Watched) -> Replica:
        latest, fetched, committed = plan.latest[index], plan.fetched[index], plan.committed[index]
        told = plan.believing.get(index) if committed is None else committed[1]
        leads = None if told is None else _leads(told)
        self.stale |= committed is not None and committed[1] in STALE_CODES
        if latest is None or (fetched is None and latest[1] == 0):
            failed = plan.outcome or self._outcomes.get(plan.broker, UNREACHABLE)
            if failed == OK:
                # It answered, but left this partition out: a throttled Fetch is answered empty.
                failed = "no_answer"
            return Replica(broker=plan.broker, leads=leads, error=failed)
        code = latest[1] or (fetched[1] if fetched is not None else 0)
        epoch = latest[3] if latest[3] >= 0 else None
        if code or fetched is None:
            self.stale |= code in STALE_CODES
            return Replica(
                broker=plan.broker, leads=leads, leader_epoch=epoch, error=error_name(code)
            )
        # The broker is ahead of our metadata.
        self.stale |= (
            epoch is not None and watched.leader_epoch is not None and epoch > watched.leader_epoch
        )
        plain = index in plan.plain
        end = latest[2] if plain else fetched[6]
        high_watermark: int | None = fetched[2]
        if plain and high_watermark is not None and high_watermark > end:
            # Read a moment after the end offset, and grown past it: no statement about one instant.
            high_watermark = None
        if end < watched.ends.get(plan.broker, 0):
            watched.walks = after_change(watched.seat.replicas)
        watched.ends[plan.broker] = end
        asked_ms = self._asked_ms(plan, index in plan.leading, plain)
        walked = plan.walked.get(index) if index not in plan.leading else None
        return Replica(
            broker=plan.broker,
            log_end_offset=_known(end),
            high_watermark=_known(high_watermark),
            log_start_offset=_known(fetched[4]),
            last_stable_offset=_known(fetched[3]),
            leader_epoch=epoch,
            leads=leads,
            requested_ms=asked_ms[0],
            answered_ms=asked_ms[1],
            lineage=walked[0] if walked else None,
        )

    def _asked_ms(
        self, plan: BrokerPlan, leads: bool, plain: bool
    ) -> tuple[float | None, float | None]:
        """When a broker was asked and had answered; the same for all its leaders, and for all its followers."""
        key = (plan.broker, leads, plain)
        found = self._times.get(key)
        if found is None:
            asked = plan.leaders_asked if leads else plan.followers_asked
            since = plan.latest_asked if plain else asked
            found = (
                self._ms(since.requested_at if since else None),
                self._ms(asked.answered_at if asked else None),
            )
            self._times[key] = found
        return found

    def _ms(self, monotonic: float | None) -> float | None:
        return None if monotonic is None else round((monotonic - self._started) * 1000, 3)

    def _quiet(self, watched: Watched, samples: list[Replica]) -> object:
        """What this partition shows, if it is quiet: all answered, all logs end at their high watermark, nobody is out of sync."""
        if watched.walks or watched.doubt is not None or watched.leader is None:
            return None
        if not watched.all_in_sync or watched.adding or watched.removing:
            return None
        shown = []
        end = samples[0].log_end_offset
        for sample in samples:
            # Brokers before 0.11 have no last stable offset.
            stable = end if sample.last_stable_offset is None else sample.last_stable_offset
            ends = {sample.log_end_offset, sample.high_watermark, stable}
            if sample.error is not None or ends != {end} or end is None:
                return None
            if (
                sample.leader_epoch is not None
                and watched.leader_epoch is not None
                and sample.leader_epoch != watched.leader_epoch
            ):
                return None
            shown.append(
                (sample.broker, sample.log_start_offset, sample.leader_epoch, sample.leads)
            )
        committed = self._committed(watched)
        if committed != end:
            return None
        return (
            watched.seat,
            watched.topic_id,
            watched.eligible,
            watched.last_known,
            watched.min_in_sync,
            end,
            tuple(shown),
        )

    def _committed(self, watched: Watched) -> int | None:
        plan = self._plans.get(watched.leader) if watched.leader is not None else None
        index = None if plan is None else plan.place(watched)
        if plan is None or index is None or index not in plan.leading:
            return None
        entry = plan.committed[index]
        # Without a fence the answer counts only when metadata named this leader before and after it.
        if entry is None or entry[1] or (not plan.fenced and watched.metadata_at < self._started):
            return None
        return _known(entry[2])

    def _observation(self, watched: Watched, samples: list[Replica], now: float) -> Observation:
        observation = Observation(
            topic=watched.topic,
            partition=watched.number,
            observed_at=self._clock.wall(now),
            topic_id=watched.topic_id,
            leader=watched.leader,
            leader_epoch=watched.leader_epoch,
            leaderless=watched.leaderless,
            replicas=list(watched.seat.replicas),
            in_sync_replicas=list(watched.seat.in_sync),
            eligible_leader_replicas=_list(watched.eligible),
            last_known_eligible_leader_replicas=_list(watched.last_known),
            adding=list(watched.adding),
            removing=list(watched.removing),
            effective_min_in_sync_replicas=_effective(watched),
            metadata_from=list(watched.metadata_from),
            metadata_at=self._clock.wall(watched.metadata_at),
            samples=samples,
            committed=self._committed(watched),
        )
        if any(sample.lineage is not None for sample in samples):
            observation.compacted = watched.compacted
        leader_read = self._add_leader(observation, watched, samples)
        if watched.walks or watched.doubt is not None:
            take_reads(watched, observation, leader_read=leader_read, now=now)
        return observation

    def _add_leader(
        self, observation: Observation, watched: Watched, samples: list[Replica]
    ) -> bool:
        """The leader's end offset before and after the followers, and its lineage. Tells whether that was read as it was due."""
        plan = self._plans.get(watched.leader) if watched.leader is not None else None
        index = None if plan is None else plan.place(watched)
        if plan is None or index is None or index not in plan.leading:
            return False
        latest, fetched = plan.latest[index], plan.fetched[index]
        followers = [s for s in samples if s.broker != watched.leader and s.error is None]
        if latest is not None and latest[1] == 0 and plan.latest_asked is not None:
            read = self._ms(plan.latest_asked.answered_at)
            if read is not None and all(
                s.requested_ms is None or s.requested_ms >= read for s in followers
            ):
                observation.leader_log_end_offset_before = _known(latest[2])
                observation.leader_before_at = self._clock.wall(plan.latest_asked.answered_at)
        if fetched is None or fetched[1]:
            return False
        if index in plan.plain or fetched[6] < 0:
            # A log without epochs has no lineage to walk.
            return True
        self._add_after(observation, fetched[6], plan.leaders_asked, followers)
        if latest is None or latest[3] != watched.leader_epoch:
            return False
        observation.lineage, observation.lineage_complete_from = (
            [(fetched[5], fetched[6])],
            fetched[5],
        )
        walked = plan.walked.get(index)
        if walked is not None and walked[0]:
            watched.lineage, watched.lineage_complete_from = walked
            observation.lineage, observation.lineage_complete_from = walked
            return True
        return watched.leader not in watched.walks

    def _add_after(
        self, observation: Observation, end: int, asked: Asked | None, followers: list[Replica]
    ) -> None:
        asked_ms = self._ms(asked.requested_at if asked else None)
        if (
            asked is None
            or asked_ms is None
            or any(s.answered_ms is not None and s.answered_ms > asked_ms for s in followers)
        ):
            return
        observation.leader_log_end_offset_after = end
        observation.leader_after_at = self._clock.wall(asked.answered_at)


def _leads(code: int) -> bool | None:
    if code in {0, OFFSET_NOT_AVAILABLE}:
        return True
    return False if code == NOT_LEADER else None


def _known(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None


def _list(values: tuple[int, ...] | None) -> list[int] | None:
    return None if values is None else list(values)


def _effective(watched: Watched) -> int | None:
    """min(min.insync.replicas, number of replicas), as Partition.effectiveMinIsr."""
    if watched.min_in_sync is None or not watched.seat.replicas:
        return None
    return max(1, min(watched.min_in_sync, len(watched.seat.replicas)))

"""ISR_CHURN: a broker leaves in-sync sets again and again, by itself or driven out by its leader.

Counted per broker: three brokers that leave once each are a rolling restart. Samples give a lower
bound. Brokers that one leader drives out are one condition, about the leader. Where several
partitions lose a broker at once, the cause is no partition's: they are one departure, which counts
for the cluster.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Final, Generic, NamedTuple, TypeVar

from tidemark.core import activity
from tidemark.core.broker_seen import Departure
from tidemark.core.cluster import ClusterState
from tidemark.core.partition import PartitionState, Shrink
from tidemark.core.shrink_causes import ShrinkCause, ShrinkExplanation
from tidemark.core.tracked_alert import is_firing
from tidemark.detect.detector import ClusterContext, Condition, Conditions, Context, Detector
from tidemark.detect.measures import cause_text, leader_text

ID = "ISR_CHURN"
# Until then it may show that several partitions share a departure, or that it is a restart.
SETTLED_MS: Final = 10_000.0
# Three shrinks in ten minutes are no restart: a restart causes one. Slower trouble shows by twice
# as many in an hour.
WINDOW_SECONDS: Final = 600.0
LONG_SECONDS: Final = 3600.0
LONG_FACTOR: Final = 2
_NOT_DRIVEN_OUT: Final = (ShrinkCause.REASSIGNMENT, ShrinkCause.CONTROLLED_SHUTDOWN)
# What left, oldest first, by broker.
Left = TypeVar("Left", Shrink, Departure)


def evaluate(state: PartitionState, context: Context) -> Conditions:
    """One condition per cause: a broker that left this partition's set alone, or its leader."""
    own = [s for s in state.shrinks if s.broker in state.assigned and _is_own(s, context)]
    by_broker: dict[int, list[Shrink]] = {}
    for shrink in own:
        by_broker.setdefault(shrink.broker, []).append(shrink)
    for subject, churn in _too_often(by_broker, context).items():
        shrinks = sorted(chain.from_iterable(churn.left.values()), key=lambda shrink: shrink.at)
        causes = Counter(shrink.explanation for shrink in shrinks)
        cause = ShrinkExplanation(*causes.most_common(1)[0][0][:2])
        is_counted = any(context.cluster.seen(b).in_sync is not None for b in churn.left)
        yield Condition(
            severity="warning",
            subject=subject,
            broker=churn.suspect,
            hold_ms=SETTLED_MS if is_counted else 0.0,
            description=f"{_names(churn)} left the in-sync set of {context.name} {churn.times} "
            f"times in {churn.minutes} min, lately {leader_text(shrinks[-1].leader)} "
            f"({cause_text(cause)}).{_driven_out(churn)}",
            evidence={
                "shrinks": [[shrink.at, shrink.leader, shrink.cause] for shrink in shrinks],
                "count": churn.times,
                "leaders": sorted({s.leader for s in shrinks if s.leader is not None}),
                "suspected_causes": Counter(shrink.cause for shrink in shrinks),
            },
        )


class _Churn(NamedTuple, Generic[Left]):
    """What left too often by one cause, by broker. `suspect`: the cause; None: not known."""

    suspect: int | None
    minutes: int
    left: dict[int, list[Left]]

    @property
    def times(self) -> int:
        """How often the broker left that left most often: one leader drives out several at once."""
        return max(map(len, self.left.values()))


def _too_often(
    by_broker: dict[int, list[Left]], context: Context | ClusterContext
) -> dict[int, _Churn[Left]]:
    """By the subject of the alert: the suspected cause, or else the broker that left."""
    found: dict[int, _Churn[Left]] = {}
    for broker, left in by_broker.items():
        lately = [each for each in left if each.at >= context.now - LONG_SECONDS]
        suspects = Counter(each.suspected for each in lately if each.suspected is not None)
        most = (b for b, times in suspects.most_common(1) if 2 * times > suspects.total())
        suspect = next(most, None)
        subject = broker if suspect is None else suspect
        seconds = _window([each.at for each in lately], subject, context)
        if seconds is not None:
            known = found.setdefault(subject, _Churn(suspect, round(seconds / 60.0), {}))
            since = context.now - 60.0 * known.minutes
            known.left[broker] = [each for each in lately if each.at >= since]
    return {subject: churn for subject, churn in found.items() if any(churn.left.values())}


def _window(times: list[float], subject: int, context: Context | ClusterContext) -> float | None:
    """The time in which a broker left too often. An open alert goes on at a slower pace."""
    limit, now = context.thresholds.churn_shrinks, context.now
    recent = sum(at >= now - WINDOW_SECONDS for at in times)
    if recent >= limit:
        return WINDOW_SECONDS
    is_open = recent > 0 and is_firing(context.alerts, ID, subject)
    return LONG_SECONDS if len(times) >= (limit if is_open else LONG_FACTOR * limit) else None


def _is_own(shrink: Shrink, context: Context) -> bool:
    """Whether neither a reassignment, a restart nor a departure from several sets explains it."""
    if shrink.cause in _NOT_DRIVEN_OUT:
        return False
    departure = context.cluster.seen(shrink.broker).departure_at(shrink.at)
    return departure is None or not (departure.orderly or departure.is_broker_wide)


def _names(churn: _Churn[Left]) -> str:
    names = " and ".join(map(str, sorted(churn.left)))
    return f"Brokers {names}" if len(churn.left) > 1 else f"Broker {names}"


def _driven_out(churn: _Churn[Left]) -> str:
    if churn.suspect is None or churn.suspect in churn.left:
        return ""
    return f" Leader {churn.suspect} served them late: check broker {churn.suspect}."


def evaluate_cluster(cluster: ClusterState, context: ClusterContext) -> Conditions:
    """One condition per cause: a broker that left several sets at once, or the leader of them."""
    by_broker = {
        broker: [d for d in seen.departures if d.is_broker_wide and not d.orderly]
        for broker, seen in sorted(cluster.brokers.items())
    }
    for subject, churn in _too_often(by_broker, context).items():
        departures = [departure for each in churn.left.values() for departure in each]
        most = max(departure.partitions for departure in departures)
        often = Counter(name for departure in departures for name in departure.names)
        names = [name for name, _ in often.most_common(5)]
        which = f", among them {', '.join(names)}" if names else ""
        yield Condition(
            severity="warning",
            subject=subject,
            broker=churn.suspect,
            hold_ms=SETTLED_MS,
            description=f"{_names(churn)} of {context.kafka_cluster} left the in-sync sets of "
            f"several partitions {churn.times} times in {churn.minutes} min: of up to {most} at a "
            f"time{which}.{_driven_out(churn)}",
            evidence={
                "departures": [[d.began, d.ended, d.partitions] for d in departures],
                "count": churn.times,
                "most_partitions": most,
                "partitions": names,
            },
        )


DETECTOR = Detector(
    ID,
    "state",
    "A broker leaves the in-sync set again and again.",
    severities=("warning",),
    wakes_on=activity.SHRINKS,
    state=evaluate,
    cluster=evaluate_cluster,
    fire_passes=1,
)

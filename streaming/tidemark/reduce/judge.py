"""Runs the detectors and the life cycle on a partition or a cluster."""

from __future__ import annotations

from dataclasses import replace

from msgspec import Struct

from tidemark.core import activity
from tidemark.core.activity import Activity
from tidemark.core.cluster import ClusterState
from tidemark.core.identity import split_key
from tidemark.core.partition import PartitionState
from tidemark.core.records import Alert
from tidemark.detect import DETECTORS, broker_down
from tidemark.detect.default_thresholds import Detection, Thresholds
from tidemark.detect.detector import ClusterContext, Condition, Context, Detector
from tidemark.detect.measures import longest_wait_ms
from tidemark.evolve.activity import alerts_activity
from tidemark.reduce.failures import Failures
from tidemark.reduce.life_cycle import Found, Judgement, LifeCycle, Rules, Scope
from tidemark.reduce.worst_alert import is_of_absent

EMPTY = PartitionState()


class DecodedPartition(Struct, gc=False):
    """One decoded partition: its key, its state and the flags of that state."""

    key: str
    state: PartitionState
    flags: Activity

    @property
    def scope(self) -> Scope:
        """What its alerts are about."""
        return Scope(*split_key(self.key), self.state.topic_id)


class Judge:
    """The detectors that a configuration leaves on, with its thresholds."""

    def __init__(self, detection: Detection) -> None:
        self._detection = detection
        self._by_topic: dict[str, tuple[Thresholds, Rules]] = {}
        on = [d for d in DETECTORS.values() if d.id not in detection.disabled]
        self._states = [d for d in on if d.state is not None]
        self._events = [d for d in on if d.event is not None]
        self._clusters = [d for d in on if d.cluster is not None]
        self._reports_brokers = broker_down.DETECTOR in on
        # Flags -> the detectors that they wake; a cluster shows few combinations.
        self._woken: dict[Activity, tuple[list[Detector], list[Detector]]] = {}
        # A topic's override may lower it.
        self._waits_ms = min(map(self._waits_of, self._detection.all_thresholds()))

    def lag_threshold_ms(self, topic: str | None) -> float:
        """How far behind is late."""
        return self._of_topic(topic)[0].lag_ms

    def rules(self, topic: str | None) -> Rules:
        """The life cycle's part of the thresholds of a topic; None: brokers and clusters."""
        return self._of_topic(topic)[1]

    def _of_topic(self, topic: str | None) -> tuple[Thresholds, Rules]:
        known = self._by_topic.get(topic or "")
        if known is None:
            thresholds = self._detection.for_topic(topic)
            rules = Rules(
                thresholds.fire_passes,
                thresholds.clear_passes,
                thresholds.event_expires_ms,
                DETECTORS,
            )
            known = self._by_topic[topic or ""] = (thresholds, rules)
        return known

    def life_cycle(self, partition: DecodedPartition, now: float) -> LifeCycle:
        """The life cycle of a partition's alerts at `now`."""
        scope = partition.scope
        return LifeCycle(scope, self.rules(scope.topic), now)

    def context(
        self, partition: DecodedPartition, cluster: ClusterState, now: float, period_ms: float
    ) -> Context:
        """What the detectors of a partition are given."""
        name, topic, number = split_key(partition.key)
        thresholds, _ = self._of_topic(topic)
        alerts = partition.state.alerts
        return Context(
            kafka_cluster=name,
            topic=topic,
            partition=number,
            now=now,
            period_ms=period_ms,
            thresholds=thresholds,
            cluster=cluster,
            alerts=alerts,
        )

    def may_find(self, partition: DecodedPartition, now: float) -> bool:
        """Whether a state detector may find something in a partition without alerts.

        Most samples of a moving partition are taken while records are on their way to a follower.
        """
        if partition.flags != activity.LAG:
            return partition.flags != activity.NONE
        wait_ms = longest_wait_ms(partition.state, now)
        return wait_ms is None or wait_ms >= self._waits_ms

    def _waits_of(self, thresholds: Thresholds) -> float:
        """The shortest wait that a detector reports which LAG wakes."""
        waits = [
            0.0 if detector.waits_ms is None else detector.waits_ms(thresholds)
            for detector in self._wake(activity.LAG)[0]
        ]
        return min(waits, default=float("inf"))

    def judge_events(
        self,
        partition: DecodedPartition,
        before: PartitionState | None,
        flags: Activity,
        context: Context,
    ) -> list[Alert]:
        """Raises the events between two states. `flags` are those of the state and of the fold."""
        woken = self._wake(flags)[1]
        if not woken:
            return []
        state = partition.state
        found = [
            (detector, condition)
            for detector in woken
            if detector.event is not None
            for condition in detector.event(before or EMPTY, state, context)
        ]
        life_cycle = self.life_cycle(partition, context.now)
        state.alerts = life_cycle.raise_events(state.alerts, found)
        return life_cycle.published

    def judge_states(
        self, partition: DecodedPartition, context: Context, *, missed: bool
    ) -> list[Alert]:
        """Judges the states of a partition at a pass; `missed`: the pass did not see it."""
        state = partition.state
        found = [
            (detector, self._without_ticket(detector, condition, state, context))
            for detector in self._wake(partition.flags)[0]
            if detector.state is not None and (detector.while_blind or not missed)
            for condition in detector.state(state, context)
        ]
        if not found and not state.alerts:
            return []

        def waits(detector: Detector) -> bool:
            if missed and not detector.while_blind:
                return True
            return detector.can_judge is not None and not detector.can_judge(state)

        life_cycle = self.life_cycle(partition, context.now)
        # At once: where it raises, no alert changed.
        judged = life_cycle.judge_states(state.alerts, found, waits)
        state.alerts = life_cycle.expire_events(judged)
        partition.flags = partition.flags & ~activity.ALERTS | alerts_activity(state)
        return life_cycle.published

    def _without_ticket(
        self, detector: Detector, condition: Condition, state: PartitionState, context: Context
    ) -> Condition:
        """At most info, while the alert of a broker has the cause."""
        if self._reports_brokers and is_of_absent(detector, condition, state, context):
            return replace(condition, severity="info")
        return condition

    def close_deleted(self, partition: DecodedPartition, at: float) -> list[Alert]:
        """Resolves every alert of a partition that was deleted."""
        life_cycle = self.life_cycle(partition, at)
        life_cycle.end(partition.state.alerts, Judgement.DELETED, lambda _: True)
        return life_cycle.published

    def acknowledge(
        self, partition: DecodedPartition, alert_fingerprint: str, at: float
    ) -> list[Alert]:
        """Closes the event of a fingerprint."""
        life_cycle = self.life_cycle(partition, at)
        partition.state.alerts = life_cycle.acknowledge(partition.state.alerts, alert_fingerprint)
        return life_cycle.published

    def judge_cluster(
        self, cluster: ClusterState, name: str, now: float, period_ms: float, failures: Failures
    ) -> list[Alert]:
        """Judges a cluster and its brokers at a pass, in its home group.

        The alerts of a detector that raises do not change.
        """
        thresholds, rules = self._of_topic(None)
        context = ClusterContext(
            kafka_cluster=name,
            now=now,
            period_ms=period_ms,
            thresholds=thresholds,
            alerts=cluster.alerts,
        )
        blind = cluster.blind_passes > 0
        found: list[Found] = []
        failed: set[str] = set()
        for detector in self._clusters:
            if detector.cluster is None or (blind and not detector.while_blind):
                continue
            try:
                found += [(detector, each) for each in detector.cluster(cluster, context)]
            except Exception as error:
                failed.add(detector.id)
                failures.add(f"{name} ({detector.id})", error)

        def waits(detector: Detector) -> bool:
            return (blind and not detector.while_blind) or detector.id in failed

        life_cycle = LifeCycle(Scope(name), rules, now)
        alerts, named = cluster.alerts, cluster.brokers
        if named:
            # Not registered any more, and in no replica list.
            alerts = life_cycle.end(
                alerts,
                Judgement.REMOVED,
                lambda alert: alert.detector == broker_down.ID and alert.subject not in named,
            )
        cluster.alerts = life_cycle.judge_states(alerts, found, waits)
        return life_cycle.published

    def _wake(self, flags: Activity) -> tuple[list[Detector], list[Detector]]:
        """The state detectors and the event detectors that flags wake."""
        woken = self._woken.get(flags)
        if woken is None:
            states = [detector for detector in self._states if detector.wakes_on & flags]
            events = [detector for detector in self._events if detector.wakes_on & flags]
            woken = self._woken[flags] = (states, events)
        return woken

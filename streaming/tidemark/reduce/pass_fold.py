"""Pass records, the clock of a group: they judge states, publish views and grant restart grace."""

from __future__ import annotations

from typing import Final

from tidemark.core import activity
from tidemark.core.cluster import ClusterState
from tidemark.core.errors import StateError
from tidemark.core.events import Batch, Pass
from tidemark.core.identity import home_group, split_key
from tidemark.evolve.broker_answers import apply_answers, grant_grace, stopping_in_order
from tidemark.evolve.cluster import advance_clock, apply_pass, is_due
from tidemark.evolve.departures import count_in_sync
from tidemark.reduce.failures import Failures
from tidemark.reduce.group_state import DecodedGroup
from tidemark.reduce.judge import DecodedPartition
from tidemark.reduce.rows import view_row
from tidemark.reduce.schedule import (
    CHANGED,
    EACH_PASS,
    MAX_REFRESH_SECONDS,
    is_unseen,
    refresh_at,
    refresh_seconds,
)
from tidemark.reduce.views import (
    REASSERT_SECONDS,
    REFRESH_SECONDS,
    cluster_digest,
    newest_reading,
    partition_digest,
)

# No view is due later than this after a pass; a later time is one of a clock that was ahead.
LATEST_SECONDS: Final = 2 * max(MAX_REFRESH_SECONDS, REASSERT_SECONDS)


class PassFold(DecodedGroup):
    """Folds the pass records of a group."""

    # When Kafka stored the record that is folded, Unix seconds; 0: not known.
    stored_at = 0.0

    def _pass(self, batch: Batch, cluster: ClusterState, event: Pass) -> None:
        """One that fails is done as far as possible. Raises PartialFailureError at its end."""
        if not advance_clock(
            cluster, batch.collector, batch.collector_epoch, event, self.stored_at
        ):
            return
        now, failures = event.ended_at, Failures()
        try:
            self._apply_brokers(batch, cluster, event, failures)
        except Exception as error:
            failures.add(batch.cluster, error)
        if event.missed != "all":
            missed, prefix = self._missed(batch, event), f"{batch.cluster}/"
            due = [
                key
                for key, at in self.state.due.items()
                if not now < at <= now + LATEST_SECONDS
                and key not in missed
                and key.startswith(prefix)
            ]
            for key in (*sorted(missed), *due):
                # It stays due, and keeps its state: the next pass judges it again.
                try:
                    self._judge_partition(key, batch, cluster, event, missed=key in missed)
                except Exception as error:
                    failures.add(key, error)
        is_home = home_group(batch.cluster, self._groups) == self._group
        if is_home and is_due(cluster, batch.collector, event):
            self._judge_cluster(batch, cluster, event, failures)
        failures.check()

    def _apply_brokers(
        self, batch: Batch, cluster: ClusterState, event: Pass, failures: Failures
    ) -> None:
        """What the pass reports of the brokers and the cluster, before anything is judged."""
        now = event.ended_at
        apply_pass(cluster, event)
        apply_answers(cluster, event.brokers, now)
        count_in_sync(cluster, batch.collector, event.brokers, now)
        idle = [
            broker
            for broker, is_counted in stopping_in_order(cluster, now).items()
            if is_counted or not self._serves(batch.cluster, broker, failures)
        ]
        grant_grace(cluster, idle, now, self._detection.thresholds.restart_grace_ms)

    def _missed(self, batch: Batch, event: Pass) -> set[str]:
        """The known partitions that the pass lists as missed; a range may be of any width."""
        ranges = event.missed
        if not ranges or ranges == "all":
            return set()
        missed = set()
        for key in self.keys(f"{batch.cluster}/"):
            _, topic, number = split_key(key)
            if any(first <= number <= last for first, last in ranges.get(topic, ())):
                missed.add(key)
        return missed

    def _serves(self, cluster: str, broker: int, failures: Failures) -> bool:
        """Whether a broker leads, or is in sync with, a partition of this group."""
        for key in self.keys(f"{cluster}/"):
            try:
                state = self.partition(key)
            except StateError as error:
                # It may serve this one: grace without knowing would hide alerts.
                failures.add(key, error)
                return True
            assert state is not None
            if state.leader == broker or broker in (state.in_sync_replicas or []):
                return True
        return False

    def _judge_partition(
        self, key: str, batch: Batch, cluster: ClusterState, event: Pass, *, missed: bool
    ) -> None:
        """Judges one partition at a pass of its collector, and publishes the result."""
        partition = self._decode(key)
        if partition is None:
            return
        state, now = partition.state, event.ended_at
        if (state.collector, state.collector_epoch) != (batch.collector, batch.collector_epoch):
            return
        missed = missed or is_unseen(state, partition.flags, event)
        if missed:
            state.missed_passes += 1
            partition.flags |= activity.MISSED
        had_alerts = bool(state.alerts)
        if had_alerts or self._judge.may_find(partition, now):
            context = self._judge.context(partition, cluster, now, event.period_ms)
            self._publish_alerts(self._judge.judge_states(partition, context, missed=missed))
        changed = missed or had_alerts or bool(state.alerts)
        changed = changed or self.state.due.get(key) == CHANGED
        self._publish_view(partition, now, cluster.partitions, changed=changed)

    def _publish_view(
        self, partition: DecodedPartition, now: float, partitions: int | None, *, changed: bool
    ) -> None:
        """Publishes the view where it is due; `changed`: its meaning may have changed.

        `partitions`: how many the cluster has.
        """
        state, key = partition.state, partition.key
        if state.published_at > now:
            # By a clock that was ahead.
            state.published_at = 0.0
        digest = partition_digest(state) if changed else state.published_digest
        fresh = newest_reading(state) > state.published_at
        firing = any(alert.firing for alert in state.alerts)
        seconds = refresh_seconds(state, partition.flags, partitions)
        if (
            digest != state.published_digest
            or (fresh and now >= refresh_at(key, state.published_at, seconds))
            or (firing and now - state.published_at >= REASSERT_SECONDS)
        ):
            self.rows.append(view_row(self.view(key, now)))
            state.published_at, state.published_digest, fresh = now, digest, False
        if partition.flags & activity.JUDGED_EACH_PASS:
            self.state.due[key] = EACH_PASS
        elif fresh:
            self.state.due[key] = refresh_at(key, state.published_at, seconds)
        elif firing:
            self.state.due[key] = state.published_at + REASSERT_SECONDS
        else:
            self.state.due.pop(key, None)

    def _judge_cluster(
        self, batch: Batch, cluster: ClusterState, event: Pass, failures: Failures
    ) -> None:
        """Alerts and views of a cluster and its brokers, in the home group only.

        The views show that passes arrive, so they are published also where judging fails.
        """
        name, now = batch.cluster, event.ended_at
        try:
            alerts = self._judge.judge_cluster(cluster, name, now, event.period_ms, failures)
            self._publish_alerts(alerts)
        except Exception as error:
            failures.add(name, error)
        try:
            self._publish_cluster_views(name, cluster, now)
        except Exception as error:
            failures.add(name, error)

    def _publish_cluster_views(self, name: str, cluster: ClusterState, now: float) -> None:
        digest = cluster_digest(cluster)
        age = abs(now - cluster.published_at)
        if digest != cluster.published_digest or age >= REFRESH_SECONDS:
            self.rows += [view_row(view) for view in self.cluster_views(name)]
            cluster.published_at, cluster.published_digest = now, digest

"""The events and alerts of one partition: from recordings, or from Tidemark's topics."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from tidemark.assess.health import SEVERITIES
from tidemark.assess.incident.step import is_about, newest_alerts
from tidemark.assess.incident.timeline import Timeline
from tidemark.assess.losses import LOSS
from tidemark.assess.while_down import WHILE_DOWN, cost_of_saving
from tidemark.core.codec import salvage_batch
from tidemark.core.errors import ClusterError, ConfigError, WireError
from tidemark.core.events import Batch, Event, Observation
from tidemark.core.identity import group_of
from tidemark.core.records import Alert
from tidemark.detect.default_thresholds import Detection
from tidemark.kafka.topic_reader import TopicReader, values
from tidemark.observations.alerts import alerts_of_topic
from tidemark.observations.cluster_views import ClusterViews
from tidemark.observations.recorded_lines import LineReducer, check_sources, read_lines
from tidemark.settings import Settings
from tidemark.verbs.timeline.report import LOSS_RISK

# Partitions that an error names.
SEEN: Final = 5
TOPIC_KEEPS: Final = "; the topic of events keeps 24 hours"


class Wanted(NamedTuple):
    """The partition. `cluster` None: the only one that has it. Times are Unix seconds."""

    topic: str
    partition: int
    cluster: str | None = None
    since: float = 0.0
    until: float = float("inf")
    # Of the alerts that are shown, besides losses and their risks.
    severities: Collection[str] = SEVERITIES
    # Only the newest incident in that time.
    only_newest: bool = False

    def has(self, at: float) -> bool:
        return self.since <= at <= self.until


class TimeLines:
    """A time line for each cluster that has the partition."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        # The first partitions that are there.
        self._seen: dict[str, None] = {}
        self.by_cluster = defaultdict[str, Timeline](
            lambda: Timeline(wanted.topic, wanted.partition)
        )

    def batch(self, batch: Batch) -> None:
        if len(self._seen) < SEEN:
            self._note_seen(batch)
        if self._wanted.cluster not in {None, batch.cluster}:
            return
        for event in batch.events:
            if self._wanted.has(_time_of(event)):
                self.by_cluster[batch.cluster].add(event, batch.collector)

    def alert(self, alert: Alert) -> None:
        line, wanted = self.by_cluster.get(alert.labels["kafka_cluster"]), self._wanted
        if line is None or not wanted.has(alert.at):
            return
        # The verdict needs losses and their risks, whatever is shown.
        is_lesser = alert.labels["severity"] not in wanted.severities
        if is_lesser and alert.labels["alertname"] not in {LOSS, LOSS_RISK}:
            return
        if is_about(alert, wanted.topic, wanted.partition, line.brokers):
            line.alert(alert)

    def _note_seen(self, batch: Batch) -> None:
        for event in batch.events:
            if len(self._seen) < SEEN and isinstance(event, Observation):
                self._seen[f"{batch.cluster}/{event.topic}-{event.partition}"] = None

    def only(self, kept: str = "") -> tuple[str, Timeline]:
        """Raises ConfigError for several clusters, ClusterError for none."""
        found = {name: line for name, line in self.by_cluster.items() if line.steps}
        place = f"{self._wanted.topic}-{self._wanted.partition}"
        if not found:
            others = f"; there are {', '.join(self._seen)}" if self._seen else ", nor any other"
            raise ClusterError(
                f"{place} was not observed there{others}. Check its name, --cluster and "
                f"--since{kept}."
            )
        if len(found) > 1:
            raise ConfigError(
                f"several clusters have {place}; choose one with --cluster: "
                f"{', '.join(sorted(found))}."
            )
        name, line = found.popitem()
        line.end(only_newest=self._wanted.only_newest)
        return name, line


def of_recordings(
    sources: Sequence[str], wanted: Wanted, detection: Detection, report: Callable[[str], None]
) -> tuple[str, Timeline]:
    """The name of the cluster and its time line, with the alerts that the detectors raise."""
    check_sources(sources)
    lines, views = TimeLines(wanted), ClusterViews(detection)
    reducer = LineReducer(detection, views.fold)
    for line in read_lines(sources, report):
        if line.fault is None:
            try:
                lines.batch(salvage_batch(line.data)[0])
            except WireError:
                # The reducer below makes a dead letter of it.
                pass
        for alert in reducer.alerts(line, sources, report):
            lines.alert(alert)
    reducer.check_readable(sources)
    name, found = lines.only()
    # What it costs later than the time that is shown is another figure.
    is_now = views.ended_at(name) <= wanted.until
    views_of = lru_cache(maxsize=1)(views.views)
    for alert in newest_alerts(found.steps) if is_now else ():
        cost = cost_of_saving(alert, views_of)
        if cost is not None:
            alert.annotations[WHILE_DOWN] = cost
    return name, found


def of_topics(
    settings: Settings, wanted: Wanted, report: Callable[[float, str], None]
) -> tuple[str, Timeline]:
    """The same from the topics of events and alerts of a running Tidemark."""
    # Alert records are delivered at least once.
    once = {alert.id: alert for alert in alerts_of_topic(settings)}.values()
    alerts = sorted(once, key=lambda alert: alert.at)
    clusters = [wanted.cluster] if wanted.cluster else [c.name for c in settings.clusters]
    batches: list[Batch] = []
    with TopicReader(settings.kafka, settings.topics.replica_state) as log:
        groups = {group_of(name, wanted.topic, wanted.partition, len(log.end)) for name in clusters}
        log.narrow(groups or log.end.keys(), wanted.since)
        span = max(time.time() - wanted.since, 1.0)
        for value in values(log.read_to_end()):
            try:
                batch = salvage_batch(value)[0]
            except WireError:
                continue
            kept = _of_partition(batch, wanted)
            if kept is not None:
                batches.append(kept)
                at = _time_of(kept.events[-1])
                report(min(1.0, (at - wanted.since) / span), f"events of {wanted.topic}")
    return _merged(batches, alerts, wanted)


def _merged(
    batches: Iterable[Batch], alerts: Sequence[Alert], wanted: Wanted
) -> tuple[str, Timeline]:
    """Alerts after the batch whose pass they come from."""
    lines, rest = TimeLines(wanted), list(reversed(alerts))
    for batch in batches:
        while rest and rest[-1].at < _time_of(batch.events[0]):
            lines.alert(rest.pop())
        lines.batch(batch)
    while rest:
        lines.alert(rest.pop())
    return lines.only(TOPIC_KEEPS)


def _of_partition(batch: Batch, wanted: Wanted) -> Batch | None:
    """Only the events that a time line uses: a topic holds those of thousands of partitions."""
    place = (wanted.topic, wanted.partition)
    batch.events = [
        event
        for event in batch.events
        if (getattr(event, "topic", None), getattr(event, "partition", None)) == place
        or event.__struct_config__.tag == "pass"
    ]
    return batch if batch.events else None


def _time_of(event: Event) -> float:
    return event.ended_at if event.__struct_config__.tag == "pass" else event.observed_at  # type: ignore[union-attr]

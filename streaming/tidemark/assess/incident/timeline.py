"""The steps of an incident in one partition, from what was sampled and the alerts about it.

Events and alerts come in order of time. A step is made where something changed; between two steps
the samples showed no change but growing offsets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from tidemark.assess.health import severity_rank
from tidemark.assess.incident import changes
from tidemark.assess.incident.step import (
    NEWEST,
    Cut,
    KnownHighWatermark,
    KnownReplica,
    Step,
    newest_begin,
)
from tidemark.assess.losses import Loss
from tidemark.assess.lost_reads import GroupReach
from tidemark.core.events import (
    Audit,
    Event,
    MetadataChange,
    Observation,
    PartitionDeleted,
    Pass,
    Replica,
)
from tidemark.core.records import Alert
from tidemark.core.text import answer_text, counted

# Further changes only count.
MAX_STEPS: Final = 10_000
# Without the end of a pass for so many periods, and at least so long, nothing was seen.
GAP_PERIODS: Final = 3
GAP_SECONDS: Final = 5.0


class Timeline:
    """Collects the steps of one partition. `steps` ascend by time."""

    def __init__(self, topic: str, partition: int) -> None:
        self._place = (topic, partition)
        self.steps: list[Step] = []
        # Changes beyond MAX_STEPS.
        self.omitted = 0
        # Earlier steps belong to incidents that are not asked for. Unix seconds.
        self.since = 0.0
        # The losses and the consumer groups that they reach, where that was asked.
        self.reaches: list[tuple[Loss, list[GroupReach]]] = []
        self.observations = 0
        self._last: Observation | None = None
        self._collector: str | None = None
        self._known: dict[int, KnownReplica] = {}
        self._watermark: KnownHighWatermark | None = None
        self._pass: Pass | None = None
        # The start of the first pass in a row that missed the partition, and their number.
        self._missed_since: float | None = None
        self._missed = 0

    @property
    def brokers(self) -> list[int]:
        """Those that had a replica in any step, in the order of the newest assignment."""
        newest = [] if self._last is None else self._last.replicas
        return [*newest, *sorted(self._known.keys() - set(newest))]

    def add(self, event: Event, collector: str) -> None:
        """An event of a batch; those of other partitions are ignored."""
        if isinstance(event, Pass):
            if collector == self._collector:
                self._end_pass(event)
        elif isinstance(event, Observation | MetadataChange | Audit | PartitionDeleted):
            if (event.topic, event.partition) != self._place:
                return
            if isinstance(event, Observation):
                self._collector = collector
                self._observe(event)
            else:
                self._note(event)

    def alert(self, alert: Alert) -> None:
        """An alert about the partition, or about a broker of it."""
        if not self.steps or self._last is None:
            self._step(alert.at)
        last = self.steps[-1] if self.steps else None
        observed_at = 0.0 if self._last is None else self._last.observed_at
        if last is None or last.observed_at != observed_at or last.until is not None:
            last = self._step(alert.at)
        if last is not None:
            last.alerts.append(alert)

    def end(self, *, only_newest: bool = False) -> None:
        """Adds the newest observation as the last step, sorts by time, critical alerts first, and
        finds where the newest incident begins.
        """
        for step in self.steps:
            step.alerts.sort(key=by_severity)
        if self._last is not None and self.steps:
            last = self._last
            if self.steps[-1].observed_at < last.observed_at:
                self._step(last.observed_at, [NEWEST])
            self._end_gap(None if self._pass is None else self._pass.ended_at)
        # A record of the metadata log may be read after its effect was sampled.
        self.steps.sort(key=lambda step: step.at)
        if only_newest:
            self.since = newest_begin(self.steps)

    def _observe(self, new: Observation) -> None:
        old, now = self._last, new.observed_at
        if old is not None and now < old.observed_at:
            return
        self.observations += 1
        self._end_gap(now)
        if (
            old is not None
            and None not in (old.topic_id, new.topic_id)
            and (old.topic_id != new.topic_id)
        ):
            self._known, self._watermark, old = {}, None, None
            self._step(now, ["the topic was created again: its topic id is another one"])
        found = [] if old is None else self._changes(old, new)
        cuts = list(self._cuts(new))
        found += [
            f"the log of {cut.broker} fell from {cut.before} to {cut.after}; "
            f"{counted(cut.before - cut.after, 'record')} or more truncated"
            for cut in cuts
        ]
        self._remember(new)
        if old is None:
            found.insert(0, _first(new))
        if found:
            self._step(now, found, cuts)

    def _changes(self, old: Observation, new: Observation) -> list[str]:
        now, found = new.observed_at, []
        for sample in new.samples:
            known = self._known.get(sample.broker)
            if known is None or sample.error == known.error:
                continue
            if sample.error is None:
                found.append(changes.returned(sample, known, now, new))
            else:
                leads = sample.broker == old.leader
                text = changes.silence(sample, known, self._watermark, now, leads=leads)
                found.append(text)
        found += changes.election(old, new, self._watermark, now)
        found += changes.sets(old, new)
        found += changes.falls(self._known, new)
        return found

    def _cuts(self, new: Observation) -> Iterable[Cut]:
        for sample in new.samples:
            known = self._known.get(sample.broker)
            before = None if known is None else known.log_end_offset
            after = sample.log_end_offset
            if before is not None and after is not None and after < before:
                yield Cut(sample.broker, before, after)

    def _remember(self, new: Observation) -> None:
        for sample in new.samples:
            known = self._known.setdefault(sample.broker, KnownReplica(broker=sample.broker))
            if sample.error is None:
                self._remember_answer(known, sample, new)
            elif known.error is None:
                known.silent_since = new.observed_at
            known.error = sample.error
        if new.committed is not None and new.leader is not None:
            self._watermark = KnownHighWatermark(
                new.committed, new.leader, new.leader_epoch, _read_at(new)
            )
        self._last = new

    def _remember_answer(self, known: KnownReplica, sample: Replica, new: Observation) -> None:
        known.at, known.silent_since = new.observed_at, None
        known.log_end_offset = sample.log_end_offset
        known.high_watermark = sample.high_watermark
        lineage = sample.lineage
        if lineage is None and sample.broker == new.leader:
            lineage = new.lineage
        if lineage is not None:
            known.lineage = lineage

    def _end_pass(self, new: Pass) -> None:
        """Notes passes that missed the partition, and times without a pass."""
        old, self._pass = self._pass, new
        if old is not None:
            pause = new.ended_at - old.ended_at
            if pause > max(GAP_SECONDS, GAP_PERIODS * new.period_ms / 1000):
                self._gap(old.ended_at, new.ended_at, "no pass ended")
        if self._is_missed(new):
            if self._missed_since is None:
                self._missed_since = new.started_at
            self._missed += 1
        else:
            self._end_gap(new.started_at)

    def _is_missed(self, new: Pass) -> bool:
        topic, partition = self._place
        if isinstance(new.missed, str):
            return True
        return any(first <= partition <= last for first, last in new.missed.get(topic, ()))

    def _end_gap(self, now: float | None) -> None:
        if self._missed_since is not None and now is not None:
            passes = (
                counted(self._missed, "pass") if self._missed == 1 else f"{self._missed} passes"
            )
            self._gap(self._missed_since, now, f"{passes} did not see the partition")
        self._missed_since, self._missed = None, 0

    def _gap(self, start: float, end: float, why: str) -> None:
        step = self._step(start, [f"nothing was seen for {changes.age(end - start)}: {why}"])
        if step is not None:
            step.until = end

    def _note(self, event: MetadataChange | Audit | PartitionDeleted) -> None:
        match event:
            case PartitionDeleted():
                self._step(event.observed_at, ["the partition was deleted"])
                self._last, self._known, self._watermark = None, {}, None
            case Audit():
                held = changes.brokers(event.brokers)
                text = f"audit: {held} hold different batches at offset {event.offset}"
                self._step(event.observed_at, [text])
            case MetadataChange():
                at = event.observed_at if event.record_at is None else event.record_at
                self._step(at, [_controller(event)])

    def _step(
        self, at: float, found: list[str] | None = None, cuts: list[Cut] | None = None
    ) -> Step | None:
        if len(self.steps) >= MAX_STEPS:
            self.omitted += 1
            return None
        last = self._last
        step = Step(at=at, observed_at=at, changes=found or [], cuts=cuts or [])
        if last is not None:
            step.observed_at = last.observed_at
            step.leader, step.leader_epoch = last.leader, last.leader_epoch
            step.in_sync_replicas = last.in_sync_replicas
            step.eligible_leader_replicas = last.eligible_leader_replicas
            step.metadata_from = last.metadata_from
        step.high_watermark = self._watermark
        step.replicas = [replace(self._known[broker]) for broker in sorted(self._known)]
        self.steps.append(step)
        return step


def by_severity(alert: Alert) -> tuple[float, int, str]:
    """Sorts alerts by time, critical ones first."""
    return alert.at, severity_rank(alert), alert.id


def _read_at(observation: Observation) -> float:
    """When the leader was read last in this observation."""
    for at in (observation.leader_after_at, observation.leader_before_at):
        if at is not None:
            return at
    return observation.observed_at


def _first(observation: Observation) -> str:
    epoch = "" if observation.leader_epoch is None else f" in epoch {observation.leader_epoch}"
    leader = "no leader" if observation.leader is None else f"{observation.leader} leads"
    silent = sorted((s.broker, s.error) for s in observation.samples if s.error is not None)
    rest = "".join(f"; {broker} {answer_text(error)} ({error})" for broker, error in silent)
    return f"the first observation: {leader}{epoch}{rest}"


def _controller(event: MetadataChange) -> str:
    leader = "no leader" if event.leader is None else f"leader {event.leader}"
    cause = "" if event.cause in {None, "unknown"} else f" ({event.cause})"
    recovering = ", recovering" if event.recovering else ""
    # A change of min.insync.replicas empties both (ClearElrRecord).
    eligible = "".join(
        f", {name} {changes.brokers(found)}"
        for name, found in (
            ("eligible", event.eligible_leader_replicas),
            ("last known eligible", event.last_known_eligible_leader_replicas),
        )
        if found
    )
    return (
        f"controller, record {event.metadata_offset}{cause}: {leader} in epoch "
        f"{event.leader_epoch}, ISR {changes.brokers(event.in_sync_replicas)}{eligible}{recovering}"
    )

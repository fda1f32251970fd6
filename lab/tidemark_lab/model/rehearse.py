"""What another protocol would have kept or lost at each election and restart of a recording.

Pure. Each verdict is about one event, from the state that the samples before it show: who is
elected then, and whether its log has what was committed. What they do not show is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from tidemark.core.events import Batch, Observation, Pass, Replica
from tidemark_lab.model.protocols.protocol import Protocol

Verdict = Literal["kept", "lost", "not known"]
Lineage = list[tuple[int, int]]
# Longer ago, records and fetches that no sample shows may decide.
RECENT_SECONDS: Final = 10.0


class Rule(NamedTuple):
    """The protocol and settings that are tried in place of those of the recording.

    `min_in_sync_replicas` is None where it stays.
    """

    protocol: Protocol
    min_in_sync_replicas: int | None = None
    eligible_leader_replicas: bool = True


class Finding(NamedTuple):
    """A verdict on the records below `committed` at one event; `why` is its reason."""

    topic: str
    partition: int
    at: float
    event: str
    committed: int | None
    verdict: Verdict
    why: str


@dataclass
class _Partition:
    """The newest observation whose leader was read, the epochs of the logs, and what came since."""

    led: Observation | None = None
    lineages: dict[int, Lineage] = field(default_factory=dict)
    # Who did not answer in an observation since `led`, and in the newest one.
    missed: frozenset[int] = frozenset()
    silent: frozenset[int] = frozenset()
    # Whether a pass since `led` showed no leader, or nothing of the partition.
    was_unseen: bool = False

    def step(self, shown: Observation, rule: Rule) -> Iterator[Finding]:
        silent = frozenset(sample.broker for sample in shown.samples if sample.error is not None)
        before, self.missed = self.led, self.missed | silent
        if before is not None and shown.leader is not None:
            epochs = {before.leader_epoch, shown.leader_epoch} - {None}
            if shown.leader != before.leader or len(epochs) > 1:
                event = f"{shown.leader} follows {before.leader} as leader"
                found = self._outcome(before, shown, rule)
                yield _finding(shown, event, before.committed, *found)
            else:
                for broker in sorted(self.silent - silent - {shown.leader}):
                    yield _restart(shown, broker, rule)
        self.silent = silent
        self.was_unseen = self.was_unseen or shown.leader is None
        for sample in shown.samples:
            if sample.lineage is not None:
                self.lineages[sample.broker] = sample.lineage
        is_new = shown.leader is not None and (before is None or shown.leader != before.leader)
        if is_new or (shown.leader not in {None, *silent} and shown.committed is not None):
            self.led, self.missed, self.was_unseen = shown, silent, False

    def _outcome(self, before: Observation, shown: Observation, rule: Rule) -> tuple[Verdict, str]:
        """The controllers of all protocols elect the same replica in sync: the one that leads."""
        committed, members, leader = before.committed, before.in_sync_replicas, shown.leader
        if committed is None or not members or leader is None:
            return "not known", "what was committed, or who was in sync, is not in the samples"
        if shown.observed_at - before.observed_at > RECENT_SECONDS:
            return "not known", "the last sample before the election is too old"
        if self.was_unseen or leader in self.missed:
            return "not known", f"{leader} may have restarted before it was elected"
        wanted = rule.min_in_sync_replicas
        if wanted is not None and wanted > len(members):
            return "not known", f"with min ISR {wanted} the last writes would be refused"
        if leader not in members:
            return self._from_outside(before, leader, committed, rule)
        held = self._holds(before, leader, committed)
        if held is None:
            return "not known", f"the leader epochs of the log of {leader} were not read"
        if held:
            return "kept", f"{leader} was in sync, is elected, and held it"
        now = _sample(shown, leader)
        if now is None or now.log_end_offset is None or now.log_end_offset >= committed:
            return "not known", f"{leader} was in sync without it, and may have fetched it"
        return "lost", f"{leader} was in sync without it, and is elected"

    def _from_outside(
        self, before: Observation, leader: int, committed: int, rule: Rule
    ) -> tuple[Verdict, str]:
        """The new leader was not in sync in the last sample."""
        if leader not in (before.eligible_leader_replicas or ()):
            return "not known", "the new leader was not in sync: who chose it is not recorded"
        if not (rule.protocol.kraft and rule.eligible_leader_replicas):
            waits = _listed(before.in_sync_replicas or ())
            return "not known", f"it was eligible; without that the partition waits for {waits}"
        if self._holds(before, leader, committed):
            return "kept", f"{leader} was eligible, and held it"
        return "not known", f"{leader} was eligible, and its samples do not show that it held it"

    def _holds(self, before: Observation, broker: int, committed: int) -> bool | None:
        """Whether a log had all that the leader had committed; None: its samples do not say."""
        sample = _sample(before, broker)
        if sample is None or sample.log_end_offset is None:
            return None
        if sample.log_end_offset < committed:
            return False
        if broker == before.leader:
            return True
        leader = self.lineages.get(before.leader or 0)
        own = self.lineages.get(broker)
        if leader is None or own is None:
            return None
        return _below(leader, committed) == _below(own, committed)


def _finding(
    shown: Observation, event: str, committed: int | None, verdict: Verdict, why: str
) -> Finding:
    return Finding(shown.topic, shown.partition, shown.observed_at, event, committed, verdict, why)


def _restart(shown: Observation, broker: int, rule: Rule) -> Finding:
    """A follower answers again: the leader's log is what counts, and it did not change."""
    committed = shown.committed
    why = f"the leader, {shown.leader}, has it; {broker} takes its log from there"
    if not rule.protocol.leader_epochs:
        why += f". Until then {broker} lacks what is above the high watermark on its disk"
    event = f"{broker} answers again"
    if committed is None:
        return _finding(shown, event, None, "not known", "the leader was not read")
    return _finding(shown, event, committed, "kept", why)


def rehearse(batches: Iterable[Batch], rule: Rule) -> Iterator[Finding]:
    """The findings of a recording, in its order."""
    partitions: dict[tuple[str, int], _Partition] = {}
    seen: set[tuple[str, int]] = set()
    for batch in batches:
        for event in batch.events:
            if isinstance(event, Observation):
                place = (event.topic, event.partition)
                seen.add(place)
                yield from partitions.setdefault(place, _Partition()).step(event, rule)
            elif isinstance(event, Pass):
                for place in partitions.keys() - seen:
                    partitions[place].was_unseen = True
                seen.clear()


def _sample(shown: Observation, broker: int | None) -> Replica | None:
    return next((each for each in shown.samples if each.broker == broker), None)


def _below(lineage: Lineage, end: int) -> Lineage:
    """The epochs of the records below an offset."""
    found: Lineage = []
    start = 0
    for epoch, epoch_end in lineage:
        if start < min(epoch_end, end):
            found.append((epoch, min(epoch_end, end)))
        start = epoch_end
    return found


def _listed(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"

"""The unclean elections in the log of a controller with KRaft, and the alerts that claim one.

The metadata has no such history: only the controller's own log says which election was unclean
(PartitionChangeBuilder.tracePartitionChange). It calls that of a last known leader unclean too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tidemark.core.identity import alert_name
from tidemark.core.records import Alert
from tidemark_lab.brokers.cluster import Place
from tidemark_lab.judge.claims import NEVER_SAMPLED
from tidemark_lab.judge.samples import InSync, Samples
from tidemark_lab.judge.truth import Truth

# Brokers learn of an election after the controller, a busy one some seconds later.
LEARNT_SECONDS = 5.0
UNCLEAN = alert_name("UNCLEAN_ELECTION")
# Where the leader was eligible when that was read last, it says that it may have been unclean.
ELIGIBLE = alert_name("ELR_ELECTION")
MAY_BE_UNCLEAN = "or the election was unclean"
# Why an unclean election has no alert.
IN_SYNC = "its leader was in sync when the brokers last answered"
LOST_NOTHING = "it lost nothing"
_LINE = re.compile(
    r"(\S+[T ]\S+) INFO Setting new leader for topicId (\S+), partition (\d+) to (\d+) "
    r"using an unclean election(?:\..*?leaderEpoch=(\d+),)?"
)


class Election(NamedTuple):
    """`leader_epoch` is the one that it began; Kafka before 4.0 logs none. `at`: Unix seconds."""

    at: float
    topic_id: str
    partition: int
    leader: int
    leader_epoch: int | None


class Judgement(NamedTuple):
    """`failures`: a text for each critical alert without an unclean election, and the reverse.

    Then how many unclean elections a critical alert, only a warning, and no alert names; these by
    the reason why no sample shows that they were unclean.
    """

    failures: list[str]
    critical: int
    warned: int
    unnoticed: Counter[str]


def unclean_elections(log: Iterable[str]) -> Iterator[Election]:
    """From the lines of a controller's log, with the times of this machine's zone."""
    for line in log:
        found = _LINE.match(line)
        if found is not None:
            at, topic_id, partition, leader, epoch_before = found.groups()
            moment = datetime.fromisoformat(at.replace(",", ".")).astimezone().timestamp()
            epoch = int(epoch_before) + 1 if epoch_before else None
            yield Election(moment, topic_id, int(partition), int(leader), epoch)


def judge_elections(
    elections: Sequence[Election],
    alerts: Iterable[Alert],
    samples: Mapping[Place, Samples],
    truth: Truth,
) -> Judgement:
    """An election that samples show to be unclean, and that lost records, must have an alert."""
    places = {(shown.topic_id, place[1]): place for place, shown in samples.items()}
    named: dict[Election, set[str]] = {election: set() for election in elections}
    failures = []
    for alert in alerts:
        if not _may_name_one(alert) or alert.state == "resolved":
            continue
        place = alert.labels["topic"], int(alert.labels["partition"])
        meant = [
            election
            for election in elections
            if places.get((election.topic_id, election.partition)) == place
            and _names(alert, election)
        ]
        for election in meant:
            named[election].add(alert.labels["severity"])
        if not meant and alert.labels["severity"] == "critical":
            failures.append(
                f"{place[0]}-{place[1]}: no election was unclean then: "
                f"{alert.annotations['description']}"
            )
    critical = sum("critical" in severities for severities in named.values())
    unnoticed = Counter[str]()
    for election in (one for one, severities in named.items() if not severities):
        of = places.get((election.topic_id, election.partition))
        if of is None:
            unnoticed[NEVER_SAMPLED] += 1
        elif _was_in_sync(election, samples[of].in_sync):
            unnoticed[IN_SYNC] += 1
        elif not _lost_records(election, of, truth):
            unnoticed[LOST_NOTHING] += 1
        else:
            failures.append(
                f"{of[0]}-{of[1]}: no alert names the unclean election of broker "
                f"{election.leader}, which was outside of the in-sync set that was sampled before"
            )
    warned = sum(severities == {"warning"} for severities in named.values())
    return Judgement(failures, critical, warned, unnoticed)


def _may_name_one(alert: Alert) -> bool:
    name, text = alert.labels["alertname"], alert.annotations["description"]
    return name == UNCLEAN or (name == ELIGIBLE and MAY_BE_UNCLEAN in text)


def _was_in_sync(election: Election, in_sync: Sequence[InSync]) -> bool:
    """Whether the newest sample before it had its leader in the set, or had no set."""
    before = [shown for shown in in_sync if shown.at <= election.at]
    return not before or election.leader in (before[-1].leader, *before[-1].members)


def _lost_records(election: Election, place: Place, truth: Truth) -> bool:
    """Whether the fault of that time lost acknowledged records of the partition."""
    faults = (truth.faults[number] for number in {lost.fault for lost in truth.lost_of(place)})
    return any(fault.begin <= election.at <= fault.end for fault in faults)


def _names(alert: Alert, election: Election) -> bool:
    """By the epochs of the alert; without epochs in the log, by the time."""
    known = alert.evidence
    if election.leader_epoch is not None:
        epochs: tuple[int, int] = known["leader_epoch_before"], known["leader_epoch_after"]
        return epochs[0] < election.leader_epoch <= epochs[1]
    seen_before_at: float = known.get("seen_before_at") or 0.0
    return seen_before_at - LEARNT_SECONDS <= election.at <= alert.at

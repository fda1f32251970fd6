"""The unclean elections in the log of a controller with KRaft, and the alerts that claim one.

The metadata has no such history: only the controller's own log says which election was unclean
(PartitionChangeBuilder.tracePartitionChange). It calls that of a last known leader unclean too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tests.chaos.harm_samples import Samples
from tidemark.core.records import Alert
from tidemark.local.cluster import Place

# Brokers learn of an election after the controller, a busy one some seconds later.
LEARNT_SECONDS = 5.0
UNCLEAN = "KafkaUncleanElection"
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
    """`failures`: a text for each critical alert without an unclean election.

    Then how many unclean elections a critical alert, only a warning, and no alert names.
    """

    failures: list[str]
    critical: int
    warned: int
    unnoticed: int


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
    elections: Sequence[Election], alerts: Iterable[Alert], samples: Mapping[Place, Samples]
) -> Judgement:
    places = {(shown.topic_id, place[1]): place for place, shown in samples.items()}
    named: dict[Election, set[str]] = {election: set() for election in elections}
    failures = []
    for alert in alerts:
        if alert.labels["alertname"] != UNCLEAN or alert.state == "resolved":
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
    unnoticed = sum(not severities for severities in named.values())
    return Judgement(failures, critical, len(named) - critical - unnoticed, unnoticed)


def _names(alert: Alert, election: Election) -> bool:
    """By the epochs of the alert; without epochs in the log, by the time."""
    known = alert.evidence
    if election.leader_epoch is not None:
        epochs: tuple[int, int] = known["leader_epoch_before"], known["leader_epoch_after"]
        return epochs[0] < election.leader_epoch <= epochs[1]
    seen_before_at: float = known.get("seen_before_at") or 0.0
    return seen_before_at - LEARNT_SECONDS <= election.at <= alert.at

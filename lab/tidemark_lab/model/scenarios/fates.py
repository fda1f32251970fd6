"""How a run lost its records, what consumers see of it, and which setting would have kept them.

Everything here is read from runs: no scenario has a text of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Final

from tidemark_lab.model.log import Log, first_difference
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel, Fact, record_names
from tidemark_lab.model.scenarios.run import RunStep, ScenarioRun
from tidemark_lab.model.scenarios.scenario import Scenario


def missing_records(records: Log, log: Log) -> Log:
    """The records that a log does not hold."""
    return tuple(record for record in records if record not in log)


def elected_leader(cluster: ClusterModel) -> Broker | None:
    """The broker that the controller chose, once it leads."""
    leader = cluster.controller.leader
    return next((each for each in cluster.brokers if each.leads and each.id == leader), None)


def lost_records(cluster: ClusterModel) -> Log:
    """What was committed and the leader does not hold; nothing while no broker leads."""
    leader = elected_leader(cluster)
    return () if leader is None else missing_records(cluster.committed, leader.log)


def consumer_view(cluster: ClusterModel) -> str:
    """What a consumer that reads from the leader gets, and what it may have read before."""
    leader = elected_leader(cluster)
    if leader is None:
        return "No broker leads: a consumer waits."
    shown = leader.log[leader.log_start_offset : leader.high_watermark]
    parts = [f"A consumer can read {record_names(shown) or 'nothing yet'}."]
    for offset, record in enumerate(cluster.committed):
        if record not in leader.log:
            now = leader.log[offset : offset + 1]
            place = f"holds {record_names(now)} instead" if now else "is empty"
            parts.append(
                f"It may have read m{record.id}, which its leader does not have: offset {offset} "
                f"{place}."
            )
    return " ".join(parts)


def fates(scenario: Scenario, run: ScenarioRun) -> list[str]:
    """Where the copies of the records went that are lost at the end, step by step.

    Under a protocol that keeps what the scenario's first one loses: how it keeps them.
    """
    lost = lost_records(run.cluster)
    if lost:
        return list(_fates(run, lost))
    kept = lost_records(scenario.run().cluster)
    return list(_keeping(run, kept)) if set(kept) <= set(run.cluster.committed) and kept else []


def _keeping(run: ScenarioRun, kept: Log) -> Iterator[str]:
    for number, (before, step) in enumerate(pairwise(run.steps), 1):
        for old, new in zip(before.cluster.brokers, step.cluster.brokers, strict=True):
            if missing_records(kept, new.log):
                continue
            start = f"Step {number}: broker {new.id}"
            asked = old.truncating and not new.truncating and step.method == "ask"
            if asked and Fact.EPOCH_UNKNOWN not in step.facts:
                yield (
                    f"{start} keeps {record_names(kept)}: its leader answered that the epoch of "
                    "its last record ends after it, so there is nothing to truncate. Its own high "
                    "watermark does not matter."
                )
            elif new.leads and new.leader_epoch != old.leader_epoch:
                yield f"{start} leads, and has {record_names(kept)}."
    yield f"At the end: {_holders(run.cluster, kept)} {consumer_view(run.cluster)}"


def _fates(run: ScenarioRun, lost: Log) -> Iterator[str]:
    for number, (before, step) in enumerate(pairwise(run.steps), 1):
        cluster = step.cluster
        known = tuple(record for record in lost if record in cluster.committed)
        committed = missing_records(known, before.cluster.committed)
        if committed:
            yield f"Step {number}: {_are(committed, 'committed')}. {_holders(cluster, committed)}"
        for old, new in zip(before.cluster.brokers, cluster.brokers, strict=True):
            gone = missing_records(known, new.log)
            removed = tuple(record for record in gone if record in old.log)
            if removed:
                why = _removal(step, old) if new.running else "not on its disk when it lost power"
                yield (
                    f"Step {number}: broker {new.id} no longer has {record_names(removed)}: {why}. "
                    f"{_holders(cluster, removed)}"
                )
            other = _other_record(step, old, new)
            if other is not None:
                yield f"Step {number}: broker {new.id} keeps {other}"
            if gone and new.leads and new.leader_epoch != old.leader_epoch:
                yield (
                    f"Step {number}: broker {new.id} leads without {record_names(gone)}. "
                    f"{_election(run, new)}"
                )
    yield f"At the end: {_holders(run.cluster, lost)} {consumer_view(run.cluster)}"


def _are(records: Log, what: str) -> str:
    return f"{record_names(records)} {'is' if len(records) == 1 else 'are'} {what}"


def _holders(cluster: ClusterModel, records: Log) -> str:
    having = [
        f"{broker.id}{'' if broker.running else ' (down)'}"
        for broker in cluster.brokers
        if set(records) & set(broker.log)
    ]
    if not having:
        return f"No log has {record_names(records)} any more."
    return f"{_are(records, 'in the log of')} {' and '.join(having)}."


def _removal(step: RunStep, old: Broker) -> str:
    """By which rule a follower truncated its log."""
    if step.method == "learn":
        return "this protocol truncates a follower to its own high watermark"
    if step.method == "ask":
        # As before 0.11.
        return (
            "without an answer it truncates to its own high watermark"
            if Fact.EPOCH_UNKNOWN in step.facts
            else "its leader answered that the epoch of its last record ends before it"
        )
    if old.response is None or old.response.error:
        return "its log was longer than its leader's"
    return "its leader answered to its fetch that the logs diverge"


def _other_record(step: RunStep, old: Broker, new: Broker) -> str | None:
    """What a follower keeps though its leader has another record there, and by which rule."""
    decides = step.method == "learn" and new.leader_epoch != old.leader_epoch
    if new.leads or new.leader is None or new.truncating or not (decides or old.truncating):
        return None
    theirs = step.cluster.broker(new.leader).log
    offset = first_difference(new.log, theirs)
    if offset is None or step.cluster.protocol.truncates_in_fetch:
        return None
    why = "its leader answered with an offset after it, and not with the epoch of that offset"
    if step.method == "learn" or Fact.EPOCH_UNKNOWN in step.facts:
        why = f"it truncates to its own high watermark, {new.high_watermark}, which is after it"
    ours, other = new.log[offset : offset + 1], theirs[offset : offset + 1]
    names = f"{record_names(ours)} at offset {offset}, where its leader has {record_names(other)}"
    return f"{names}: {why}. No later step compares the two."


def _election(run: ScenarioRun, leader: Broker) -> str:
    """Why the controller chose this leader."""
    decisions = [run.steps[0].cluster.controller, *run.cluster.decisions]
    before, chosen = next(
        pair for pair in pairwise(decisions) if pair[1].leader_epoch == leader.leader_epoch
    )
    if not chosen.recovering:
        return (
            "The election was clean: it was in the ISR (or among the eligible leader replicas). "
            "That says that it once had every committed record, not that its log still has them."
        )
    if run.cluster.protocol.kraft and leader.id in (before.leader, before.last_known_leader):
        return "It was the last known leader: no replica was left that is known to have everything."
    return "The election was unclean: it was not in the ISR."


def _settings(scenario: Scenario) -> dict[str, Scenario]:
    """The scenario as it is, and with each setting that could matter changed alone."""
    script = scenario.script
    other = 1 if scenario.min_in_sync_replicas > 1 else 2
    found = {
        "As it is": scenario,
        f"With min.insync.replicas={other}": scenario._replace(min_in_sync_replicas=other),
    }
    if scenario.unclean_leader_election:
        found["With unclean.leader.election.enable=false"] = scenario._replace(
            unclean_leader_election=()
        )
    for words, text, instead in (
        ("With acks=all", "acks=1", "acks=all"),
        ("Without the operator's unclean election", "elect_unclean", ""),
        # What is flushed before it is acknowledged outlives the power of a machine.
        (
            "With log.flush.interval.messages=1 (each record is flushed at once)",
            "lose_power",
            "kill",
        ),
    ):
        if text in script:
            found[words] = scenario._replace(script=script.replace(text, instead))
    return found


_NOTHING: Final = "nothing committed is lost"


def _kept_by(settings: list[str], protocols: set[str]) -> str:
    if settings:
        return f"nothing committed is lost {', or '.join(settings)}"
    return "none of the settings below keeps it" + "; another protocol does" * bool(protocols)


@cache
def settings_lines(scenario: Scenario) -> tuple[str, ...]:
    """What the schedule loses under each protocol, as it is and with another setting."""
    lines, losses = list[str](), False
    first, keeping, kept_by = scenario.protocols[0], list[str](), set[str]()
    for words, changed in _settings(scenario).items():
        outcomes: dict[str, list[str]] = {}
        for protocol in scenario.protocols:
            run = changed.run(protocol)
            lost = lost_records(run.cluster)
            losses |= bool(lost)
            refused = any(Fact.WRITE_REFUSED in step.facts for step in run.steps)
            outcome = _are(lost, "lost") if lost else _NOTHING
            if elected_leader(run.cluster) is None:
                outcome = "no broker leads at the end"
            outcome += ", and writes are refused" * refused
            outcomes.setdefault(outcome, []).append(protocol)
            if outcome == _NOTHING:
                keeping += [words[0].lower() + words[1:]] * (protocol == first)
                kept_by |= {protocol} if changed is scenario else set()
        told = "; ".join(f"{what} ({', '.join(names)})" for what, names in outcomes.items())
        lines.append(f"{words}: {told}.")
    if losses and first not in kept_by:
        lines.insert(0, f"Under {first} {_kept_by(keeping, kept_by)}.")
    return tuple(lines) if losses else ()

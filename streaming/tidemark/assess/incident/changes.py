"""What is different between two observations of a partition, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidemark.assess.incident.step import KnownHighWatermark, KnownReplica
from tidemark.core.events import REFUSED, TIMED_OUT, UNREACHABLE, Observation, Replica
from tidemark.core.text import counted, duration

_SILENCE = {
    REFUSED: "; no process listens on its port",
    TIMED_OUT: "; requests to it time out",
    UNREACHABLE: "",
}


def brokers(members: Sequence[int] | None) -> str:
    """`1,2`, `none` or `?`."""
    return "?" if members is None else ",".join(map(str, members)) or "none"


def age(seconds: float) -> str:
    return duration(max(0.0, 1000 * seconds))


def seen(known: KnownHighWatermark | None, now: float) -> str:
    """The last high watermark that was seen, and how old it is."""
    if known is None:
        return "no high watermark was seen"
    epoch = "" if known.leader_epoch is None else f", epoch {known.leader_epoch}"
    place = f"(broker {known.leader}{epoch})"
    return f"last HW seen: {known.offset} {place}, {age(now - known.at)} before"


def silence(
    sample: Replica,
    known: KnownReplica,
    watermark: KnownHighWatermark | None,
    now: float,
    *,
    leads: bool,
) -> str:
    """A broker does not answer, or no longer in the same way."""
    error = str(sample.error)
    role = f"{sample.broker}, the leader," if leads else f"{sample.broker}"
    text = f"{role} does not answer ({error}){_SILENCE.get(error, '')}"
    if known.error is not None or known.log_end_offset is None or known.at is None:
        return text
    if leads:
        return f"{text}; {seen(watermark, now)}; its log ended at {known.log_end_offset}"
    return f"{text}; its log ended at {known.log_end_offset}, {age(now - known.at)} before"


def returned(sample: Replica, known: KnownReplica, now: float, observation: Observation) -> str:
    """A broker answers again."""
    after = "" if known.silent_since is None else f" after {age(now - known.silent_since)}"
    text = f"{sample.broker} answers again{after}"
    leader = observation.leader
    if leader == sample.broker:
        return f"{text} and leads"
    if leader is not None:
        epoch = "" if sample.leader_epoch is None else f" in epoch {sample.leader_epoch}"
        text = f"{text} as a follower of {leader}{epoch}"
    old, new = known.log_end_offset, sample.log_end_offset
    if old is not None and new is not None and old != new:
        text = f"{text}; its log ended at {old}, now at {new}"
    return text


def election(
    old: Observation, new: Observation, watermark: KnownHighWatermark | None, now: float
) -> Iterator[str]:
    """Changes of the leader and of its epoch."""
    epoch = "" if new.leader_epoch is None else f" in epoch {new.leader_epoch}"
    if new.leader == old.leader and new.leaderless == old.leaderless:
        if new.leader_epoch != old.leader_epoch and None not in (
            new.leader_epoch,
            old.leader_epoch,
        ):
            yield f"epoch {old.leader_epoch}→{new.leader_epoch}" + (
                "" if new.leader is None else f", {new.leader} still leads"
            )
        return
    if new.leader is None:
        if new.leaderless:
            yield f"no leader{epoch}; {seen(watermark, now)}"
        elif old.leader is not None:
            yield f"no broker that answers names a leader{epoch}; {seen(watermark, now)}"
        return
    yield f"election: {new.leader} leads{epoch}{_origin(old, new)}"
    yield from _behind(new, watermark, now)


def _origin(old: Observation, new: Observation) -> str:
    """Where a leader comes from, by the sets that were seen before."""
    leader, in_sync = new.leader, old.in_sync_replicas
    eligible = old.eligible_leader_replicas or []
    if in_sync is None:
        return ""
    if leader in in_sync:
        return f", in sync before ({brokers(in_sync)})"
    if leader in eligible:
        return f", an eligible leader replica ({brokers(eligible)})"
    elr = f", eligible {brokers(eligible)}" if eligible else ""
    return f", not in sync before (ISR {brokers(in_sync)}{elr})"


def _behind(new: Observation, watermark: KnownHighWatermark | None, now: float) -> Iterator[str]:
    """Where the new leader's log ends, beside what was seen to be committed."""
    sample = next((s for s in new.samples if s.broker == new.leader), None)
    end = None if sample is None else sample.log_end_offset
    if watermark is None or watermark.leader_epoch == new.leader_epoch:
        return
    log = "its log end is not known" if end is None else f"its log ends at {end}"
    below = ""
    if end is not None and end < watermark.offset:
        below = f": {counted(watermark.offset - end, 'offset')} below the high watermark"
    yield f"{log}{below}; {seen(watermark, now)}"


def sets(old: Observation, new: Observation) -> Iterator[str]:
    """Changes of the in-sync set, the eligible leaders and the assignment."""
    pairs = (
        ("ISR", old.in_sync_replicas, new.in_sync_replicas),
        ("ELR", old.eligible_leader_replicas, new.eligible_leader_replicas),
        ("assigned", old.replicas, new.replicas),
        ("adding", old.adding, new.adding),
        ("removing", old.removing, new.removing),
    )
    for name, before, after in pairs:
        if after is None or list(before or ()) == list(after):
            continue
        if before is not None or name == "ELR":
            yield f"{name} {brokers(before)}→{brokers(after)}"


def falls(known: Mapping[int, KnownReplica], new: Observation) -> Iterator[str]:
    """High watermarks that a broker reports lower than before."""
    for sample in new.samples:
        before = known.get(sample.broker)
        old = None if before is None else before.high_watermark
        if old is not None and sample.high_watermark is not None and sample.high_watermark < old:
            yield f"HW of {sample.broker}: {old}→{sample.high_watermark}"
